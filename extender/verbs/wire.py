"""JSON of the scheduler extender: ExtenderArgs and ExtenderFilterResult (kubernetes
staging/src/k8s.io/kube-scheduler/extender/v1).

Those Go types have no JSON tags, so the keys are `Pod`, `NodeNames`, `FailedAndUnresolvableNodes`. Go's decoder ignores
case and msgspec does not. So replies have exactly these keys, and requests may have the top keys in any case.

Only needed fields are decoded. Whole Node objects (`nodeCacheCapable: false`) are not answered: 5,000 of them are 57 MB
a pod to read, keep and send back, and their names are 0.2 MB. Unknown keys are ignored. Of a repeated key the last one
counts. NaN, Infinity, a byte order mark and trailing bytes are malformed.
"""

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from extender.verbs.pods import Pod, WholePod

# 5,000 names take 0.2 MiB, and a Pod at most 1.5 MiB.
BODY_LIMIT_BYTES = 8 * 2**20
NAMES_MAX = 65_536
# kube-scheduler names nodes of its own cache, which is ahead of the extender's by a new node pool at most.
SPARE_NAMES = 1_000
SHORT_BYTES = 3 * SPARE_NAMES  # fewer names than that fit: an empty name and its comma take three bytes
# Shorter requests are not scanned, because a scan costs 5 % of a usual answer. A request that names all known nodes,
# with names of 45 characters, has 24 bytes for each name of the limit. A shorter request holds at most eight times as
# many names as the limit; they are counted when they are decoded.
SCANNED_NAME_BYTES = 24
# A decoded value takes up to 250 bytes of memory, so values are counted before decoding, by their commas. Commas within
# texts count too: three times the limit of names leaves room for a Pod that is full of them. A value and its comma take
# at least two bytes, so shorter bodies need no count, which would cost a tenth of a call with 5,000 names.
VALUES_MAX = 3 * NAMES_MAX
UNCOUNTED_BYTES = 2 * VALUES_MAX

_SET = "set nodeCacheCapable true for this extender in the scheduler configuration"
NEITHER = f"readygate: the request holds no NodeNames, or whole Nodes instead: {_SET}"
TOO_LARGE = f"readygate: the request has more than {BODY_LIMIT_BYTES} bytes, as with whole Nodes in it: {_SET}"
NO_POD = "readygate: the request holds no Pod"
NAMELESS_NODE = "readygate: an empty name was asked for"


class RequestError(Exception):
    """The request cannot be answered with a verdict."""


class MalformedError(RequestError):
    """The body is not an ExtenderArgs. The text is short and holds nothing of the body."""


class UnanswerableError(RequestError):
    """The body is well-formed and cannot be answered. The text goes to the user in `Error`."""


class TooManyNodesError(RequestError):
    """The request names more nodes than the limit, and is answered with the status 413."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"readygate: the request names more nodes than the limit of {limit}")


class FilterArgs(msgspec.Struct, frozen=True, gc=False, rename="pascal"):
    pod: Pod | None = None
    node_names: list[str] | None = None


class WrittenArgs(msgspec.Struct, frozen=True, gc=False):
    """A request in kube-scheduler's own form, whose names are not decoded. names: the bytes between the brackets of
    NodeNames."""

    pod: Pod
    names: bytes


class _NamesAlone(msgspec.Struct, frozen=True, gc=False, rename="pascal"):
    node_names: msgspec.Raw = msgspec.Raw()


class _WholeFilterArgs(FilterArgs, frozen=True, gc=False, rename="pascal"):
    pod: WholePod | None = None


class _FilterResult(msgspec.Struct, frozen=True, gc=False, rename="pascal"):
    nodes: None
    node_names: list[str] | None
    failed_nodes: dict[str, str]
    failed_and_unresolvable_nodes: dict[str, str]
    error: str = ""


T = TypeVar("T")

_pod: msgspec.json.Decoder[Pod] = msgspec.json.Decoder(Pod)
_whole_pod: msgspec.json.Decoder[Pod] = msgspec.json.Decoder(WholePod)
_args: msgspec.json.Decoder[FilterArgs] = msgspec.json.Decoder(FilterArgs)
_whole_args: msgspec.json.Decoder[FilterArgs] = msgspec.json.Decoder(_WholeFilterArgs)
_names_alone = msgspec.json.Decoder(_NamesAlone)
_any_object = msgspec.json.Decoder(dict[str, msgspec.Raw])
_encode = msgspec.json.Encoder().encode

# Never filled: preemption would try these nodes again. With two of them its text changes at every attempt, which makes
# kube-scheduler retry the pod without pause.
_NO_FAILED_NODES: dict[str, str] = {}
_FIRST_KEY, _LAST_KEYS, _END = b'{"Pod":', b',"Nodes":null,"NodeNames":[', b"]}"  # Go's encoder writes no blanks
_FIRST_KEY_BYTES, _LAST_KEYS_BYTES = len(_FIRST_KEY), len(_LAST_KEYS)
_KEYS = {"pod": "Pod", "nodenames": "NodeNames"}


def read_as_written(body: bytes | bytearray, *, whole: bool = False) -> WrittenArgs | None:
    """Reads a request in exactly the form that kube-scheduler writes. Returns None for any other form, which
    read_filter_args() decodes.

    The bytes between the first key and the last two keys are decoded as a Pod. So they are one whole object, and these
    are the other keys. The names are not checked here.
    """
    if len(body) > UNCOUNTED_BYTES:
        return None
    begin = _names_begin(body)
    if not begin:
        return None
    try:
        pod = (_whole_pod if whole else _pod).decode(memoryview(body)[_FIRST_KEY_BYTES : begin - _LAST_KEYS_BYTES])
    except _UNDECODABLE:
        return None
    return WrittenArgs(pod, bytes(body[begin:-2]))


def _names_begin(body: bytes | bytearray) -> int:
    """Returns the offset of the first name in a request in kube-scheduler's own form, 0 for any other form."""
    begin = body.rfind(b"[") + 1
    usual = (
        body.startswith(_LAST_KEYS, begin - _LAST_KEYS_BYTES)
        and body.startswith(_FIRST_KEY)
        and body.endswith(_END, begin)
    )
    return begin if usual else 0


