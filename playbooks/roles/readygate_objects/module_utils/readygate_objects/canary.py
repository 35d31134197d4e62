"""Pure: the pods with which a play checks that kube-scheduler asks readygate, and the outcome of each.

The extender refuses such a pod on every node, whatever it knows, with a reason of its own (extender/policy/exempt.py).
"""

from ansible.module_utils.readygate_objects.rollout import short

NAME = "readygate-canary"
LABEL = "readygate.dev/canary"
LABELS = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/part-of": "readygate", LABEL: "true"}
REASON = "readygate: canary: refused everywhere on purpose"
REFUSED, PLACED, OTHERS, WAITS = "refused", "placed", "others", "waits"
OTHERS_LAST_S = 10  # a node that is full, or has just come, may be better a moment later
SWITCH = "readygate_scheduler_config_canary: false leaves this out"


def priority_class() -> dict:
    """A class that preempts no pod, whatever the cluster's default class does.

    The API server refuses preemptionPolicy in a pod whose class has another policy.
    """
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": NAME, "labels": LABELS},
        "description": "For pods with which readygate's playbooks check that kube-scheduler asks. They preempt no pod.",
        "value": 0,
        "preemptionPolicy": "Never",
    }


def canary(number: int, namespace: str, scheduler: str, image: str, resources: list) -> dict:
    """The pod for one scheduler. It fits on every node, needs nothing, and ends at once if it is ever placed.

    image: an image that is on the nodes already and that image policies allow; it is never pulled.
    resources: extended resources, so that a scheduler with managedResources asks for this pod too; the scheduler's own
    filters ignore a quantity of zero.
    """
    nothing = dict.fromkeys(["cpu", "memory", *resources], "0")
    container = {
        "name": "canary",
        "image": image,
        "imagePullPolicy": "Never",
        "command": ["true"],
        "resources": {"requests": nothing, "limits": nothing},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    spec = {
        "schedulerName": scheduler,
        "priorityClassName": NAME,
        "tolerations": [{"operator": "Exists"}],
        "restartPolicy": "Never",
        "activeDeadlineSeconds": 60,
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "runAsGroup": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
    }
    metadata = {"name": "{}-{}".format(NAME, number), "namespace": namespace, "labels": LABELS}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def outcome(pod: dict, scheduler: str) -> tuple:
    """(state, words) of one pod. OTHERS: something else keeps it off nodes, so nothing is known about readygate."""
    spec = pod.get("spec", {})
    if spec.get("nodeName"):
        return PLACED, spec["nodeName"]
    gates = [each.get("name", "") for each in spec.get("schedulingGates") or ()]
    if gates:
        return OTHERS, "it has the scheduling gate " + ", ".join(gates)
    if spec.get("schedulerName", scheduler) != scheduler:
        return OTHERS, "it was assigned to the scheduler " + spec["schedulerName"]
    conditions = [each for each in pod.get("status", {}).get("conditions") or () if each["type"] == "PodScheduled"]
    reason, message = (conditions[0].get("reason", ""), conditions[0].get("message", "")) if conditions else ("", "")
    if REASON in message:
        return REFUSED, ""
    # Any other reason is an error of the scheduler or of an extender, which is retried.
    return (OTHERS if reason == "Unschedulable" else WAITS), short(message)


def judged(outcomes: dict, lasted_s: float, seconds: float) -> tuple:
    """(state, text) of all pods: WAITS while the outcome is unknown. After `seconds` WAITS is a failure.

    outcomes: by scheduler. text: one sentence for operators.
    """
    by_state = {}  # type: dict
    for scheduler, (state, words) in sorted(outcomes.items()):
        by_state.setdefault(state, []).append((scheduler, words))
    if PLACED in by_state:
        return PLACED, _placed(by_state[PLACED])
    if WAITS in by_state:
        return WAITS, _silent(by_state[WAITS], seconds)
    if OTHERS in by_state:
        causes = "; ".join("{}: {}".format(*each) for each in by_state[OTHERS])
        text = "it is not proven that kube-scheduler asks readygate: others refuse its pod first ({})".format(causes)
        return (OTHERS if lasted_s >= min(OTHERS_LAST_S, seconds) else WAITS), text
    return REFUSED, "kube-scheduler asks readygate and follows its answer: " + _names(by_state[REFUSED])


def _names(found: list) -> str:
    return ", ".join(scheduler for scheduler, _ in found)


def _placed(found: list) -> str:
    return (
        "kube-scheduler ({}) placed a pod on node {} that readygate refuses on every node: it does not ask readygate,"
        " or could not reach it in time. check.yml reports for each host whether readygate is registered, and"
        " `readygate doctor` whether an extender answers. An extender older than these playbooks does not refuse the"
        " pod: run site.yml without tags. " + SWITCH
    ).format(_names(found), found[0][1])


def _silent(found: list, seconds: float) -> str:
    texts = [words for _, words in found if words]
    return (
        "kube-scheduler ({}) has not refused a pod within {:.0f} s that readygate refuses on every node{}. Check that"
        " it runs and leads (Lease kube-system/kube-scheduler), and run `readygate doctor`. " + SWITCH
    ).format(_names(found), seconds, "; it reports: " + texts[0] if texts else ", and reports nothing about it")
