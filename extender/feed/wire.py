"""Pure: the frames of the feed. Four bytes of length, big-endian, then MessagePack; only the server sends.

    Hello, Ruled, Said, Ordered, then the snapshot as Changes against an empty one, Complete
    from then on: Changes and Complete when decisions have changed, Ordered when orders have, Said each second, Beats
    now and then; Remembered: the whole history in pieces that begin with Reset, then what is added to it

Times are seconds of the monotonic clock, which all processes of a machine share.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

import msgspec

from extender.config.settings import Settings
from extender.feed.status import Status
from extender.policy.decision import CapState, Decision, GateState, HeldBy, Severity, Storm
from extender.policy.layered_map import LayeredMap
from extender.policy.orders import Order, Orders
from extender.policy.snapshot import Snapshot
from extender.why.entries import Entry, PodRecord

PROTOCOL = 4  # both ends are of one release, except during an update
PIECE_NODES = 500  # of one frame: encoding holds the interpreter, and a filter call waits for it
PIECE_ENTRIES = 200  # of the history, and
PIECE_NAMES = 20_000  # their limit in names of five bytes; one pod may have 65,536
FRAME_LIMIT_BYTES = 16 * 2**20
OTHER_RELEASE = "it is of another release: update both to the same one"
_LENGTH_BYTES = 4


class FeedError(Exception):
    """The feed cannot be used or decoded. One line with cause and remedy."""


class Hello(msgspec.Struct, frozen=True, tag="hello", array_like=True):
    """The first frame. pid: of the sending process."""

    protocol: int
    pid: int


class Ruled(msgspec.Struct, frozen=True, tag="ruled", array_like=True):
    """The settings behind the decisions, without those that no answer depends on."""

    settings: Settings

    @classmethod
    def of(cls, settings: Settings) -> "Ruled":
        return cls(
            Settings(
                gates=settings.gates,
                exempt=settings.exempt,
                stale_limit_seconds=settings.stale_limit_seconds,
                mode=settings.mode,
            )
        )


class Row(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A node and its Decision, without the fields that only the decider needs."""

    node: str
    reason: str
    pod: str
    evidence: str
    since_monotonic: float
    verdict: str
    held_by: HeldBy
    until: float | None
    note: str

    @classmethod
    def of(cls, node: str, decision: Decision) -> "Row":
        return cls(
            node,
            decision.reason,
            decision.pod,
            decision.evidence,
            decision.since_monotonic,
            decision.verdict,
            decision.held_by,
            decision.until,
            decision.note,
        )

    def decision(self) -> Decision:
        """Returns the decision. Reasons are few, and one object each."""
        return Decision(
            sys.intern(self.reason),
            self.pod,
            self.evidence,
            self.since_monotonic,
            verdict=sys.intern(self.verdict),
            held_by=self.held_by,
            until=self.until,
            note=self.note,
        )


class Gate(msgspec.Struct, frozen=True, array_like=True):
    """A GateState without its decisions."""

    name: str
    armed: bool
    severity: Severity
    cap: CapState
    storms: tuple[Storm, ...]


class Changes(msgspec.Struct, frozen=True, tag="changes", array_like=True):
    """Part of the changes at one gate; it counts only when Complete follows. gone: removed nodes."""

    gate: str
    rows: list[Row]
    gone: list[str]


class Complete(msgspec.Struct, frozen=True, tag="complete", array_like=True):
    """All changes since the last one make the next snapshot. gates: all gates, in their order. cap: of all together."""

    gates: list[Gate]
    cap: int | None = None


class Ordered(msgspec.Struct, frozen=True, tag="ordered", array_like=True):
    """The orders of operators."""

    entries: tuple[Order, ...]
    faults: tuple[str, ...]

    @classmethod
    def of(cls, orders: Orders) -> "Ordered":
        return cls(orders.entries, orders.faults)

    def orders(self) -> Orders:
        return Orders(self.entries, self.faults)


class Said(msgspec.Struct, frozen=True, tag="said", array_like=True):
    status: Status


class Beats(msgspec.Struct, frozen=True, tag="beats", array_like=True):
    """When the kubelets of these nodes were last known to live, monotonic seconds."""

    beats: dict[str, float]


class Remembered(msgspec.Struct, frozen=True, tag="remembered", array_like=True):
    """Part of the history, to be applied in order."""

    entries: list[Entry]


Frame = Hello | Ruled | Changes | Complete | Ordered | Said | Beats | Remembered
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Frame)


def write(frame: Frame) -> bytes:
    body = _encoder.encode(frame)
    return len(body).to_bytes(_LENGTH_BYTES, "big") + body


def changes(before: Snapshot, after: Snapshot) -> Iterator[Frame | None]:
    """Yields the changes from one snapshot's decisions to another's; ends with Complete. None is a pause: a piece
    without changes.

    Unchanged objects are the same in both.
    """
    for name, state in after.gates.items():
        known = before.gates.get(name, GateState(name)).decisions
        if known is not state.decisions:
            yield from _changes_of(name, known, state.decisions)
    yield Complete(
        [Gate(state.name, state.armed, state.severity, state.cap, state.storms) for state in after.gates.values()],
        after.cap,
    )


def _changes_of(gate: str, before: Mapping[str, Decision], after: Mapping[str, Decision]) -> Iterator[Changes | None]:
    names = iter(_differing(before, after))
    while piece := list(islice(names, PIECE_NODES)):
        rows, gone = [], []
        for name in piece:
            decision, known = after.get(name), before.get(name)
            if decision is None:
                gone.append(name)
            elif decision is not known:
                rows.append(Row.of(name, decision))
        yield Changes(gate, rows, gone) if rows or gone else None


def _differing(before: Mapping[str, Decision], after: Mapping[str, Decision]) -> Iterable[str]:
    if isinstance(after, LayeredMap):
        return after.differing(before)
    return {**dict.fromkeys(before), **dict.fromkeys(after)}


def beats(of: Mapping[str, float]) -> Iterator[Frame]:
    """Yields pieces, as changes()."""
    items = iter(of.items())
    while piece := dict(islice(items, PIECE_NODES)):
        yield Beats(piece)


def remembered(entries: Iterable[Entry]) -> Iterator[Frame]:
    """Yields pieces, as changes()."""
    piece: list[Entry] = []
    names = 0
    for entry in entries:
        piece.append(entry)
        names += entry.names if isinstance(entry, PodRecord) else 0
        if len(piece) >= PIECE_ENTRIES or names >= PIECE_NAMES:
            yield Remembered(piece)
            piece, names = [], 0
    if piece:
        yield Remembered(piece)


class Reader:
    """Bytes as they come, to frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Frame]:
        """Returns the complete frames. Raises FeedError; then nothing more may be read."""
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
                raise FeedError(OTHER_RELEASE) from e
        del self._buffer[:at]
        return frames
