"""The Lease of a node and the thresholds of its pressure, as fixed histories."""

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
        f"N96: a Lease of {duration_s} s that cannot be read": _renewed(
            _step(0, get=["error"] * 4), duration_s=duration_s
        )
        for duration_s in (1, 4, 40)
    },
    "N96: renewals fail, reads do not": _renewed(_step(0), _step(10, update=["always"]), _step(20)),
    "N96: neither succeeds": _renewed(_step(0), _step(10, update=["always"], get=["always"]), _step(90)),
    "N96: a conflict, and no read after it": _renewed(_step(0), _step(1, update=["conflict"], get=["error"] * 3)),
    "N96: conflicts without end": _renewed(_step(0), _step(10, update=["conflict"] * 12)),
    "N91: the Node goes with its Lease": _renewed(_step(0), {**_step(10, ""), **_DELETED}, _step(20)),
    "N91: a Lease is not made before its Node": _renewed(_step(0, ""), _step(10, ""), _step(20)),
}

_LOOK = {"wall": START, "observed": {"memory.available": (300, 0)}}
_LOOK |= {"away": False, "imagesApart": False, "containersApart": False}
EVICTION: dict[str, History] = {
    f"N97: a threshold of {amount}": {
        "hard": {"memory.available": amount},
        "soft": {},
        "grace": {},
        "reclaim": {"memory.available": amount},
        "transition": 0.0,
        "steps": [_LOOK],
    }
    for amount in ("k", ".", "-", "e3", "Ei", "e-10", "1e-20", "5.Ei", "9999Ei", "1e0002")
}
