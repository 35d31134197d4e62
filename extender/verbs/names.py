"""The names of a filter call: encoded, as kube-scheduler writes them, or decoded. Both can be looked up.

Decoding the names and encoding the answer take as long as the look-up. So names stay encoded if each is another known
node, which is nearly always so.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

import msgspec

from extender.policy.snapshot import Answer, Board, Snapshot, each_once
from extender.verbs import wire
from extender.verbs.pods import NOBODY, Pod

_NO_REASONS: Mapping[str, int] = {}


class Found(msgspec.Struct, frozen=True, gc=False):
    """How the names were divided, and the answer."""

    body: bytes
    asked: int  # names in the request
    survivors: int
    refused: Collection[str] = ()
    reasons: Mapping[str, int] = _NO_REASONS  # number of refused names by reason
    snapshot: Snapshot | None = None  # None if nothing was looked up
    names: Sequence[str] = ()  # all names in the request, empty if they were not decoded
    unknown: bool = False  # a refused name is in no snapshot


class Asked(Protocol):
    """A filter call that was read."""

    @property
    def pod(self) -> Pod: ...
    def decoded(self) -> "Decoded":
        """Returns the same call with decoded names. Raises RequestError."""
        ...

    def look_up(self, board: Board, mask: int) -> Found:
        """Divides the names, and notes refusals for the kick. Raises RequestError."""
        ...


class Decoded:
    """A call with decoded names."""

    __slots__ = ("_names", "pod")

    def __init__(self, args: wire.FilterArgs) -> None:
        self.pod = args.pod or NOBODY
        self._names = args.node_names or []

    def decoded(self) -> "Decoded":
        return self

    def look_up(self, board: Board, mask: int) -> Found:
        answer = board.look_up(self._names, mask)
        # If no gate refuses anything to the pod, no name was looked up.
        looked_up = answer.snapshot is not None and mask & answer.snapshot.refusing
        return self._found(answer, answer.refused or (() if looked_up else answer.survivors))

    def pass_all(self) -> Found:
        """For an exempt pod. Raises RequestError."""
        return self._found(Answer(each_once(self._names), {}), self._names)

    def refuse_all(self, reason: str) -> Found:
        """For a canary. Raises RequestError."""
        return self._found(Answer([], dict.fromkeys(self._names, reason)), self._names)

    def unanswered(self, text: str) -> Found:
        """For a call without a verdict."""
        return Found(wire.write_error(text), len(self._names), 0, names=self._names)

    def _found(self, answer: Answer, unchecked: Collection[str]) -> Found:
        if "" in unchecked:
            raise wire.UnanswerableError(wire.NAMELESS_NODE)
        return Found(
            wire.write_names(answer.survivors, answer.refused),
            len(self._names),
            len(answer.survivors),
            answer.refused,
            Counter(answer.refused.values()),
            answer.snapshot,
            self._names,
            bool(answer.unknown),
        )


class Encoded(msgspec.Struct, frozen=True, gc=False):
    """A call in kube-scheduler's own form with more than one name. names: with commas; parts: one by one."""

    pod: Pod
    names: bytes
    parts: list[bytes]
    body: bytes | bytearray
    names_max: int
    whole: bool

    def decoded(self) -> Decoded:
        return _decoded(self.body, self.names_max, whole=self.whole)

    def look_up(self, board: Board, mask: int) -> Found:
        parts = self.parts
        found = board.look_up_spelled(parts, mask)
        if found is None:  # a name is unknown or repeated, or no gate refuses anything
            return self.decoded().look_up(board, mask)
        (survivors, closed, refused), snapshot = found
        names = b",".join(survivors) if closed else self.names
        body = wire.write_spelled(names, refused.told)
        return Found(body, len(parts), len(survivors), refused, refused.reasons, snapshot)


def read(body: bytes | bytearray, names_max: int, *, whole: bool, decode: bool) -> Asked:
    """Reads a filter call. whole: with the pod's containers and volumes. decode: decode names in any case. Raises
    RequestError.

    A single name is always decoded: it may be the pod's nominated node, which the record of the call must show.
    """
    written = None if decode else wire.read_as_written(body, whole=whole)
    if written is not None:
        parts = written.names.split(b",", names_max)  # names beyond the limit stay in one piece
        if len(parts) > names_max:
            raise wire.TooManyNodesError(names_max)
        if len(parts) > 1:
            return Encoded(written.pod, written.names, parts, body, names_max, whole)
    return _decoded(body, names_max, whole=whole)


def _decoded(body: bytes | bytearray, names_max: int, *, whole: bool) -> Decoded:
    wire.refuse_too_many(body, names_max)
    return Decoded(wire.read_filter_args(body, whole=whole, names_max=names_max))
