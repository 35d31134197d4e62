"""Pure: counts what each gate has refused, or in shadow would have, and how often a cap or a storm held nodes open."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from extender.policy.snapshot import Snapshot
from extender.why.entries import Cause, Event, PodRecord, Tally

PODS_MAX = 10_000  # that are distinguished
BATCHES_MAX = 256
INTERVAL_S = 10
RECENT_S = 600


@dataclass(slots=True)
class Count:
    """The counts of one gate, while it is armed or while it is not."""

    armed: bool
    since: float
    names: int = 0
    calls: int = 0
    pods: set[int] = field(default_factory=set)
    most_closed: int = 0
    cap_hits: int = 0
    storm_hits: int = 0
    recent: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class Batch:
    """Calls with equal refusals. hits: by gate, how many nodes. pods: by hash."""

    hits: dict[str, int]
    calls: int = 0
    pods: set[int] = field(default_factory=set)


class GateCounters:
    """The counts of all gates, for one thread. take(): what has changed since its last call."""

    def __init__(self) -> None:
        self._counts: dict[str, Count] = {}
        self._changed: set[str] = set()
        self._batches: dict[tuple[bytes, int], Batch] = {}  # by the codes of a record, and the interval

    def look(self, snapshot: Snapshot, *, monotonic: float) -> None:
        """Called with each snapshot. A gate that is armed or put in shadow starts again from zero; a removed gate is
        dropped."""
        self._count_batches()
        for name, state in snapshot.gates.items():
            count = self._counts.get(name)
            if count is None or count.armed is not state.armed:
                count = self._counts[name] = Count(state.armed, monotonic)
                self._changed.add(name)
            if len(state.closed) > count.most_closed:
                count.most_closed = len(state.closed)
                self._changed.add(name)
        for name in self._counts.keys() - snapshot.gates.keys():
            del self._counts[name]
            self._changed.discard(name)

    def attempt(self, record: PodRecord, causes: list[Cause]) -> None:
        """Counts the answer of the record's last attempt."""
        if not record.codes:
            return
        key = record.codes, int(record.last // INTERVAL_S)
        batch = self._batches.get(key)
        if batch is None:
            if len(self._batches) >= BATCHES_MAX:
                self._count_batches()
            batch = self._batches[key] = Batch(self._hits_of(record.codes, causes))
        batch.calls += 1
        batch.pods.add(hash(record.uid or record.key))

    def _count_batches(self) -> None:
        """Adds the counts of many equal calls at once."""
        for (_, interval), batch in self._batches.items():
            for gate, names in batch.hits.items():
                count = self._counts[gate]
                count.names += names * batch.calls
                count.calls += batch.calls
                if len(count.pods) < PODS_MAX:
                    count.pods |= batch.pods
                if interval not in count.recent:
                    late = RECENT_S // INTERVAL_S
                    count.recent = {one: n for one, n in count.recent.items() if interval - one <= late}
                    count.recent[interval] = 0
                count.recent[interval] += batch.calls
            self._changed.update(batch.hits)
        self._batches.clear()

    def _hits_of(self, codes: bytes, causes: list[Cause]) -> dict[str, int]:
        """Returns by gate how many nodes of a record it refused, or would have."""
        hits: dict[str, int] = {}
        for code in set(codes):
            cause = causes[code]
            count = self._counts.get(cause.gate)
            if count is not None and count.armed is not cause.shadow:
                hits[cause.gate] = hits.get(cause.gate, 0) + codes.count(code)
        return hits

    def event(self, event: Event) -> None:
        count = self._counts.get(event.gate)
        if count is None:
            return
        if event.kind in ("held", "opened") and event.held_by == "cap":
            count.cap_hits += 1
        elif event.kind == "storm":
            count.storm_hits += 1
        self._changed.add(event.gate)

    def take(self) -> Iterator[Tally]:
        self._count_batches()
        changed, self._changed = sorted(self._changed), set()
        for gate in changed:
            count = self._counts[gate]
            yield Tally(
                gate,
                count.armed,
                count.since,
                count.names,
                count.calls,
                min(len(count.pods), PODS_MAX),
                len(count.pods) >= PODS_MAX,
                count.most_closed,
                count.cap_hits,
                count.storm_hits,
                dict(count.recent),
            )


def of_late(tally: Tally, monotonic: float) -> int:
    """Returns the number of calls in the last ten minutes, rounded to ten seconds."""
    interval = int(monotonic // INTERVAL_S)
    return sum(number for one, number in tally.recent.items() if interval - one < RECENT_S // INTERVAL_S)
