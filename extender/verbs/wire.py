"""The scheduler's words: ExtenderArgs, ExtenderFilterResult (kubernetes staging/src/k8s.io/kube-scheduler/extender/v1).

Those Go types have no JSON tags, so the keys are `Pod`, `NodeNames`, `FailedAndUnresolvableNodes`. Go's decoder ignores
case, ours does not, so replies spell them exactly and requests are accepted in any case of the top keys.

Only what is needed is decoded; Node objects stay the bytes they were and go back unchanged. What a request may hold:
unknown keys are ignored, of a doubled key the last one counts, NaN, Infinity, a byte order mark and trailing bytes are
refused as malformed.
"""

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from kube.objects import OwnerReference

# 5,000 names are 0.2 MiB beside a Pod of at most 1.5 MiB; 5,000 whole Node objects are 57 MB.
BODY_LIMIT_NAMES_BYTES = 8 * 2**20
BODY_LIMIT_NODES_BYTES = 64 * 2**20

NEITHER = (
    "readygate: the request holds neither NodeNames nor Nodes: "
    "set nodeCacheCapable true for this extender in the scheduler configuration"
)
NO_POD = "readygate: the request holds no Pod"
NAMELESS_NODE = "readygate: a Node of the request has no metadata.name, or an empty name was asked for"


class RequestError(Exception):
    """The request cannot be answered with a verdict."""


class MalformedError(RequestError):
    """The body is not an ExtenderArgs. The text is short and holds nothing of the body."""


class UnanswerableError(RequestError):
    """The body is well-formed and cannot be answered; the text goes to the user through `Error`."""


class PodMeta(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str = ""
    namespace: str = ""
    labels: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None


class PodSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    priority_class_name: str = ""
    priority: int | None = None


class Pod(msgspec.Struct, frozen=True, gc=False):
    """The pod to be placed, as far as exemptions look at it."""

    metadata: PodMeta | None = None
    spec: PodSpec | None = None


class NodeList(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    items: list[msgspec.Raw] | None = None
    metadata: msgspec.Raw = msgspec.Raw(b"{}")


class FilterArgs(msgspec.Struct, frozen=True, gc=False, rename="pascal"):
    pod: Pod | None = None
    nodes: NodeList | None = None
    node_names: list[str] | None = None


class _NodesReply(msgspec.Struct, frozen=True, gc=False):
    metadata: msgspec.Raw
    items: list[msgspec.Raw]


class _FilterResult(msgspec.Struct, frozen=True, gc=False, rename="pascal"):
    nodes: _NodesReply | None
    node_names: list[str] | None
    failed_nodes: dict[str, str]
    failed_and_unresolvable_nodes: dict[str, str]
    error: str = ""


class _NamedMeta(msgspec.Struct, frozen=True, gc=False):
    name: str = ""


class _NamedNode(msgspec.Struct, frozen=True, gc=False):
    metadata: _NamedMeta | None = None


T = TypeVar("T")

_args = msgspec.json.Decoder(FilterArgs)
_any_object = msgspec.json.Decoder(dict[str, msgspec.Raw])
_node = msgspec.json.Decoder(_NamedNode)
_encode = msgspec.json.Encoder().encode

# Never filled: preemption would try these nodes again, and with two of them its text changes at every attempt, which
# makes kube-scheduler retry the pod without pause.
_NO_FAILED_NODES: dict[str, str] = {}
_NO_METADATA = msgspec.Raw(b"{}")
_KEYS = {"pod": "Pod", "nodes": "Nodes", "nodenames": "NodeNames"}
_GO_NODE_START = b'{"metadata":{"name":"'


def read_filter_args(body: bytes) -> FilterArgs:
    """Raises MalformedError (not JSON, not an object, a wrong type) or UnanswerableError (no Pod, no nodes)."""
    args = _decode(_args, body)
    if args.pod is None or (args.nodes is None and args.node_names is None):
        args = _any_case(body)
        if args.pod is None:
            raise UnanswerableError(NO_POD)
        if args.nodes is None and args.node_names is None:
            raise UnanswerableError(NEITHER)
    return args


def _any_case(body: bytes) -> FilterArgs:
    """The same request with its top keys in any case: rare, so it is decoded a second time."""
    fields = {_KEYS[key.lower()]: raw for key, raw in _decode(_any_object, body).items() if key.lower() in _KEYS}
    return _decode(_args, _encode(fields))


def _decode(decoder: "msgspec.json.Decoder[T]", body: bytes | msgspec.Raw) -> T:
    try:
        return decoder.decode(body)
    except msgspec.DecodeError as e:
        raise MalformedError(f"not an ExtenderArgs object: {plain(str(e))}") from e
    except (RecursionError, UnicodeDecodeError) as e:
        raise MalformedError(f"not an ExtenderArgs object: {type(e).__name__}") from e


def names_of(items: Sequence[msgspec.Raw]) -> list[str]:
    """metadata.name of each Node. Raises MalformedError, or UnanswerableError for a Node without a name."""
    return [_name_of(item) for item in items]


def _name_of(item: msgspec.Raw) -> str:
    node = memoryview(item)
    # Go writes a Node's name first: slicing it out costs a tenth of decoding 12 kB for it.
    start = bytes(node[: len(_GO_NODE_START) + 254])
    if start.startswith(_GO_NODE_START):
        name, quote, _ = start[len(_GO_NODE_START) :].partition(b'"')
        if quote and name and b"\\" not in name and name.isascii():
            return name.decode()
    metadata = _decode(_node, item).metadata
    if metadata is None or not metadata.name:
        raise UnanswerableError(NAMELESS_NODE)
    return metadata.name


def write_names(survivors: list[str], refused: dict[str, str]) -> bytes:
    return _encode(_FilterResult(None, survivors, _NO_FAILED_NODES, refused))


def write_nodes(
    metadata: msgspec.Raw, items: list[msgspec.Raw], survivors: list[str] | None, refused: dict[str, str]
) -> bytes:
    """A reply in the shape of whole nodes, and in names too when both were asked for (survivors not None)."""
    # Go cannot decode a ListMeta from anything but an object, and would drop the whole answer.
    kept = metadata if bytes(memoryview(metadata)[:1]) == b"{" else _NO_METADATA
    return _encode(_FilterResult(_NodesReply(kept, items), survivors, _NO_FAILED_NODES, refused))


def write_error(text: str) -> bytes:
    """A failure that `kubectl describe pod` is to show: status 200, `Error` filled, nothing else."""
    return _encode(_FilterResult(None, None, _NO_FAILED_NODES, _NO_FAILED_NODES, plain(text)))


def plain(text: str) -> str:
    """kube-scheduler uses `Error` as a format string for the pod's event: a percent sign would be mangled."""
    return text.replace("%", "")
