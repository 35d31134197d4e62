"""Pure: to which node the condition is written next. Time is an argument.

Three kinds wait, each node in one of them at most, and what is written is looked up when it is its turn: so the newest
state wins, and nothing is written twice.

    urgent   what the condition says is another word than True, False, Unknown, or it is not there: in order of coming
    calm     another reason or message, not sooner than CALM_S after the last write; and what was last written long ago
    aside    the API server refuses this node's: later

All together are rationed, and rest while the API server fails. kube-scheduler tries refused pods again when the status
of a Node's condition changes, and at no other change of it.
"""

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec

from component.backoff import Backoff
from extender.outlets.node_condition_text import Standing
from extender.outlets.observed_conditions import ObservedCondition
from extender.outlets.rate_limit import RateLimit
from extender.policy.deadlines import Deadlines
from kube.times import parse_time

CALM_S = 60.0  # between two writes of a node whose status stays
ASIDE_S = 300.0  # of a node whose write was refused for what it says
DENIALS_MAX = 3  # of different nodes, one after the other: then it is no fault of a node
DENIED_S = 300.0  # a right that we lack is not given by asking often
RETRY = Backoff(first_s=0.5, limit_s=30.0, jitter=0.5)


class Due(NamedTuple):
    """In how many seconds a node is to be written, infinite for never; and whether others wait for it."""

    after_s: float
    urgent: bool = False


NEVER = Due(math.inf)


def due_of(wanted: Standing | None, mark: ObservedCondition, *, wall: float, refresh_s: float) -> Due:
    """mark: what the Node says. refresh_s: so old may it become, infinite if it may stay for ever."""
    if wanted is None:
        return Due(0.0) if mark.status else NEVER
    if wanted.status != mark.status:
        return Due(0.0, urgent=True)
    age_s = _age_s(mark.seen, wall)
    if (wanted.reason, wanted.message) != (mark.reason, mark.message):
        return Due(max(0.0, CALM_S - age_s))
    return NEVER if math.isinf(refresh_s) else Due(max(0.0, refresh_s - age_s))


def _age_s(seen: str, wall: float) -> float:
    """0 for what a clock wrote that is ahead of ours, infinite for what is no time."""
    try:
        at = parse_time(seen) if seen else None
    except (msgspec.ValidationError, OverflowError):
        at = None
    return math.inf if at is None else max(0.0, wall - at)


class WriteOrder:
    """For one thread. A node that take() gives is to be answered with put() or gone(), or with a write and how that
    went: written(), refused(), failed()."""

    def __init__(self, *, per_second: float, random: Callable[[], float]) -> None:
        self._random = random
        self._bucket = RateLimit(per_second, max(1.0, per_second))
        self._look: dict[str, None] = {}
        self._urgent: dict[str, None] = {}
        self._calm: dict[str, None] = {}
        self._later = Deadlines()
        self._aside: dict[str, tuple[str, float]] = {}
        self._not_before = -math.inf
        self._denials: set[str] = set()
        self._retry = RETRY

    @property
    def waiting(self) -> int:
        """Nodes that are to be written as soon as may be."""
        return len(self._urgent) + len(self._calm)

    @property
    def looks(self) -> bool:
        """Whether there are nodes to be compared."""
        return bool(self._look)

    def look(self, nodes: Iterable[str]) -> None:
        """Something about these may have changed: they are to be compared."""
        self._look.update(dict.fromkeys(nodes))

    def to_look_at(self, limit: int) -> list[str]:
        """Some of them, each once; each is to be answered with put() or gone()."""
        found = list(self._look)[:limit] if len(self._look) > limit else list(self._look)
        for node in found:
            del self._look[node]
        return found

    def put(self, node: str, uid: str, due: Due, monotonic: float) -> None:
        """It has been compared. uid: of the Node, which is not aside for what another one of its name was."""
        whose, until = self._aside.get(node, ("", -math.inf))
        aside_s = until - monotonic if whose == uid else 0.0
        if due.urgent and aside_s <= 0:
            self._calm.pop(node, None)
            self._later.drop(node)
            self._urgent[node] = None
            return
        self._urgent.pop(node, None)
        self._calm.pop(node, None)
        if math.isinf(due.after_s):
            self._later.drop(node)
        else:
            self._later.set(node, monotonic + max(due.after_s, aside_s))

    def gone(self, node: str) -> None:
        """There is no such node any more."""
        self._urgent.pop(node, None)
        self._calm.pop(node, None)
        self._later.drop(node)
        self._aside.pop(node, None)

    def take(self, monotonic: float) -> tuple[str, bool] | None:
        """The node to compare once more and to write to now, if it is time; and whether it was urgent."""
        self._calm.update(dict.fromkeys(self._later.due(monotonic)))
        if not self.waiting or monotonic < self._free_at(monotonic):
            return None
        urgent = bool(self._urgent)
        kind = self._urgent if urgent else self._calm
        node = next(iter(kind))
        del kind[node]
        return node, urgent

    def next_at(self, monotonic: float) -> float:
        """Monotonic seconds; infinite while nothing waits. Not later than the next turn of any."""
        if self._look:
            return monotonic
        return max(self._later.next_at() if not self.waiting else monotonic, self._free_at(monotonic))

    def written(self, node: str, monotonic: float) -> None:
        self._bucket.take(monotonic)
        self._aside.pop(node, None)
        self._denials.clear()
        self._retry = RETRY

    def refused(self, node: str, uid: str, monotonic: float, *, denied: bool) -> bool:
        """Not this node, not as it is. denied: for lack of a right, as the server says; a policy may say so of one node
        alone. Whether all are given up for DENIED_S."""
        self._bucket.take(monotonic)
        self._aside[node] = uid, monotonic + ASIDE_S
        self._later.set(node, monotonic + ASIDE_S)
        if denied:
            self._denials.add(node)
        if len(self._denials) < DENIALS_MAX:
            return False
        self._denials.clear()
        self._aside.clear()
        self._not_before = monotonic + DENIED_S
        return True

    def failed(self, node: str, monotonic: float, retry_after_s: float | None) -> None:
        """All rest; then another node is tried first, for it may be this one's fault."""
        self._bucket.take(monotonic)
        pause_s, self._retry = self._retry.next(self._random, retry_after_s)
        self._not_before = monotonic + pause_s
        self._urgent[node] = None

    def _free_at(self, monotonic: float) -> float:
        return max(self._bucket.free_at(monotonic), self._not_before)
