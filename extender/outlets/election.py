"""Pure: who of the replicas writes, by a Lease. Time is an argument, and always the monotonic clock of who looks.

As client-go elects leaders: what another clock wrote into the Lease is never compared with ours. A candidate notes when
it saw the Lease change, and takes it when it has not changed for as long as the Lease itself says. Who holds it writes
with the version it read, so of two that take it at once one is refused.

    who holds it is the leader until HOLD_S after it began its last renewal that was taken
    who does not may take it DURATION_S after it saw the last change

A write may be under way when the first ends; WRITE_S bounds it, and HOLD_S + WRITE_S <= DURATION_S. So no two write at
the same time, as long as their monotonic clocks run equally fast. A process that was stopped and goes on finds its time
over: the clock went on.
"""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

DURATION_S = 15
RENEW_EVERY_S = 4.0
LOOK_EVERY_S = 2.0  # of a candidate
HOLD_S = 10.0
WRITE_S = 5.0  # the longest that a write of a leader may take


class Record(NamedTuple):
    """What a Lease says, as far as it matters here. Times are the text in it, compared for being equal only."""

    holder: str
    duration_s: int
    renewed: str
    acquired: str
    transitions: int


NOBODY = Record("", 0, "", "", 0)


@dataclass(frozen=True, slots=True)
class Election:
    """What one replica knows. A value: keep the one that a method gives back.

    identity: of this replica, no other ever has it. record: the Lease as last read or written, None before that.
    seen_at: when it was first seen to be so. held_until: until then we are the leader.
    """

    identity: str
    record: Record | None = None
    seen_at: float = -math.inf
    held_until: float = -math.inf

    def leads(self, monotonic: float) -> bool:
        return monotonic < self.held_until

    def may_take(self, monotonic: float) -> bool:
        """Whether the Lease as last seen is ours, nobody's, or one that its holder has let run out."""
        record = self.record
        if record is None or record.holder in ("", self.identity):
            return True
        return monotonic >= self.seen_at + record.duration_s

    def saw(self, record: Record, monotonic: float) -> Self:
        """The Lease was read. One that somebody else holds ends our time at once."""
        ours = record.holder == self.identity
        held_until = self.held_until if ours else -math.inf
        if record == self.record:
            return replace(self, held_until=held_until)
        return replace(self, record=record, seen_at=monotonic, held_until=held_until)

    def wrote(self, record: Record, began: float) -> Self:
        """Our write of the Lease, begun at that time, was taken."""
        return replace(self, record=record, seen_at=began, held_until=began + HOLD_S)

    def released(self) -> Self:
        return replace(self, held_until=-math.inf)

    def claim(self, wall_text: str) -> Record:
        """What to write into it now, to take it or to go on holding it."""
        before = self.record or NOBODY
        ours = before.holder == self.identity
        return Record(
            holder=self.identity,
            duration_s=DURATION_S,
            renewed=wall_text,
            acquired=before.acquired if ours else wall_text,
            transitions=before.transitions if ours or self.record is None else before.transitions + 1,
        )

    def release(self, wall_text: str) -> Record:
        """What to write into it so that another one takes it at its next look. As client-go: nobody, for a second."""
        before = self.record or NOBODY
        return Record("", 1, wall_text, wall_text, before.transitions)
