"""Pure: how much of a processor all answers may take. A client without pauses gets the same page a thousand times a
second, and would take the processor from kube-scheduler and the extender."""

SAVED_S = 0.1  # what may be taken at once after a quiet time: a page of 5,000 nodes takes 0.015 to make
WAIT_LIMIT_S = 1.0


class PageBudget:
    """The budget of all threads; its caller has a lock. share: of one processor, in the long run.

    Times in seconds: of the monotonic clock, of a processor.
    """

    def __init__(self, *, share: float, saved_s: float = SAVED_S) -> None:
        self._share = share
        self._most_s = saved_s
        self._left_s = saved_s
        self._at = 0.0

    def took(self, processor_s: float, monotonic: float, *, within: bool = False) -> float:
        """Records processor time since the last call. Returns how long to wait before taking more. within: for an
        answer that has begun: it waits for its own use and not for that of others, or it would never end next to many
        of them."""
        earned_s = max(0.0, monotonic - self._at) * self._share
        left_s = min(self._most_s, self._left_s + earned_s) - processor_s
        # a client after a crowd does not pay for the crowd for long
        self._left_s = max(-WAIT_LIMIT_S * self._share, left_s)
        self._at = monotonic
        wait_s = max(0.0, -self._left_s / self._share)
        return min(wait_s, processor_s / self._share) if within else wait_s
