"""Random pods and statuses, as JSON of the API. Numbers are small and names few, so that borders and repeats are hit.

Nothing here asks whether the API server would take it, but for what it has to be to be decoded.
"""

from datetime import UTC, datetime
from functools import cache
from random import Random
from typing import Any

Json = dict[str, Any]

START = 1_000_000.0
ODD_TIMES = ("1969-12-31T23:59:59.5Z", "1969-12-31T23:59:58.25Z", "1960-01-01T00:00:00.999Z", "1970-01-01T00:00:01.75Z")
"""When the agent, or the kubelet, was started."""

POLICIES = ("Always", "OnFailure", "Never")
PHASES = ("Pending", "Running", "Succeeded", "Failed", "Unknown")


def maybe(random: Random, odds: float) -> bool:
    return random.random() < odds


@cache
def odd_time(random: Random, text: str) -> str:
    """This time, or rarely one with a fraction of a second, before 1970 or after."""
    return random.choice(ODD_TIMES) if maybe(random, 0.03) else text


def text_time(seconds: float) -> str:
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def draw_probe(random: Random) -> Json:
    return {
        "initialDelaySeconds": random.choice((0, 0, 0, 1, 2, 3)),
        "timeoutSeconds": 1,
        "periodSeconds": random.choice((1, 2, 10)),
        "successThreshold": random.choice((1, 1, 2, 3)),
        "failureThreshold": random.choice((1, 1, 2, 3)),
    }


def draw_container(random: Random, name: str, *, init: bool) -> Json:
    container: Json = {"name": name}
    if maybe(random, 0.6 if init else 0.2):
        container["restartPolicy"] = "Always" if init and maybe(random, 0.8) else random.choice(POLICIES)
    if maybe(random, 0.15):
        container["restartPolicyRules"] = [draw_rule(random) for _ in range(random.randint(1, 2))]
    if not init or container.get("restartPolicy") == "Always":
        for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
            if maybe(random, 0.45):
                container[kind] = draw_probe(random)
    return container


def draw_rule(random: Random) -> Json:
    rule: Json = {"action": random.choice(("Restart", "Restart", "Restart", "Other"))}
    if maybe(random, 0.95):
        codes = {"operator": random.choice(("In", "In", "NotIn", "Other"))}
        rule["exitCodes"] = {**codes, "values": random.sample((0, 1, 2, 137), random.randint(0, 2))}
    return rule


def draw_pod(random: Random, uid: str = "u") -> Json:
    """Without a status."""
    spec: Json = {
        "containers": [draw_container(random, n, init=False) for n in "abc"[: random.choice((1, 1, 2, 2, 3))]],
        "restartPolicy": random.choice(POLICIES),
    }
    inits = [draw_container(random, n, init=True) for n in "ijk"[: random.choice((0, 0, 1, 2, 3))]]
    if inits:
        spec["initContainers"] = inits
    if maybe(random, 0.15):
        spec["readinessGates"] = [
            {"conditionType": n} for n in random.sample(("gate/x", "gate/y"), random.randint(1, 2))
        ]
    meta: Json = {"uid": uid, "name": f"pod-{uid}", "namespace": "default", "generation": random.randint(0, 3)}
    if maybe(random, 0.1):
        meta |= {"deletionTimestamp": text_time(START), "deletionGracePeriodSeconds": random.choice((0, 1, 30))}
    return {"metadata": meta, "spec": spec}


def draw_state(random: Random, wall: float) -> Json:
    kind = random.random()
    if kind < 0.6:
        return {"running": {"startedAt": text_time(wall - random.choice((0, 0, 1, 2, 3, 9, 10, 11, 12, 30, -1, -2)))}}
    if kind < 0.8:
        code = random.choice((0, 0, 1, 2, 137))
        reason = random.choice(("Completed", "Error", ""))
        return {"terminated": {"exitCode": code, "reason": reason}}
    if kind < 0.95:
        return {"waiting": {"reason": random.choice(("ContainerCreating", "PodInitializing", ""))}}
    return {}


def draw_container_status(random: Random, name: str, wall: float) -> Json:
    status: Json = {
        "name": name,
        "state": draw_state(random, wall),
        "lastState": {},
        "ready": maybe(random, 0.5),
        "restartCount": random.randint(0, 3),
        "image": "",
        "imageID": "",
    }
    if maybe(random, 0.25):
        status["lastState"] = {"terminated": {"exitCode": random.choice((0, 1, 137)), "reason": "Error"}}
    if maybe(random, 0.95):
        status["containerID"] = f"test://{name}{random.choice((1, 1, 1, 2))}"
    if maybe(random, 0.9):
        status["started"] = maybe(random, 0.7)
    return status


def draw_condition(random: Random, kind: str) -> Json:
    condition: Json = {
        "type": kind,
        "status": random.choice(("True", "True", "False", "Unknown")),
        "lastProbeTime": None,
        "lastTransitionTime": odd_time(random, text_time(START - random.randint(0, 100))),
    }
    if maybe(random, 0.3):
        condition["reason"] = random.choice(("ContainersNotReady", "Because"))
    if maybe(random, 0.3):
        condition["message"] = random.choice(("containers with unready status: [a]", "so"))
    if maybe(random, 0.3):
        condition["observedGeneration"] = random.randint(1, 3)
    return condition


CONDITIONS = (
    "Ready",
    "ContainersReady",
    "Initialized",
    "PodScheduled",
    "DisruptionTarget",
    "gate/x",
    "gate/y",
    "foreign",
)


STATUSES = (("containerStatuses", "containers"), ("initContainerStatuses", "initContainers"))


def draw_status(random: Random, pod: Json, wall: float) -> Json:
    """Of this pod, or nearly: now and then a container is missing, or one too many is there."""
    spec = pod["spec"]
    status: Json = {"phase": random.choice(PHASES if maybe(random, 0.2) else ("Pending", "Running"))}
    for key, containers in STATUSES:
        names = [c["name"] for c in spec.get(containers, ())]
        if maybe(random, 0.1):
            names = names[1:]
        elif maybe(random, 0.03):
            names.append("z")
        if names or maybe(random, 0.5):
            status[key] = [draw_container_status(random, name, wall) for name in names]
    kinds = [kind for kind in CONDITIONS if maybe(random, 0.3)]
    if kinds:
        random.shuffle(kinds)
        status["conditions"] = [draw_condition(random, kind) for kind in kinds]
    return status
