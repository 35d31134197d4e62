"""Pure: the pods by which a play sees that kube-scheduler asks readygate, and what became of each.

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
    """It evicts nobody, whatever the cluster's default class may do. A pod alone cannot say so: without a class of that
    policy the API server refuses it."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": NAME, "labels": LABELS},
        "description": "Of the pods by which readygate's playbooks see that kube-scheduler asks. They evict nobody.",
        "value": 0,
        "preemptionPolicy": "Never",
    }


def canary(number: int, namespace: str, scheduler: str, image: str, resources: list) -> dict:
    """The pod of one scheduler. It fits on every node, needs nothing, and ends at once, should it ever be placed.

    image: one that is on the nodes already, as policies on images know it; it is never pulled. resources: a scheduler
    that asks only for pods with one of these asks for it too; of a quantity of zero its own filters take no notice."""
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
    """(state, words) of one pod. OTHERS: whoever else keeps it off nodes, so that nothing can be said of readygate."""
    spec = pod.get("spec", {})
    if spec.get("nodeName"):
        return PLACED, spec["nodeName"]
    gates = [each.get("name", "") for each in spec.get("schedulingGates") or ()]
    if gates:
        return OTHERS, "somebody holds it by the scheduling gate " + ", ".join(gates)
    if spec.get("schedulerName", scheduler) != scheduler:
        return OTHERS, "somebody gave it to the scheduler " + spec["schedulerName"]
    conditions = [each for each in pod.get("status", {}).get("conditions") or () if each["type"] == "PodScheduled"]
    reason, message = (conditions[0].get("reason", ""), conditions[0].get("message", "")) if conditions else ("", "")
    if REASON in message:
        return REFUSED, ""
    # Any other reason than this one is an error of the scheduler's, or of an extender's, which it tries again.
    return (OTHERS if reason == "Unschedulable" else WAITS), short(message)


def judged(outcomes: dict, lasted_s: float, seconds: float) -> tuple:
    """(state, text) of all: WAITS while it is not known. outcomes: by scheduler. text: one sentence for people; of
    WAITS that has lasted for `seconds` too, which is a failure."""
    by_state = {}  # type: dict
    for scheduler, (state, words) in sorted(outcomes.items()):
        by_state.setdefault(state, []).append((scheduler, words))
    if PLACED in by_state:
        return PLACED, _placed(by_state[PLACED])
    if WAITS in by_state:
        return WAITS, _silent(by_state[WAITS], seconds)
    if OTHERS in by_state:
        told = "; ".join("{}: {}".format(*each) for each in by_state[OTHERS])
        text = "it is not proven that kube-scheduler asks readygate: others refuse its pod first ({})".format(told)
        return (OTHERS if lasted_s >= min(OTHERS_LAST_S, seconds) else WAITS), text
    return REFUSED, "kube-scheduler asks readygate and keeps to its answer: " + _names(by_state[REFUSED])


def _names(found: list) -> str:
    return ", ".join(scheduler for scheduler, _ in found)


def _placed(found: list) -> str:
    return (
        "kube-scheduler ({}) placed a pod on node {} that readygate refuses everywhere: it does not ask readygate, or"
        " could not reach it in time. check.yml says of each host whether its scheduler is registered, and"
        " `readygate doctor` whether an extender answers it; an extender older than these playbooks knows no such pod:"
        " play site.yml without tags. " + SWITCH
    ).format(_names(found), found[0][1])


def _silent(found: list, seconds: float) -> str:
    said = [words for _, words in found if words]
    return (
        "kube-scheduler ({}) has not refused a pod that readygate refuses everywhere for {:.0f} s{}. See whether it"
        " runs and leads (Lease kube-system/kube-scheduler), and what `readygate doctor` says of the extender. "
        + SWITCH
    ).format(_names(found), seconds, "; it says: " + said[0] if said else ", and said nothing of it")
