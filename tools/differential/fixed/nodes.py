"""The Lease of a node, the thresholds of its pressure, and the pods that it takes, as fixed histories."""

from typing import Any

from tools.differential.target import History
from tools.differential.worlds import START, Json


def _step(wall: float, node: str = "uid", **faults: list[str]) -> Json:
    return {"wall": wall, "nodeUID": node, "faults": faults}


def _renewed(*steps: Json, duration_s: int = 40) -> History:
    return {"durationS": duration_s, "steps": list(steps)}


_DELETED: Any = {"lease": "deleted"}
LEASE: dict[str, History] = {
    **{
        f"N105: a Lease of {duration_s} s that cannot be read": _renewed(
            _step(0, get=["error"] * 4), duration_s=duration_s
        )
        for duration_s in (1, 4, 40)
    },
    "N105: renewals fail, reads do not": _renewed(_step(0), _step(10, update=["always"]), _step(20)),
    "N105: neither succeeds": _renewed(_step(0), _step(10, update=["always"], get=["always"]), _step(90)),
    "N105: a conflict, and no read after it": _renewed(_step(0), _step(1, update=["conflict"], get=["error"] * 3)),
    "N105: conflicts without end": _renewed(_step(0), _step(10, update=["conflict"] * 12)),
    "N91: the Node goes with its Lease": _renewed(_step(0), {**_step(10, ""), **_DELETED}, _step(20)),
    "N91: a Lease is not made before its Node": _renewed(_step(0, ""), _step(10, ""), _step(20)),
}

_LOOK = {"wall": START, "observed": {"memory.available": (300, 0)}}
_LOOK |= {"away": False, "imagesApart": False, "containersApart": False}
EVICTION: dict[str, History] = {
    f"N106: a threshold of {amount}": {
        "hard": {"memory.available": amount},
        "soft": {},
        "grace": {},
        "reclaim": {"memory.available": amount},
        "transition": 0.0,
        "steps": [_LOOK],
    }
    for amount in ("k", ".", "-", "e3", "Ei", "e-10", "1e-20", "5.Ei", "9999Ei", "1e0002")
}


def _taken(*steps: str, capacity: int = 1) -> History:
    """A step is a word and a pod: `put a`. One that is `gone` is being deleted when it comes, `over`: it has failed."""
    words = [step.split() for step in steps]
    made = [{"op": "put" if op in ("gone", "over") else op, "uid": uid[0] if uid else ""} for op, *uid in words]
    flags = [{"deleted": op == "gone", "failed": op == "over"} for op, *_ in words]
    return {"capacity": capacity, "steps": [step | flag for step, flag in zip(made, flags, strict=True)]}


INTAKE: dict[str, History] = {
    "PW17: another client calls a pod Failed, and it is written again": _taken("put a", "fail a", "echo a", "sync a"),
    "PW17: something else has it synced before": _taken("put a", "fail a", "sync a", "ended a"),
    "PW15: a pod that is being deleted comes to a full node": _taken("put a", "gone b", "echo b", "house", "echo b"),
    "PW15: it comes to a node with room": _taken("put a", "gone b", "ended b", capacity=2),
    "PW12: a pod is force-deleted while its container ends": _taken("put a", "remove a", "put b", "ended a", "house"),
    "PW12: it is being deleted": _taken("put a", "delete a", "put b", "ended a", "put c"),
    "PW12: another client calls it Failed": _taken("put a", "fail a", "put b"),
    "PW12: one that was over takes none": _taken("over a", "put b"),
    "PW16: a refused pod gets other labels": _taken("put a", "put b", "echo b", "label b", "label b"),
    "PW16: it is deleted": _taken("put a", "put b", "echo b", "delete b", "house"),
    "PW16: it is deleted before its status is written": _taken("put a", "put b", "delete b", "echo b", "house"),
}
