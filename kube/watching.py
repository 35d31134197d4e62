"""Pure: what follows from a line of a watch, from an error, and from the end of a stream. Rules of client-go's
`tools/cache/reflector.go` (1.36), with these deviations: every list is a quorum read, a resourceVersion never falls,
and a deletion that cannot be read leads to a new list instead of being dropped.

`kube.reflector` acts on the results.
"""

import enum
from dataclasses import dataclass

import msgspec

from kube import errors
from kube.objects import UNREADABLE

SHORT_WATCH_S = 1.0
# consecutive watches with bookmarks only: a server that ends each at once would be asked without a pause
SHORT_WATCHES = 3
REWIND_LIMIT_S = 120.0  # nothing uses data that is older than this, so a restored server may then be believed


class Next(enum.Enum):
    """What the reflector does next."""

    WATCH = "watch from the last resourceVersion at once"
    LIST = "list everything at once"
    WATCH_LATER = "back off, then watch from the last resourceVersion"
    LIST_LATER = "back off, then list everything"


class Operation(enum.Enum):
    UPSERT = "upsert"
    REMOVE = "remove"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Change:
    """Apply `operation` with the object of the line; then the watch has reached `resource_version`."""

    operation: Operation
    resource_version: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Skip:
    """An irrelevant line; continue with the same resourceVersion."""

    cause: str


@dataclass(frozen=True, slots=True)
class Failure:
    """Leave the stream because of `error`; `next_step` is what follows."""

    error: errors.KubeError
    next_step: Next


class _HeadMeta(msgspec.Struct):
    resourceVersion: str = ""  # noqa: N815 - the key's spelling


class _Head(msgspec.Struct):
    kind: str = ""
    metadata: _HeadMeta | None = None


class _EventHead(msgspec.Struct):
    type: str
    object: _Head


class _Details(msgspec.Struct):
    retryAfterSeconds: float | None = None  # noqa: N815 - the key's spelling


class _Status(msgspec.Struct):
    code: int = 500
    reason: str = ""
    message: str = ""
    details: _Details | None = None


class _ErrorEvent(msgspec.Struct):
    object: _Status


_HEAD = msgspec.json.Decoder(_EventHead)
_ERROR = msgspec.json.Decoder(_ErrorEvent)
OPERATIONS = {"ADDED": Operation.UPSERT, "MODIFIED": Operation.UPSERT, "DELETED": Operation.REMOVE}


def read_event(line: bytes, *, kind: str, last: str, path: str) -> Change | Skip | Failure:
    """Returns what one line of a watch means. kind: of the items of the list; last: resourceVersion reached so far."""
    try:
        head = _HEAD.decode(line)
    except msgspec.ValidationError:  # JSON, but no object with metadata of this shape
        return _read_error(line, path) if _is_error(line) else Skip("malformed")
    except UNREADABLE as e:
        # The object is unknown; only a list shows the state again (client-go: a decode error).
        broken = errors.MalformedReply(path=path, reason="BrokenLine", message=str(e))
        return Failure(broken, Next.LIST_LATER)
    if head.type == "ERROR":
        return _read_error(line, path)
    if head.object.kind != kind:
        return Skip("table" if head.object.kind == "Table" else "kind")
    if head.object.metadata is None or not head.object.metadata.resourceVersion:
        return Skip("metadata")
    version = head.object.metadata.resourceVersion
    if is_older(version, last):
        return Skip("older")
    operation = OPERATIONS.get(head.type, Operation.NONE)
    note = "" if operation is not Operation.NONE or head.type == "BOOKMARK" else "unknown_type"
    return Change(operation, version, note)


class _Type(msgspec.Struct):
    type: str


def _is_error(line: bytes) -> bool:
    try:
        return msgspec.json.decode(line, type=_Type).type == "ERROR"
    except UNREADABLE:
        return False


def _read_error(line: bytes, path: str) -> Failure:
    try:
        status = _ERROR.decode(line).object
    except UNREADABLE:
        status = _Status(message="an ERROR event without a readable Status")
    code = 410 if status.reason in ("Expired", "Gone") else status.code
    retry_after_s = status.details.retryAfterSeconds if status.details is not None else None
    error = errors.from_status(
        path=path,
        status=code if code >= 400 else 500,
        reason=status.reason,
        message=status.message,
        retry_after_s=retry_after_s,
    )
    return Failure(error, after_error_event(error))


def after_error_event(error: errors.KubeError) -> Next:
    """Decides after an ERROR event. 500, too: client-go's MaxInternalErrorRetryDuration is 0 unless set."""
    return Next.WATCH_LATER if isinstance(error, errors.TooManyRequests) else Next.LIST_LATER


def after_open_error(error: Exception) -> Next:
    """Decides after a watch could not be opened: 429, and an unreachable server, do not question the store."""
    retriable = isinstance(error, errors.TooManyRequests) or not errors.was_sent(error)
    return Next.WATCH_LATER if retriable else Next.LIST_LATER


def after_stream_error(error: Exception) -> Next:
    """Decides after an open watch failed on this side: silence does not question the store, a broken line does."""
    return Next.WATCH if isinstance(error, errors.DeadlineExceeded) else Next.LIST_LATER


def after_end(*, empty_in_a_row: int, bookmarks: int) -> Next:
    """Decides after a stream ended (or was cut). empty_in_a_row: how many consecutive ones ended within SHORT_WATCH_S
    without moving anything but by bookmarks; bookmarks: of this one.

    client-go's VeryShortWatchError guards against a loop without a pause. A bookmark satisfies it, so bookmarks are
    counted here.
    """
    if not empty_in_a_row:
        return Next.WATCH
    if not bookmarks:
        return Next.LIST_LATER
    return Next.WATCH_LATER if empty_in_a_row >= SHORT_WATCHES else Next.WATCH


def is_older(version: str, last: str) -> bool:
    """Returns whether `version` is before `last` (KEP-5504: decimal numbers of any length; any other text is opaque and
    never older)."""
    if version > last and len(version) >= len(last):
        return False  # the usual case
    if not (_comparable(version) and _comparable(last)):
        return False
    return (len(version), version) < (len(last), last)


def _comparable(version: str) -> bool:
    return version.isascii() and version.isdigit() and version[0] != "0"


def believe_list(*, version: str, last: str, refused_since: float | None, monotonic: float) -> bool:
    """Returns whether a list may replace the store. A list that goes back in time may not (a replica that lags behind),
    unless nothing better was available for REWIND_LIMIT_S: then the cluster itself was restored from a backup."""
    if not is_older(version, last):
        return True
    return refused_since is not None and monotonic - refused_since >= REWIND_LIMIT_S
