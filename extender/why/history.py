"""Pure: everything that is recorded. It is made of entries only, so two histories with the same entries are equal."""

from array import array
from collections import deque
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from extender.why.entries import (
    Cause,
    Dropped,
    Entry,
    Event,
    Forgotten,
    Named,
    PodRecord,
    Reset,
    Tally,
)
from extender.why.pods import Pods

EVENTS_MAX = 10_000
PIECE = 500  # entries, or names, of one step


class Numbers:
    """Numbers of names, so that a recorded refusal takes four bytes and no copy of a text. names[number] is a name,
    by_name the reverse. It only grows; a new object has new numbers."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.by_name: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.names)

    def add(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self.by_name:
                self.by_name[name] = len(self.names)
                self.names.append(name)


class History:
    """The history. since: its beginning, monotonic; None before the first Reset. causes: by code. tallies: by gate."""

    def __init__(self) -> None:
        self._forget(None)

    def _forget(self, since: float | None) -> None:
        self.since = since
        self.numbers = Numbers()
        self.causes: list[Cause] = []
        self.pods = Pods()
        self.events: deque[Event] = deque(maxlen=EVENTS_MAX)
        self.tallies: dict[str, Tally] = {}
        self.dropped = Dropped(0)

    @property
    def serial(self) -> int:
        """The serial of the newest event, 0 if there was none."""
        return self.events[-1].serial if self.events else 0

    def left_node(self, namespace: str, name: str, uid: str, node: str) -> bool:
        """Returns whether kube-scheduler asked about this pod, and the last answer did not refuse it the node."""
        record = self.pods.get(f"{namespace}/{name}")
        if record is None or record.uid != uid or record.at is None:
            return False
        number = self.numbers.by_name.get(node)
        refused = number is not None and number in array("I", record.nodes)[: record.refused]
        return not refused and node not in record.unknown

    def apply(self, entry: Entry) -> None:
        """Applies an entry; a second time does no harm. Raises ValueError for an entry that does not follow."""
        if type(entry) is PodRecord:  # nearly all are
            self.pods.put(entry)
            return
        match entry:
            case Event():
                if entry.serial > self.serial:
                    self.events.append(entry)
            case Named(first=first, names=names):
                if first > len(self.numbers):
                    raise ValueError("names are missing")
                self.numbers.add(names)
            case Cause(code=code):
                if code > len(self.causes):
                    raise ValueError("causes are missing")
                self.causes[code : code + 1] = [entry]
            case Tally(gate=gate):
                self.tallies[gate] = entry
            case Forgotten(keys=keys):
                self.pods.drop(keys)
            case Dropped():
                self.dropped = entry
            case Reset(since=since):
                self._forget(since)

    def renumbered(self) -> list[Entry]:
        """Returns the same as dump(), with numbers only for names that some pod still uses."""
        after = History()
        for entry in self._dumped():
            match entry:
                case PodRecord(nodes=nodes) if nodes:
                    names = [self.numbers.names[number] for number in array("I", nodes)]
                    after.numbers.add(names)
                    numbers = array("I", map(after.numbers.by_name.__getitem__, names))
                    after.apply(replace(entry, nodes=numbers.tobytes()))
                case Named():
                    pass
                case _:
                    after.apply(entry)
        return after.dump()

    def dump(self) -> list[Entry]:
        """Returns the entries that make another History equal; none before the first Reset."""
        return [*self._dumped()]

    def _dumped(self) -> Iterator[Entry]:
        if self.since is None:
            return
        yield Reset(self.since)
        names = self.numbers.names
        for first in range(0, len(names), PIECE):
            yield Named(first, names[first : first + PIECE])
        yield from self.causes
        yield from self.tallies.values()
        yield self.dropped
        yield from self.events
        yield from self.pods
