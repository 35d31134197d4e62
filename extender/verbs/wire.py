"""The scheduler's words: ExtenderArgs, ExtenderFilterResult (kubernetes staging/src/k8s.io/kube-scheduler/extender/v1).

Those Go types have no JSON tags, so the keys are `Pod`, `NodeNames`, `FailedAndUnresolvableNodes`. Go's decoder ignores
case, ours does not, so replies spell them exactly and requests are accepted in any case of the top keys.

Only what is needed is decoded. Whole Node objects (`nodeCacheCapable: false`) are not answered: 5,000 of them are 57 MB
a pod to be read, kept and sent back, where their names are 0.2. What a request may hold: unknown keys are ignored, of a
doubled key the last one counts, NaN, Infinity, a byte order mark and trailing bytes are refused as malformed.
"""

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from extender.verbs.pods import Pod, WholePod

# 5,000 names are 0.2 MiB beside a Pod of at most 1.5 MiB.
BODY_LIMIT_BYTES = 8 * 2**20
NAMES_MAX = 65_536
# kube-scheduler asks about nodes of its own cache. That is ahead of the extender's by a new node pool at most.
SPARE_NAMES = 1_000
SHORT_BYTES = 3 * SPARE_NAMES  # room for fewer names than that: an empty one and its comma are three bytes
# Shorter requests are not scanned, because a scan costs 5 % of a usual answer: a request that names all known nodes,
# with names of 45 characters, has 24 bytes for each name of the limit. Such a request holds at most eight times as many
# names as the limit. They are counted when they are decoded.
SCANNED_NAME_BYTES = 24
# What is decoded takes up to 250 bytes of memory a value, so values are counted before, by their commas. Those within
# texts count too: three times as many names as there may be leave room for a Pod that is full of them. A value and its
# comma are two bytes at least: what has fewer need not be counted, which would cost 5,000 names a tenth of the call.
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
    """The body is well-formed and cannot be answered; the text goes to the user through `Error`."""


class TooManyNodesError(RequestError):
    """The request names more nodes than the limit, and is answered with the status 413."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"readygate: the request names more nodes than the limit of {limit}")


class FilterArgs(msgspec.Struct, frozen=True, gc=False, rename="pascal"):
    pod: Pod | None = None
    node_names: list[str] | None = None


class WrittenArgs(msgspec.Struct, frozen=True, gc=False):
    """names: what stands in the brackets of NodeNames, as it came."""

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

# Never filled: preemption would try these nodes again, and with two of them its text changes at every attempt, which
# makes kube-scheduler retry the pod without pause.
_NO_FAILED_NODES: dict[str, str] = {}
_FIRST_KEY, _LAST_KEYS, _END = b'{"Pod":', b',"Nodes":null,"NodeNames":[', b"]}"  # Go's encoder writes no blanks
_FIRST_KEY_BYTES, _LAST_KEYS_BYTES = len(_FIRST_KEY), len(_LAST_KEYS)
_KEYS = {"pod": "Pod", "nodenames": "NodeNames"}


def read_as_written(body: bytes | bytearray, *, whole: bool = False) -> WrittenArgs | None:
    """Of a request in the form that kube-scheduler gives it; None for any other one, which read_filter_args() decodes.

    What stands between the first key and the last two is decoded as a Pod, where it is: so it is one whole object, and
    these are the keys beside it. Whether what stands in the brackets are texts is still to be seen.
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
    """The offset of the first name in a request in the form that kube-scheduler gives it, 0 in any other one."""
    begin = body.rfind(b"[") + 1
    usual = (
        body.startswith(_LAST_KEYS, begin - _LAST_KEYS_BYTES)
        and body.startswith(_FIRST_KEY)
        and body.endswith(_END, begin)
    )
    return begin if usual else 0


def names_max_of(known: int) -> int:
    """How many nodes a request may name. known: the number of nodes in a cache that is synced and not stale."""
    return min(NAMES_MAX, 2 * known + SPARE_NAMES)


def refuse_too_many(body: bytes | bytearray, names_max: int) -> None:
    """Raises TooManyNodesError if a long body has more than names_max entries in NodeNames. Decodes no name.

    Counts only the commas between the brackets of NodeNames, and no node has one in its name: commas in the Pod do not
    count. read_filter_args() counts the names of shorter bodies, and those under a key in another case.
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
    """whole: with the pod's containers and volumes. Raises MalformedError (not JSON, not an object, a wrong type, too
    many values), UnanswerableError (no Pod, no names) or TooManyNodesError.
    """
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
    """A body, unless it has more values than may be kept in memory. Raises MalformedError."""
    if len(body) > UNCOUNTED_BYTES and body.count(b",") > VALUES_MAX:
        raise MalformedError("more JSON values than any request has")
    return decode(decoder, body)


def decode_any_case(decoder: "msgspec.json.Decoder[T]", body: bytes | bytearray, keys: Mapping[str, str]) -> T:
    """The same request with its top keys in any case: rare, so it is decoded a second time. keys: right ones by those
    in lower case."""
    fields = {keys[key.lower()]: raw for key, raw in decode(_any_object, body).items() if key.lower() in keys}
    return decode(decoder, _encode(fields))


def decode(decoder: "msgspec.json.Decoder[T]", body: bytes | bytearray | msgspec.Raw) -> T:
    """Raises MalformedError."""
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
    """The same. survivors: names as JSON spells them, with their commas. refused: an object in JSON."""
    return b"".join((b'{"Nodes":null,"NodeNames":[', survivors, _BETWEEN, refused, b',"Error":""}'))


_BETWEEN = b'],"FailedNodes":{},"FailedAndUnresolvableNodes":'


def write_error(text: str) -> bytes:
    """A failure that `kubectl describe pod` is to show: status 200, `Error` filled, nothing else."""
    return _encode(_FilterResult(None, None, _NO_FAILED_NODES, _NO_FAILED_NODES, plain(text)))


def plain(text: str) -> str:
    """kube-scheduler uses `Error` as a format string for the pod's event: a percent sign would be mangled."""
    return text.replace("%", "")
