"""Pure: how far behind the truth is what comes in, by times that the objects state themselves."""

import statistics

import msgspec

from kube.times import parse_time

SAMPLES = 15


class Lag:
    """One writer; read from any thread. The median of the last samples: clocks of single nodes that are wrong do not
    matter, a difference between most clocks and ours is part of it."""

    def __init__(self) -> None:
        self._samples: tuple[float, ...] = ()

    def saw(self, stated: str | None, wall: float) -> None:
        """An object has come that was written at this RFC 3339 time. wall: seconds since the epoch."""
        try:
            written = parse_time(stated)
        except msgspec.ValidationError:
            return
        if written is not None:
            self._samples = (*self._samples[1 - SAMPLES :], wall - written)

    @property
    def s(self) -> float | None:
        """Seconds from an object's writing to its coming here; None before the first."""
        samples = self._samples
        return max(0.0, statistics.median(samples)) if samples else None
