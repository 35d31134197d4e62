"""Pure: when the API server is asked again: after a failure, and when what we hold is in doubt.

Two things are wanted at once: news within three seconds of its return, and no more than a request in four seconds from
all of our watches together while it fails for long. So it depends on what a try costs the server:

    nothing was sent (refused, no route)   it costs nothing: at most 2 s, for ever
    something was sent, for up to a minute it may be starting, or changing over: at most 2 s
    for longer                             one request in SPACING_S of all watches together (kube.server_health)

A watch that has lived for STEADY_S ends the outage, and so does a failure without a request: what comes next is a
server that starts. What a server asks for (Retry-After) is waited for in any case.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

from component.backoff import Backoff

STEADY_S = 10.0  # a watch that lived so long was no part of an outage: the next failure is a new one
EAGER_S = 60.0
SPACING_S = 4.0
SPACING_JITTER = 0.25  # keeps replicas apart
ASKED_LIMIT_S = 300.0  # a server that asks for an hour would leave us without news for an hour
UNSENT = Backoff(first_s=0.4, limit_s=1.0, jitter=1.0, at_least_limit_s=ASKED_LIMIT_S)
SENT = Backoff(first_s=0.8, limit_s=1.0, jitter=1.0, at_least_limit_s=ASKED_LIMIT_S)

GUARD = Backoff(first_s=30.0, limit_s=1800.0)
GUARD_FORGETS_S = 3600.0  # after so long without trouble the next is a new one


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """A value: keep the one that `failed` gives back."""

    backoff: Backoff = SENT
    sent: bool = True
    since: float | None = None  # the first failure of this outage with a request, monotonic

    def failed(
        self, *, sent: bool, asked_s: float | None, monotonic: float, random: Callable[[], float]
    ) -> tuple[float | None, Self]:
        """Seconds until the next try, None where it waits for a turn in the common budget; and the pace after.

        sent: whether the server may have seen the request. asked_s: its Retry-After.
        """
        now = self
        if sent != self.sent:
            now = replace(self, sent=sent, backoff=SENT if sent else UNSENT, since=None)
        if sent and now.since is None:
            now = replace(now, since=monotonic)
        if now.since is not None and monotonic - now.since >= EAGER_S:
            return None, now
        pause_s, backoff = now.backoff.next(random, asked_s)
        return pause_s, replace(now, backoff=backoff)

    def steady(self) -> Self:
        """After a success that lasted."""
        return replace(self, backoff=self.backoff.reset(), since=None)


@dataclass(frozen=True, slots=True)
class Guard:
    """Whether what we hold is in doubt: an object could not be decoded, or the store refused it. Then a list is taken
    GUARD_FIRST_S later, and ever more seldom while that does not help. A value: keep the one that a method gives back.

    due_at: when the next such list is due, monotonic; infinite if nothing is in doubt.
    """

    backoff: Backoff = GUARD
    due_at: float = math.inf
    troubled_at: float = -math.inf

    def troubled(self, monotonic: float) -> Self:
        fresh = monotonic - self.troubled_at > GUARD_FORGETS_S
        pause_s, backoff = (self.backoff.reset() if fresh else self.backoff).next(lambda: 0.0)
        if self.due_at < math.inf:
            return replace(self, troubled_at=monotonic)
        return replace(self, backoff=backoff, due_at=monotonic + pause_s, troubled_at=monotonic)

    def listed(self) -> Self:
        return replace(self, due_at=math.inf)


def after_turn(free_at: float, *, requests: int, monotonic: float, random: Callable[[], float]) -> float:
    """When the common budget has room again, after somebody's try that took so many requests."""
    return max(free_at, monotonic) + requests * SPACING_S * (1 + SPACING_JITTER * random())
