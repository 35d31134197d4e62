"""Pure: how much of a processor the pages may take. Whoever asks without pause gets the same page a thousand times a
second, and takes the processor from kube-scheduler and what answers it.
"""

SAVED_S = 0.1  # what may be taken at once after a quiet time: a page of 5,000 nodes takes 0.015 to make
WAIT_LIMIT_S = 1.0


class Pace:
    """One for all threads; its caller has a lock. share: of one processor, in the long run.

    Times in seconds: of the monotonic clock, of a processor.
    """

    def __init__(self, *, share: float, saved_s: float = SAVED_S) -> None:
        self._share = share
        self._most_s = saved_s
        self._left_s = saved_s
        self._at = 0.0

    def took(self, processor_s: float, monotonic: float) -> float:
        """So much was taken since the last call; how long to wait before taking more."""
        earned_s = max(0.0, monotonic - self._at) * self._share
        self._left_s = min(self._most_s, self._left_s + earned_s) - processor_s
        self._at = monotonic
        return min(WAIT_LIMIT_S, max(0.0, -self._left_s / self._share))
