"""Pure: the frames of the feed. Four bytes of length, big-endian, then MessagePack; only the publisher sends.

    Hello, Said, then the snapshot as Changes against an empty one, Complete
    from then on: Changes and Complete when decisions have changed, Said each second, Beats now and then

Times are seconds of the monotonic clock, which all processes of a machine share.
"""

from collections.abc import Iterator, Mapping
from itertools import islice

import msgspec

from extender.policy.decision import Decision
from extender.status import Status

PROTOCOL = 1  # both ends are of one release, but for the moments of an update
PIECE_NODES = 500  # of one frame: encoding holds the interpreter, and a filter call waits for it
FRAME_LIMIT_BYTES = 16 * 2**20
_LENGTH_BYTES = 4


class FeedError(Exception):
    """The feed cannot be had or understood. One line with cause and remedy."""


class Hello(msgspec.Struct, frozen=True, tag="hello", array_like=True):
    """The first frame. pid: of the process that publishes."""

    protocol: int
    pid: int


class Row(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A node and its Decision."""

    node: str
    reason: str
    pod: str
    evidence: str
    since_monotonic: float


class Changes(msgspec.Struct, frozen=True, tag="changes", array_like=True):
    """Part of what has changed; counts only when Complete follows. gone: nodes that are no more."""

    rows: list[Row]
    gone: list[str]


class Complete(msgspec.Struct, frozen=True, tag="complete", array_like=True):
    """All changes since the last one make the next snapshot."""


class Said(msgspec.Struct, frozen=True, tag="said", array_like=True):
    status: Status


class Beats(msgspec.Struct, frozen=True, tag="beats", array_like=True):
    """When the kubelets of these nodes were last known to live, monotonic seconds."""

    beats: dict[str, float]


Frame = Hello | Changes | Complete | Said | Beats
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Frame)


def write(frame: Frame) -> bytes:
    body = _encoder.encode(frame)
    return len(body).to_bytes(_LENGTH_BYTES, "big") + body


def changes(before: Mapping[str, Decision], after: Mapping[str, Decision]) -> Iterator[Frame | None]:
    """From one snapshot's decisions to another's; ends with Complete. None is a rest: a piece in which nothing changed.

    Neither may be written to while this runs. What has not changed is the same object in both.
    """
    items = iter(after.items())
    while piece := list(islice(items, PIECE_NODES)):
        rows = [
            Row(name, decision.reason, decision.pod, decision.evidence, decision.since_monotonic)
            for name, decision in piece
            if before.get(name) is not decision
        ]
        yield Changes(rows, []) if rows else None
    names = iter(before)
    while kept := list(islice(names, PIECE_NODES)):
        gone = [name for name in kept if name not in after]
        yield Changes([], gone) if gone else None
    yield Complete()


def beats(of: Mapping[str, float]) -> Iterator[Frame]:
    """In pieces, as changes()."""
    items = iter(of.items())
    while piece := dict(islice(items, PIECE_NODES)):
        yield Beats(piece)


class Reader:
    """Bytes as they come, to frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that are whole by now. Raises FeedError; then nothing more is to be read."""
        self._buffer += data
        frames = []
        at = 0
        while len(self._buffer) - at >= _LENGTH_BYTES:
            begin = at + _LENGTH_BYTES
            length = int.from_bytes(self._buffer[at:begin], "big")
            if length > FRAME_LIMIT_BYTES:
                raise FeedError(f"a frame of {length} bytes in the feed: is it the feed of a readygate-extender?")
            if len(self._buffer) - begin < length:
                break
            at = begin + length
            try:
                frames.append(_decoder.decode(memoryview(self._buffer)[begin:at]))
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
                raise FeedError("the feed is of another release: update both ends to the same one") from e
        del self._buffer[:at]
        return frames
