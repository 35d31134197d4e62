"""Pure: how far behind the truth is what comes in, by times that the objects state themselves."""

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
    """One writer; read from any thread. The median of the last samples: clocks of single nodes that are wrong do not
    matter, a difference between most clocks and ours is part of it."""

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
        """Seconds from an object's writing to its coming here; None where none of late said when it was written."""
        of_late = [lag for at, lag in self._samples if at >= monotonic - OLD_AFTER_S]
        return max(0.0, statistics.median(of_late)) if of_late else None


class News(Generic[T]):
    """When an object was written, if it says so: of those that are written for other reasons too, without a word of it.

    who: which object it is. newest: the newest RFC 3339 time in it, in UTC; one without a later time than before is no
    news.
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
