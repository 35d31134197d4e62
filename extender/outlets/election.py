"""Pure: which replica writes, by a Lease. Time is an argument: the monotonic clock of the replica.

As in client-go's leader election, a time of another clock in the Lease is never compared with the own clock. A
candidate notes when it saw the Lease change, and takes it when it has not changed for the duration in the Lease. The
holder writes with the version that it read, so if two take it at once one is refused.

    the holder leads until HOLD_S after it began its last successful renewal
    a candidate may take it DURATION_S after it saw the last change

A write may be in progress when the first time ends; WRITE_S bounds it, and HOLD_S + WRITE_S <= DURATION_S. So no two
replicas write at the same time, if their monotonic clocks run equally fast. A process that was stopped and continues
finds its time over, because the clock went on.
"""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

DURATION_S = 15
RENEW_EVERY_S = 4.0
LOOK_EVERY_S = 2.0  # of a candidate
HOLD_S = 10.0
WRITE_S = 5.0  # the longest duration of a leader's write


class Record(NamedTuple):
    """The relevant fields of a Lease. Times are its texts, compared for equality only."""

    holder: str
    duration_s: int
    renewed: str
    acquired: str
    transitions: int


NOBODY = Record("", 0, "", "", 0)


@dataclass(frozen=True, slots=True)
class Election:
    """The immutable state of one replica; each method returns the next one.

    identity: of this replica, unique. record: the Lease as last read or written, None before that. seen_at: when it was
    first seen so. held_until: until then this replica leads.
    """

    identity: str
    record: Record | None = None
    seen_at: float = -math.inf
    held_until: float = -math.inf

    def leads(self, monotonic: float) -> bool:
        return monotonic < self.held_until

    def may_take(self, monotonic: float) -> bool:
        """Returns whether the last seen Lease is this replica's, free, or expired."""
        record = self.record
        if record is None or record.holder in ("", self.identity):
            return True
        return monotonic >= self.seen_at + record.duration_s

    def saw(self, record: Record, monotonic: float) -> Self:
        """The Lease was read. A Lease that another replica holds ends the own term at once."""
        ours = record.holder == self.identity
        held_until = self.held_until if ours else -math.inf
        if record == self.record:
            return replace(self, held_until=held_until)
        return replace(self, record=record, seen_at=monotonic, held_until=held_until)

    def wrote(self, record: Record, began: float) -> Self:
        """A write of the Lease, begun at that time, has succeeded."""
        return replace(self, record=record, seen_at=began, held_until=began + HOLD_S)

    def released(self) -> Self:
        return replace(self, held_until=-math.inf)

    def claim(self, wall_text: str) -> Record:
        """Returns the Lease to write, to take it or to renew it."""
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
        """Returns the Lease to write so that another replica takes it at its next try. As client-go: no holder, for a
        second."""
        before = self.record or NOBODY
        return Record("", 1, wall_text, wall_text, before.transitions)
