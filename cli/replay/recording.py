"""The file of a recording: a head, then what was seen, one JSON object a line. Pure.

The last line of a recording that was cut off may be half a line; it is left out.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

FORMAT = 1
NODES, LEASES, AGENTS, ORDERS = "nodes", "leases", "leases of agents", "orders"


class TapeError(Exception):
    """The file is no recording, or none for what is asked. One line with the remedy."""


class Head(msgspec.Struct, frozen=True, rename="camel"):
    """The first line. configuration: of the extender that the recording was made for, YAML. at: seconds since 1970."""

    recording: int
    release: str
    at: float
    configuration: str


class Line(msgspec.Struct, frozen=True):
    """What one list or watch has brought. of: which; `pods NAMESPACE SELECTOR` and `daemonsets NAMESPACE` have more
    than one. do: all of them anew, one more or changed, one gone; `end`: when the recording ended.
    """

    at: float
    do: Literal["replace", "upsert", "remove", "end"]
    of: str = ""
    objects: list[msgspec.Raw] = []


_head = msgspec.json.Decoder(Head)
_line = msgspec.json.Decoder(Line)
_encode = msgspec.json.Encoder().encode


def written(line: Head | Line) -> bytes:
    return _encode(line) + b"\n"


def seen(at: float, do: Literal["replace", "upsert", "remove"], of: str, objects: Sequence[object]) -> bytes:
    """A Line, written."""
    return written(Line(at, do, of, [msgspec.Raw(_encode(one)) for one in objects]))


def of_pods(namespace: str, selector: str) -> str:
    return f"pods {namespace} {selector}"


def of_daemon_sets(namespace: str) -> str:
    return f"daemonsets {namespace}"


def head_of(first: bytes) -> Head:
    """Raises TapeError."""
    try:
        head = _head.decode(first)
    except (msgspec.DecodeError, UnicodeDecodeError) as e:
        raise TapeError("it is no recording; make one with: readygate record") from e
    if head.recording != FORMAT:
        raise TapeError(f"it is a recording of format {head.recording}, this release reads {FORMAT}; record anew")
    return head


def lines_of(rest: Iterable[bytes]) -> Iterator[Line]:
    """The lines behind the head. Raises TapeError."""
    for number, text in enumerate(rest, 2):
        if not text.endswith(b"\n"):
            return
        try:
            yield _line.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError) as e:
            raise TapeError(f"line {number} is none of a recording; record anew") from e