def names_max_of(known: int) -> int:
    """Returns how many nodes a request may name. known: the number of nodes in a cache that is synced and not stale."""
    return min(NAMES_MAX, 2 * known + SPARE_NAMES)


def refuse_too_many(body: bytes | bytearray, names_max: int) -> None:
    """Raises TooManyNodesError if a long body has more than names_max entries in NodeNames. Decodes no name.

    Counts the commas between the brackets of NodeNames only: node names have none, and commas in the Pod do not count.
    read_filter_args() counts the names of shorter bodies, and names under a key in another case.
    """
    if len(body) <= SCANNED_NAME_BYTES * names_max:
        return
    begin = _names_begin(body)
    if begin:
        commas = body.count(b",", begin)
    else:
        try:
            commas = bytes(_names_alone.decode(body).node_names).count(b",")
        except _UNDECODABLE:
            return
    if commas >= names_max:
        raise TooManyNodesError(names_max)


def read_filter_args(body: bytes | bytearray, *, whole: bool = False, names_max: int = NAMES_MAX) -> FilterArgs:
    """Decodes a request. whole: with the pod's containers and volumes. Raises MalformedError (not JSON, not an object,
    a wrong type, too many values), UnanswerableError (no Pod, no names) or TooManyNodesError."""
    decoder = _whole_args if whole else _args
    if len(body) > UNCOUNTED_BYTES and body.count(b",") > VALUES_MAX:
        raise MalformedError("more JSON values than any request has")
    try:
        args = decoder.decode(body)
    except _UNDECODABLE as e:
        raise _malformed(e) from e
    if args.pod is None or args.node_names is None:
        args = decode_any_case(decoder, body, _KEYS)
        if args.pod is None:
            raise UnanswerableError(NO_POD)
        if args.node_names is None:
            raise UnanswerableError(NEITHER)
    if len(args.node_names) > names_max:
        raise TooManyNodesError(names_max)
    return args


def decode_whole(decoder: "msgspec.json.Decoder[T]", body: bytes | bytearray) -> T:
    """Decodes a body unless it has too many values for the memory. Raises MalformedError."""
    if len(body) > UNCOUNTED_BYTES and body.count(b",") > VALUES_MAX:
        raise MalformedError("more JSON values than any request has")
    return decode(decoder, body)


def decode_any_case(decoder: "msgspec.json.Decoder[T]", body: bytes | bytearray, keys: Mapping[str, str]) -> T:
    """Decodes a request with its top keys in any case. Such requests are rare, so this is a second decoding. keys:
    exact keys by those in lower case."""
    fields = {keys[key.lower()]: raw for key, raw in decode(_any_object, body).items() if key.lower() in keys}
    return decode(decoder, _encode(fields))


def decode(decoder: "msgspec.json.Decoder[T]", body: bytes | bytearray | msgspec.Raw) -> T:
    """Decodes bytes. Raises MalformedError."""
    try:
        return decoder.decode(body)
    except _UNDECODABLE as e:
        raise _malformed(e) from e


_UNDECODABLE = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)


def _malformed(error: Exception) -> MalformedError:
    cause = plain(str(error)) if isinstance(error, msgspec.DecodeError) else type(error).__name__
    return MalformedError(f"not what kube-scheduler sends: {cause}")


def write_names(survivors: list[str], refused: dict[str, str]) -> bytes:
    return _encode(_FilterResult(None, survivors, _NO_FAILED_NODES, refused))


def write_spelled(survivors: bytes, refused: bytes) -> bytes:
    """Encodes an answer from names that are JSON already. survivors: names with quotes and commas. refused: a JSON
    object."""
    return b"".join((b'{"Nodes":null,"NodeNames":[', survivors, _BETWEEN, refused, b',"Error":""}'))


_BETWEEN = b'],"FailedNodes":{},"FailedAndUnresolvableNodes":'


def write_error(text: str) -> bytes:
    """Encodes a failure that `kubectl describe pod` shows: status 200 and `Error`, nothing else."""
    return _encode(_FilterResult(None, None, _NO_FAILED_NODES, _NO_FAILED_NODES, plain(text)))


def plain(text: str) -> str:
    """Escapes percent signs: kube-scheduler uses `Error` as a format string for the pod's event."""
    return text.replace("%", "")
