"""Which Events are written, and how. Pure. Mirrors client-go/tools/record/events_cache.go.

Three steps in this order. More than ten texts of one reason about one object within ten minutes become one combined
Event. One that was written before is counted in it. Of one object and type, 25 are let through at once and then one in
five minutes: who is refused is counted, and shows when the next is let through.
"""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from agent.kubelet.events.event import Event
from agent.processes.rate_limit import RateLimit

ENTRIES = 4096  # maxLruCacheEntries
SIMILAR = 10  # defaultAggregateMaxEvents
SIMILAR_WITHIN_S = 600.0
SPAM_BURST = 25
SPAM_EVERY_S = 300.0
COMBINED = "(combined from similar events): "
NAME_MAX = 253

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Write:
    """`count` 1: an Event of that name is created; more: the one of that name is patched. Times: seconds since 1970."""

    event: Event
    name: str
    count: int
    first_at: float
    last_at: float


@dataclass(slots=True)
class _Similar:
    texts: dict[str, None] = field(default_factory=dict)  # a set that knows who came first
    last_at: float = float("-inf")


@dataclass(frozen=True, slots=True)
class _Written:
    name: str
    count: int
    first_at: float


class _Latest(Generic[V]):
    """The entries that were used last."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._entries: OrderedDict[Hashable, V] = OrderedDict()

    def get(self, key: Hashable) -> V | None:
        found = self._entries.get(key)
        if found is not None:
            self._entries.move_to_end(key)
        return found

    def put(self, key: Hashable, value: V) -> None:
        self._entries[key] = value
        self._entries.move_to_end(key)
        while len(self._entries) > self._most:
            self._entries.popitem(last=False)


class Correlator:
    """Not for several threads."""

    def __init__(self, entries: int = ENTRIES) -> None:
        self._similar: _Latest[_Similar] = _Latest(entries)
        self._written: _Latest[_Written] = _Latest(entries)
        self._spam: _Latest[RateLimit] = _Latest(entries)

    def correlate(self, event: Event, *, monotonic: float, wall: float) -> Write | None:
        """What is to be written; None if nothing is."""
        event, key = self._combined(event, monotonic)
        before = self._written.get(key)
        if before is None:
            written = _Written(event_name(event.about.name, wall), 1, wall)
        else:
            written = replace(before, count=before.count + 1)
        self._written.put(key, written)
        about = event.about
        spam = (about.kind, about.namespace, about.name, about.uid, event.type)
        ration = self._spam.get(spam) or RateLimit(SPAM_BURST, SPAM_EVERY_S)
        self._spam.put(spam, ration)
        if not ration.take(monotonic):
            return None
        return Write(event, written.name, written.count, written.first_at, wall)

    def _combined(self, event: Event, monotonic: float) -> tuple[Event, Hashable]:
        about = event.about
        key = (about.kind, about.namespace, about.name, about.uid, event.type, event.reason)
        similar = self._similar.get(key)
        if similar is None or monotonic - similar.last_at > SIMILAR_WITHIN_S:
            similar = _Similar()
        similar.texts[event.message] = None
        similar.last_at = monotonic
        self._similar.put(key, similar)
        if len(similar.texts) < SIMILAR:
            return event, event
        similar.texts.pop(next(iter(similar.texts)))
        return replace(event, message=COMBINED + event.message), key


def event_name(name: str, wall: float) -> str:
    """As kubectl shows it: the object's name and a time that no other Event of it has."""
    unique = f".{int(wall * 1e9):x}"
    return name[: NAME_MAX - len(unique)].rstrip(".-") + unique
