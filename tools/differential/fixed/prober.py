"""Rows D, W, M and R: what a worker does, one look after the other.

A script is read word by word. `runs`, `waits`, `ends 1` and the like is a new status of the container `c`; `add`,
`stop`, `remove`, `cleanup`, `update` is done to the manager; S F E W U P is one look of all workers, a second later,
whose probe succeeds, fails, errors, warns, is unknown, panics.
"""

from typing import Any

from tools.differential.target import History
from tools.differential.worlds import START, Json, text_time

KINDS = ("liveness", "readiness", "startup")
L, R, S = KINDS
OUTCOMES = {"S": "success", "F": "failure", "E": "error", "W": "warning", "U": "unknown", "P": "panic"}
RESTART_1 = {"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}
RESTART_99 = {"action": "Restart", "exitCodes": {"operator": "In", "values": [99]}}
NO_CODES = {"action": "Restart"}

# (rows, sentence, script, what is not as usual): `probe` its fields, `kinds` of it, `policy` of the pod, `own` fields
# of the container, `sidecar`, `deleted`.
ROWS: tuple[tuple[str, str, str, Json], ...] = (
    ("W1 D1", "no status", "add, S", {}),
    ("W2 D2", "the pod has failed", "failed, add, S", {}),
    ("W2", "the pod has succeeded", "succeeded, add, S", {}),
    ("W3 D7", "the pod is being deleted", "runs, add, S, S", {"deleted": True}),
    ("W4 D3", "a status of another container only", "other, add, S", {}),
    ("W5 D6", "it waits", "waits, add, S", {}),
    ("W6", "it has ended for good", "ends 0, add, S", {}),
    ("W7 D16", "it runs and succeeds", "runs, add, S", {}),
    ("W8", "a delay below zero", "runs, add, S", {"probe": {"initialDelaySeconds": -100}}),
    ("W9-W11 D8", "within the delay", "runs, add, S", {"probe": {"initialDelaySeconds": 10}}),
    ("W12", "after the delay", "runs 100 ago, add, S", {"probe": {"initialDelaySeconds": 10}}),
    (
        "W13-W15 D13 D14",
        "failures up to the threshold",
        "runs, add, S, S, S, F, F, F, F, F, S",
        {"probe": {"failureThreshold": 3}},
    ),
    ("W16-W18", "successes up to the threshold", "runs, add, F, S, S, S, S, F", {"probe": {"successThreshold": 3}}),
    ("W19", "it has started", "runs unstarted, add, S, S", {"kinds": [S], "probe": {"failureThreshold": 3}}),
    (
        "W20-W21",
        "it does not start",
        "runs unstarted, add, F, F, F, F",
        {"kinds": [S], "probe": {"failureThreshold": 3}},
    ),
    ("W22", "the pod is removed", "runs, add, S, remove, S, remove", {}),
    (
        "W23-W27 D5",
        "on hold until another comes",
        "runs unstarted, add, F, S, runs unstarted as 2, S, S",
        {"kinds": [S]},
    ),
    ("W23-W25 D4 D15", "alive again under another id", "runs, add, F, S, runs as 2, S", {"kinds": [L]}),
    ("W28-W30 D12", "runs of results", "runs, add, S, F, F, F", {"probe": {"failureThreshold": 3}}),
    ("W32-W33 D10", "not probed until it has started", "runs unstarted, add, F, runs, F", {"kinds": [L, R]}),
    (
        *("W34-W36 D9", "not probed once it has started", "runs unstarted, add, F, S, runs, F"),
        {"kinds": [S], "probe": {"failureThreshold": 2}},
    ),
    ("W37 D0", "the probe panics", "runs, add, P, S", {}),
    ("W38", "a sidecar has ended, policy Never", "ends 1, add, S", {"sidecar": True}),
    ("W39", "it has ended with 1, policy Never", "ends 1, add, S", {}),
    ("W40", "it has ended with 1, policy OnFailure", "ends 1, add, S", {"policy": "OnFailure"}),
    ("W41", "it has ended with 0, policy OnFailure", "ends 0, add, S", {"policy": "OnFailure"}),
    ("W42", "its own policy Never", "ends 1, add, S", {"policy": "Always", "own": {"restartPolicy": "Never"}}),
    ("W44", "it ran eleven seconds before us", "runs 11 ago, add, F, S", {}),
    ("W45", "it ran nine seconds before us", "runs 9 ago, add, F, S", {}),
    ("W47", "a sidecar from before that has started", "runs 300 ago, add, S", {"sidecar": True}),
    ("W48 D11", "it errors again and again", "runs, add, S, E, E, E, E, E", {}),
    ("W49", "an error between failures", "runs, add, F, E, F", {"probe": {"failureThreshold": 2}}),
    ("W50", "its id is empty", "runs without id, add, S", {}),
    ("W54", "another id after a success", "runs, add, S, runs as 2, F, S", {}),
    *(
        (
            f"W{row}",
            f"own policy {policy}, ended with {code}",
            f"ends {code}, add, S",
            {"own": {"restartPolicy": policy}},
        )
        for row, policy, code in (
            *((55, "OnFailure", 1), (56, "OnFailure", 0), (57, "Always", 1), (58, "Always", 0)),
            *((59, "Never", 1), (60, "Never", 0)),
        )
    ),
    *(
        (row, told, "ends 1, add, S", {"own": {"restartPolicy": "Never", "restartPolicyRules": rules}})
        for row, told, rules in (
            ("W61", "a rule for its exit code", [RESTART_1]),
            ("W62", "a rule for another one", [RESTART_99]),
            ("W83", "a rule without exit codes, then one that matches", [NO_CODES, RESTART_1]),
        )
    ),
    ("W66-W68", "from long before us", "runs 300 ago, add, S", {"probe": {"initialDelaySeconds": 1000}}),
    ("W69-W71", "from after our start", "runs 300 later, add, S", {"probe": {"initialDelaySeconds": 1000}}),
    (
        *("W78-W80", "a sidecar from long before us", "runs 300 ago, add, S"),
        {"sidecar": True, "probe": {"initialDelaySeconds": 1000}},
    ),
    (
        *("W81", "a sidecar from after our start", "runs 300 later, add, S"),
        {"sidecar": True, "probe": {"initialDelaySeconds": 1000}},
    ),
    ("M1", "a pod without probes", "runs, add, S, update", {"kinds": []}),
    ("M6", "an init container that ends", "runs, add, S, update", {"sidecar": True, "own": {"restartPolicy": None}}),
    ("M7", "a sidecar comes and goes", "runs, add, S, remove, S", {"sidecar": True}),
    ("M8", "it is added again", "runs, add, add, S", {"kinds": list(KINDS)}),
    ("M9", "what is kept of a pod", "runs, add, S, cleanup, S", {}),
    ("M11", "liveness alone says nothing of ready", "runs, add, update", {"kinds": [L]}),
    ("M12", "ready after a success", "runs, add, S, update", {"kinds": [R]}),
    ("M13", "not ready before a result", "runs, add, update", {"kinds": [R]}),
    ("M14", "not ready after a failure", "runs, add, F, update", {"kinds": [R]}),
    ("M15", "not ready before it has started", "runs unstarted, add, update", {"kinds": [S]}),
    ("M16", "ready when it has started", "runs unstarted, add, S, update", {"kinds": [S]}),
    ("M17", "not ready when it has ended", "runs, add, S, ends 1, update", {"kinds": [R]}),
    ("M18", "a sidecar before it has started", "runs unstarted, add, update", {"kinds": [S], "sidecar": True}),
    ("M22", "a sidecar that has started", "runs unstarted, add, S, update", {"kinds": [S], "sidecar": True}),
    ("M23", "a sidecar that has ended", "ends 0, add, S, update", {"kinds": [S], "sidecar": True}),
    ("M37", "only readiness is probed on", "runs, add, S, stop, F, update", {"kinds": list(KINDS)}),
    ("M37", "a sidecar is probed on", "runs, add, S, stop, F, update", {"sidecar": True}),
    ("M39", "it has started, says the status", "runs, add, update", {"kinds": [S]}),
)
_COMMON = {
    "initialDelaySeconds": 0,
    "timeoutSeconds": 1,
    "periodSeconds": 1,
    "successThreshold": 1,
    "failureThreshold": 1,
}


def _history(script: str, kinds: list[str], given: Json) -> History:
    container: Json = {"name": "c", **{f"{kind}Probe": {**_COMMON, **given.get("probe", {})} for kind in kinds}}
    if given.get("sidecar"):
        container["restartPolicy"] = "Always"
    container |= given.get("own", {})
    spec: Json = {"containers": [container], "restartPolicy": given.get("policy", "Never")}
    if given.get("sidecar"):
        spec |= {"containers": [{"name": "z"}], "initContainers": [container]}
    meta: Json = {"uid": "u", "name": "pod", "namespace": "default"}
    if given.get("deleted"):
        meta |= {"deletionTimestamp": text_time(START), "deletionGracePeriodSeconds": 30}
    key, wall, steps = "initContainerStatuses" if given.get("sidecar") else "containerStatuses", START, list[Json]()
    status: Any = {}
    for word in script.split(", "):
        step: Json = {"wall": wall, "ahead": 0.0, "pod": 0}
        if word in OUTCOMES:
            wall += 1.0
            steps.append({**step, "wall": wall, "op": "probe", "outcomes": [[OUTCOMES[word]]]})
        elif word in ("add", "stop", "remove", "cleanup"):
            steps.append({**step, "op": word})
        elif word == "update":
            steps.append({**step, "op": "update", "status": status})
        else:
            status = _status(word, key, wall)
            steps.append({**step, "op": "status", "status": status})
    return {"start": START, "pods": [{"metadata": meta, "spec": spec}], "steps": steps}


def _status(told: str, key: str, wall: float) -> Json:
    """`runs 11 ago unstarted as 2`, `runs 300 later`, `runs without id`, `waits`, `ends 1`, `failed`, `other`."""
    words = told.split()
    status: Json = {"name": "other" if told == "other" else "c", "lastState": {}, "ready": False, "restartCount": 0}
    status |= {"image": "", "imageID": "", "started": "unstarted" not in words}
    if "without id" not in told:
        status["containerID"] = f"test://c{words[-1] if 'as' in words else 1}"
    state: Json = {"running": {"startedAt": text_time(wall)}}
    if "ago" in words:
        state = {"running": {"startedAt": text_time(wall - int(words[1]))}}
    if "later" in words:
        state = {"running": {"startedAt": text_time(wall + int(words[1]))}}
    if words[0] == "waits":
        state = {"waiting": {"reason": "ContainerCreating"}}
    if words[0] == "ends":
        state = {"terminated": {"exitCode": int(words[1]), "reason": "Error"}}
    phase = told.capitalize() if told in ("failed", "succeeded") else "Running"
    return {"phase": phase, key: [{**status, "state": state}]}


def _kinds(given: Json) -> list[list[str]]:
    """Each kind alone, or those that are given: several of them together."""
    kinds = given.get("kinds", KINDS)
    return [[kind] for kind in kinds] if kinds is KINDS or len(kinds) == 1 or kinds == [L, R] else [kinds]


CASES: dict[str, History] = {
    ", ".join((f"{rows}: {told}", *kinds)): _history(script, kinds, given)
    for rows, told, script, given in ROWS
    for kinds in _kinds(given)
}
