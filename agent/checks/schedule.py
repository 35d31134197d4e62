"""When a check runs: at its own times, when there is news, and soon again after a failure. Pure.

News may be of something half done. So a look that they have caused, and that fails, is one failure; the look that
confirms it comes soon, but only when nobody touches anything. While news go on it is the check's own times
that count: nobody closes a node by replacing files one by one.

One that has failed runs more often than at its own times, so that a node that is well again is soon seen: every second
or so at first, then the more seldom the longer it lasts, but for checks that run as often anyway. All nodes may have
one cause, and what they ask may be what is broken: so a part of it is chance.
"""

import math
from collections.abc import Callable
from enum import Enum

from agent.probe.ticker import Ticker

# To wake a processor that idles costs more than most checks. So those that are due within a tenth of a second begin one
# soon after the other, and not all at once: then they would wait for the interpreter, and for each other.
SLOT_S = 0.1
SLOTS = 10  # checks of periods of fewer of them begin when they are due
CLOSER = 20
TOLD_AGAIN_S = 0.2  # between two runs of a check whose descriptor has news again and again
# Where news may be of something half done: what is replaced file by file is whole again by then, as a rule; and who
# replaces it again and again costs no more than a run in so many seconds.
SETTLED_S, SELDOM_S = 0.2, 2.0
CONFIRM_S = 0.4  # after that, without news: then what has failed is looked at again
SOONER_S, CHANCE = 1.1, 0.2  # between two runs of one that has failed, and the part of it by which they may be longer
SOONER_MIN_S, SOONER_PERIODS = 1.0, 0.5  # what that never falls below, and what it grows to
GROWS = 0.01  # of the time for which it has failed: two minutes go by before it grows


class Why(Enum):
    """Why a check runs now."""

    PERIOD = 0
    NEWS = 1
    FAILURE = 2


class Turns:
    """Of one check. Times are of one monotonic clock. From one thread, but for `tell`.

    `phase`, more than 0 up to 1: the part of its period after which it runs for the second time. `doubts`: its news may
    be of something half done. `random`: gives numbers from 0 to 1.
    """

    def __init__(self, period_s: float, phase: float, doubts: bool, random: Callable[[], float]) -> None:
        self._period_s = period_s
        self._phase = phase
        self._doubts = doubts
        self._random = random
        self._ticker: Ticker | None = None  # from the first run on
        self._told = False
        self._told_at = -math.inf
        self._told_from = -math.inf  # before it, what is told waits
        self._again_at = math.inf  # when one that has failed runs between two ticks
        self._news = False  # the last run had some, whichever time it came at
        self._fails = False
        self._unconfirmed_since = math.inf
        self._failed_since: float | None = None

    def due(self, monotonic: float) -> Why | None:
        """Why it shall run now, if it shall; then it counts as begun."""
        why = self._why(monotonic)
        if why is not None:
            seldom = why is Why.NEWS and self._doubts
            self._news = self._told or (self._news and self._fails)
            self._told, self._again_at, self._unconfirmed_since = False, math.inf, math.inf
            self._told_from = monotonic + (min(SELDOM_S, self._period_s) if seldom else TOLD_AGAIN_S)
        return why

    def ended(self, began: float, *, fails: bool, failed: bool) -> None:
        """After a run. `fails`: it did. `failed`: so is what is said of the check."""
        self._fails = fails
        if not failed:
            self._failed_since = None
        elif self._failed_since is None:
            self._failed_since = began
        # Only until it passes for the first time: then its success threshold counts runs of its period.
        if fails and not failed:
            self._unconfirmed_since = began
        elif fails and self._failed_since is not None:
            self._again_at = began + self._sooner_s(began - self._failed_since)

    def tell(self, monotonic: float) -> None:
        """There is news. From any thread."""
        if self._doubts and not self._told:
            self._told_from = max(self._told_from, monotonic + SETTLED_S)
        self._told_at = monotonic
        self._told = True

    def wait_s(self, monotonic: float) -> float:
        """Until it may be due; news may change that."""
        times = [self._next_again, self._told_from if self._is_told else math.inf]
        ticks_s = 0.0 if self._ticker is None else self._ticker.wait_s(monotonic)
        return max(0.0, min(ticks_s, *(at - monotonic for at in times)))

    def _why(self, monotonic: float) -> Why | None:
        if self._ticker is None:
            due = slot(monotonic + self._phase * self._period_s, self._period_s)
            self._ticker = Ticker(self._period_s, due - self._period_s if due > monotonic else due)
            return Why.PERIOD
        if self._ticker.take(monotonic):
            return Why.PERIOD
        if monotonic >= self._next_again:
            return Why.FAILURE
        return Why.NEWS if self._is_told and monotonic >= self._told_from else None

    @property
    def _is_told(self) -> bool:
        """Not while it fails: every step of who replaces something would be one more failure."""
        return self._told and not (self._doubts and self._fails)

    @property
    def _next_again(self) -> float:
        if not (self._news or self._told):
            return self._again_at
        settled_at = self._told_at + SETTLED_S if self._doubts else -math.inf
        return min(self._again_at, max(self._unconfirmed_since, settled_at) + CONFIRM_S)

    def _sooner_s(self, failed_for_s: float) -> float:
        soon_s = max(SOONER_S * (1 + CHANCE * self._random()), GROWS * failed_for_s)
        return min(soon_s, max(SOONER_MIN_S, SOONER_PERIODS * self._period_s))


def slot(monotonic: float, period_s: float) -> float:
    """When a check begins that is due then: soon after those that begin their slot."""
    if period_s < SLOTS * SLOT_S:
        return monotonic
    number = math.floor(round(monotonic / SLOT_S, 3))
    return (number + max(0.0, monotonic / SLOT_S - number) / CLOSER) * SLOT_S
