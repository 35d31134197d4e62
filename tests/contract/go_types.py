"""What kube-scheduler decodes a reply into, as strictly as Go's types are: k8s.io/kube-scheduler/extender/v1.

Stricter in one thing: Go ignores keys it does not know and the case of those it does, we want neither.
"""

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec


class NodeList(msgspec.Struct, forbid_unknown_fields=True):
    items: list[dict[str, Any]]
    metadata: dict[str, Any]


class ExtenderFilterResult(msgspec.Struct, forbid_unknown_fields=True):
    Nodes: NodeList | None
    NodeNames: list[str] | None
    FailedNodes: dict[str, str]
    FailedAndUnresolvableNodes: dict[str, str]
    Error: str


_decoder = msgspec.json.Decoder(ExtenderFilterResult, strict=True)


def read_filter_result(body: bytes) -> ExtenderFilterResult:
    """Raises on any difference of type, a missing or unknown key, or a byte behind the object."""
    assert body[:1] == b"{"
    assert body[-1:] == b"}"
    return _decoder.decode(body)


class MetaPod(msgspec.Struct):
    UID: str = ""


class MetaVictims(msgspec.Struct):
    """It is given back as it came, with keys that a later kube-scheduler may send."""

    Pods: list[MetaPod] = []
    NumPDBViolations: Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)] = 0


class ExtenderPreemptionResult(msgspec.Struct, forbid_unknown_fields=True):
    NodeNameToMetaVictims: dict[str, MetaVictims]


class HostPriority(msgspec.Struct, forbid_unknown_fields=True):
    Host: str
    Score: Annotated[int, msgspec.Meta(ge=0, le=10)]


class ExtenderBindingResult(msgspec.Struct, forbid_unknown_fields=True):
    Error: str


_preemption = msgspec.json.Decoder(ExtenderPreemptionResult, strict=True)
_priorities = msgspec.json.Decoder(list[HostPriority], strict=True)
_binding = msgspec.json.Decoder(ExtenderBindingResult, strict=True)


def read_preemption_result(body: bytes) -> dict[str, MetaVictims]:
    """As strictly; a null in it would end kube-scheduler."""
    assert not list(_nulls(msgspec.json.decode(body)))
    return _preemption.decode(body).NodeNameToMetaVictims


def _nulls(value: object) -> Iterator[None]:
    if value is None:
        yield None
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _nulls(inner)


def read_priorities(body: bytes) -> dict[str, int]:
    """By host; none twice."""
    found = _priorities.decode(body)
    scores = {one.Host: one.Score for one in found}
    assert len(scores) == len(found)
    return scores


def read_binding_result(body: bytes) -> str:
    return _binding.decode(body).Error
