"""The file format of a recording: a head, then what was received, one JSON object per line. Pure.

The last line may be incomplete, if recording was interrupted. It is ignored.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

FORMAT = 1
NODES, LEASES, AGENTS, ORDERS = "nodes", "leases", "leases of agents", "orders"


class RecordingError(Exception):
    """The file is not a recording, or lacks something. One line with cause and remedy."""


class Head(msgspec.Struct, frozen=True, rename="camel"):
    """The first line."""

    recording: int  # the version of the format
    release: str
    at: float  # seconds since the epoch
    configuration: str  # of the extender, YAML


class Line(msgspec.Struct, frozen=True):
    """One event of a list or watch."""

    at: float  # seconds since the epoch
    do: Literal["replace", "upsert", "remove", "end"]  # `end`: the recording ended
    of: str = ""  # which list: NODES, LEASES, AGENTS, ORDERS, of_pods() or of_daemon_sets()
    objects: list[msgspec.Raw] = []


_head = msgspec.json.Decoder(Head)
_line = msgspec.json.Decoder(Line)
_encode = msgspec.json.Encoder().encode


def written(line: Head | Line) -> bytes:
    """Encodes a line of the file."""
    return _encode(line) + b"\n"


def seen(at: float, do: Literal["replace", "upsert", "remove"], of: str, objects: Sequence[object]) -> bytes:
    """Encodes an event."""
    return written(Line(at, do, of, [msgspec.Raw(_encode(one)) for one in objects]))


def of_pods(namespace: str, selector: str) -> str:
    return f"pods {namespace} {selector}"


def of_daemon_sets(namespace: str) -> str:
    return f"daemonsets {namespace}"


def head_of(first: bytes) -> Head:
    """Decodes the first line. Raises RecordingError."""
    try:
        head = _head.decode(first)
    except (msgspec.DecodeError, UnicodeDecodeError) as e:
        raise RecordingError("it is not a recording; create one with readygate record") from e
    if head.recording != FORMAT:
        raise RecordingError(f"it is a recording of format {head.recording}, this release reads {FORMAT}; record again")
    return head


def lines_of(rest: Iterable[bytes]) -> Iterator[Line]:
    """Decodes the lines after the head. Raises RecordingError."""
    for number, text in enumerate(rest, 2):
        if not text.endswith(b"\n"):
            return
        try:
            yield _line.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError) as e:
            raise RecordingError(f"line {number} is invalid; record again") from e
