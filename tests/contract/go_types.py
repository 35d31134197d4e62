"""What kube-scheduler decodes a reply into, as strictly as Go's types are: k8s.io/kube-scheduler/extender/v1.

Stricter in one thing: Go ignores keys it does not know and the case of those it does, we want neither.
"""

from typing import Any

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
