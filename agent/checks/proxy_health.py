"""What kube-proxy reports of itself at /healthz and /livez, read alike for all its releases. Pure.

| kube-proxy | /healthz answers 503 | keys of /healthz | /livez |
|---|---|---|---|
| 1.16 and earlier | after no sync for its limit | `lastUpdated`, `currentTime` | none |
| 1.17 to 1.27 | after a change waited for its limit | the same | none |
| from 1.28 on | also where the node is about to be deleted | also `nodeEligible` | 503 after such a wait alone |
| from kubernetes#129271 on | the same | also `healthy`, `status` | also `healthy`, `status` |

Mirrors pkg/proxy/healthcheck of kube-proxy (kubernetes#83498, #116470, #129271). A 200 shows the current time as
`lastUpdated`, so `lastUpdated` of a 503 is old also where the proxier is well and had nothing to do. A proxier that has
not synced yet shows Go's zero time, and answers 200. Cilium in its place also answers 503 where the node is deleted
(cilium#40166), but in the words of 1.27, which do not say why: that stays a fault.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

import msgspec

from kube.times import parse_time

WELL = ""
NOT_ITS_ANSWER, TOO_OLD, NOT_HEALTHY = "no answer of kube-proxy's", "its rules are too old", "not healthy"
_OF_GO = re.compile(r"([\d-]{10}) ([\d:]{8}(?:\.\d+)?) ([+-]\d{4})\b")
_ZERO_TIME = "0001-01-01"


@dataclass(frozen=True, slots=True)
class _Answer:
    """`age_s`: from lastUpdated to currentTime; None where the proxier has not synced yet."""

    code: int
    keys: dict[str, Any]
    age_s: float | None


def needs_livez(healthz: bytes) -> bool:
    """Whether /healthz alone leaves open if the proxier is well: the node is about to be deleted, which alone explains
    the 503, and kube-proxy's release has no key `healthy` yet."""
    answer = _answer(healthz)
    return answer is not None and answer.keys.get("nodeEligible") is False and "healthy" not in answer.keys


def read(healthz: bytes, max_age_s: float, livez: bytes = b"") -> tuple[str, str]:
    """WELL or what is wrong, and a detail. `livez`: the answer of /livez where needs_livez(); empty: none came."""
    answer = _answer(healthz)
    if answer is None:
        return NOT_ITS_ANSWER, ""
    if answer.keys.get("nodeEligible") is False:
        healthy = answer.keys["healthy"] if "healthy" in answer.keys else _is_alive(livez)
        if healthy is not False:
            return WELL, "of a node that is about to be deleted"
    if answer.age_s is not None and answer.age_s > max_age_s:
        return TOO_OLD, f"{answer.age_s:.0f} s"
    if answer.code != 200:
        return NOT_HEALTHY, f"status {answer.code}"
    return WELL, "it has not set rules yet" if answer.age_s is None else f"rules {answer.age_s:.0f} s old"


def _is_alive(livez: bytes) -> bool | None:
    """None where the answer does not tell. kube-proxy's /livez never has `nodeEligible`: one that has it comes from a
    server that makes no difference between the two paths."""
    answer = _answer(livez)
    if answer is None or "nodeEligible" in answer.keys:
        return None
    return {200: True, 503: False}.get(answer.code)


def _answer(response: bytes) -> _Answer | None:
    status, _, body = response.partition(b"\r\n\r\n")
    try:
        code = int(status.split(None, 2)[1])
        keys: dict[str, Any] = json.loads(body[body.index(b"{") : body.rindex(b"}") + 1])
        updated, current = keys["lastUpdated"], _time(keys["currentTime"])
        age_s = None if updated.startswith(_ZERO_TIME) else current - _time(updated)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, msgspec.ValidationError):
        return None
    return _Answer(code, keys, age_s)


def _time(text: str) -> float:
    """As JSON has it, or as Go prints it: so Cilium, OVN-Kubernetes and earlier releases of kube-proxy write it."""
    printed = _OF_GO.match(text)
    found = parse_time(f"{printed[1]}T{printed[2]}{printed[3]}" if printed else text)
    if found is None:
        raise ValueError("no time")
    return found
