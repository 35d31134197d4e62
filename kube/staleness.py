"""Pure: how old events are when they come, by times that the objects state themselves."""

import statistics
from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from kube.times import parse_time

SAMPLES = 15
OLD_AFTER_S = 600.0  # kubelets write each Node every 300 s at least
NEWS_MAX = 65_536

T = TypeVar("T")


class Lag:
    """The age of recent events. One writer; read from any thread. It is the median of the last samples: wrong clocks of
    single nodes do not matter, and a difference between most clocks and the own one is part of it."""

    def __init__(self) -> None:
        self._samples: tuple[tuple[float, float], ...] = ()  # monotonic, seconds

    def saw(self, stated: str | None, wall: float, monotonic: float) -> None:
        """An object has come that was written at this RFC 3339 time. wall: seconds since the epoch."""
        try:
            written = parse_time(stated)
        except (msgspec.ValidationError, OverflowError):
            return
        if written is not None:
            self._samples = (*self._samples[1 - SAMPLES :], (monotonic, wall - written))

    def s(self, monotonic: float) -> float | None:
        """Returns the seconds from an object's writing to its arrival; None if no recent object has the time of its
        writing."""
        of_late = [lag for at, lag in self._samples if at >= monotonic - OLD_AFTER_S]
        return max(0.0, statistics.median(of_late)) if of_late else None


class News(Generic[T]):
    """Finds out when an object was written, for objects that other writes change, too, without a new time.

    who: the object. newest: the newest RFC 3339 time in it, in UTC; an object without a newer time than before does not
    count.
    """

    def __init__(self, who: Callable[[T], str], newest: Callable[[T], str | None]) -> None:
        self._who = who
        self._newest = newest
        self._known: dict[str, str] = {}

    def __call__(self, item: T) -> str | None:
        who, newest = self._who(item), self._newest(item)
        if not newest:
            return None
        if len(self._known) >= NEWS_MAX:
            self._known.clear()
        before = self._known.get(who)
        self._known[who] = newest
        return newest if before is not None and newest > before else None
