"""Rows PH and PL: what a runtime's containers are for the phase of their pod, and as events."""

import re

from tests.agent.kubelet.status.test_phase import ROWS
from tools.differential.target import History
from tools.differential.worlds import ODD_TIMES, START, Json

# In the words of the rows; those that a runtime can show.
_STATES: dict[str, Json] = {
    "r": {"state": "running", "startedAt": START - 20},
    "r+": {"state": "running", "startedAt": START - 20},
    "ok": {"state": "exited", "exitCode": 0, "reason": "Completed"},
    "bad": {"state": "exited", "exitCode": 255, "reason": "Error"},
    "e42": {"state": "exited", "exitCode": 42, "reason": "Error"},
}
_NAMES = {"A": "a", "B": "b", "X": "i", "S": "j"}
_RULE = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}
_PART = re.compile(r"([ABXS]) ([a-z0-9+-]+)(?:\[(\w+)\])?")
_CELLS = re.compile(r"^(PH\d+) (\w+): (.*) -> \w+(.*)$", re.MULTILINE)


def _pod(policy: str, parts: list[tuple[str, str, str]]) -> Json:
    spec: Json = {"restartPolicy": policy, "containers": [], "initContainers": []}
    for letter, _, own in parts:
        container: Json = {"name": _NAMES[letter]}
        if letter == "S":
            container["restartPolicy"] = "Always"
        if own == "rule":
            container |= {"restartPolicy": "Never", "restartPolicyRules": [_RULE]}
        elif own:
            container["restartPolicy"] = own
        spec["containers" if letter in "AB" else "initContainers"].append(container)
    meta = {"uid": "u", "name": "pod-u", "namespace": "default", "generation": 1}
    return {"metadata": meta, "spec": spec, "status": {"phase": "Pending"}}


def _synced(policy: str, told: str, flags: str) -> History:
    """The pod as it is seen once, and what is written of it."""
    parts = _PART.findall(told)
    instances = [
        {"id": f"test://{_NAMES[letter]}1", "name": _NAMES[letter], "createdAt": START - 30 - place, "restartCount": 0}
        | _STATES[state]
        | {"sandbox": "s1"}
        for place, (letter, state, _) in enumerate(parts)
        if state in _STATES
    ]
    sandboxes = [{"id": "s1", "ready": True, "hostNetwork": False, "ip": "10.0.0.1"}]
    probes = {_NAMES[letter]: (state != "r" or letter != "S", False) for letter, state, _ in parts}
    step = {"op": "sync", "wall": START, "errors": {}, "probes": probes, "terminal": "term" in flags}
    step |= {"host": "192.168.0.1", "runtime": {"sandboxes": sandboxes, "containers": instances}}
    written = {"op": "batch", "wall": START, "all": True, "couldRun": False, "fault": ""}
    return {"pod": _pod(policy, parts), "steps": [step, written]}


STATUS: dict[str, History] = {
    f"{row}: {policy}, {told}{flags}": _synced(policy, told, flags)
    for row, policy, told, flags in _CELLS.findall(ROWS)
    if all(state in ("-", *_STATES) for _, state, _ in _PART.findall(told))
}
for _time in ODD_TIMES:
    _history = _synced("Always", "A r", "")
    _history["pod"]["status"]["startTime"] = _time
    STATUS[f"N107: a start at {_time}"] = _history


def _seen(before: str, after: str) -> History:
    """Two lists, with one container in these states."""
    worlds = [{"p": {"c": [["c", state]] if state != "none" else [], "s": [], "ip": ""}} for state in (before, after)]
    steps = [{"op": "relist", "wall": START + number, "uid": "p", "pods": world} for number, world in enumerate(worlds)]
    return {"evented": False, "room": 1000, "steps": steps}


_ROW_BEFORE = {"running": "PL1", "exited": "PL2", "created": "PL3", "unknown": "PL3", "none": "PL4"}
PLEG: dict[str, History] = {
    f"{row}: {before}, then {after}": _seen(before, after)
    for before, row in _ROW_BEFORE.items()
    for after in _ROW_BEFORE
}
