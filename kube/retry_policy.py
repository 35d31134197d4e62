"""Pure: when the API server is asked again: after a failure, and when the store is in doubt.

There are two goals: events within three seconds of the server's return, and at most one request in four seconds from
all watches together while it fails for long. So the pause depends on what a try costs the server:

    nothing was sent (refused, no route)   it costs nothing: at most 2 s, for ever
    something was sent, for up to a minute it may be starting, or changing over: at most 2 s
    for longer                             one request in SPACING_S of all watches together (kube.server_health)

A watch that has lived for STEADY_S ends the outage, and so does a failure without a request, because a starting server
follows. A pause that the server requests (Retry-After) is kept in any case.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

from component.backoff import Backoff

STEADY_S = 10.0  # a watch that lived so long was not part of an outage: the next failure begins a new one
EAGER_S = 60.0
SPACING_S = 4.0
SPACING_JITTER = 0.25  # keeps replicas apart
ASKED_LIMIT_S = 300.0  # a server that requests an hour would leave readygate without events for an hour
UNSENT = Backoff(first_s=0.4, limit_s=1.0, jitter=1.0, at_least_limit_s=ASKED_LIMIT_S)
SENT = Backoff(first_s=0.8, limit_s=1.0, jitter=1.0, at_least_limit_s=ASKED_LIMIT_S)

GUARD = Backoff(first_s=30.0, limit_s=1800.0)
GUARD_FORGETS_S = 3600.0  # after so long without trouble the next one is new


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """An immutable value; `failed` returns the next one."""

    backoff: Backoff = SENT
    sent: bool = True
    since: float | None = None  # the first failure of this outage with a request, monotonic

    def failed(
        self, *, sent: bool, asked_s: float | None, monotonic: float, random: Callable[[], float]
    ) -> tuple[float | None, Self]:
        """Returns the seconds until the next try, None to wait for a turn in the common budget; and the next policy.

        sent: whether the server may have received the request. asked_s: its Retry-After.
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
        """Returns the policy after a success that lasted."""
        return replace(self, backoff=self.backoff.reset(), since=None)


@dataclass(frozen=True, slots=True)
class Guard:
    """Whether the store is in doubt: an object could not be decoded, or the store refused it. Then a list follows
    GUARD_FIRST_S later, and ever more seldom while that does not help. An immutable value; its methods return the next
    one.

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
    """Returns when the common budget has room again, after a try that took so many requests."""
    return max(free_at, monotonic) + requests * SPACING_S * (1 + SPACING_JITTER * random())
