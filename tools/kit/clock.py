"""A clock that a test sets."""


class Clock:
    """Call it for the time; `clock.time += 5` lets five seconds pass. For `wall` and for `monotonic` alike."""

    def __init__(self, time: float = 0.0) -> None:
        self.time = time

    def __call__(self) -> float:
        return self.time
