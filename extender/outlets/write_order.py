"""Pure: which node's condition is written next. Time is an argument.

Nodes wait in three queues, each in one of them at most. The text is looked up when it is written, so the newest state
wins, and nothing is written twice.

    urgent   another status (True, False, Unknown), or a missing condition: in order of arrival
    calm     another reason or message, CALM_S after the last write at the earliest; and conditions to refresh
    aside    the API server refuses this node's condition: later

All together are rate-limited, and pause while the API server fails. kube-scheduler retries refused pods when the status
of a Node's condition changes, and after no other change of it.
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
ASIDE_S = 300.0  # of a node whose write was refused for its content
DENIALS_MAX = 3  # of different nodes in a row: then not one node is at fault
DENIED_S = 300.0  # asking more often does not grant a missing right
RETRY = Backoff(first_s=0.5, limit_s=30.0, jitter=0.5)


class Due(NamedTuple):
    """In how many seconds a node must be written, infinite for never; and whether it is urgent."""

    after_s: float
    urgent: bool = False


NEVER = Due(math.inf)


def due_of(wanted: Standing | None, mark: ObservedCondition, *, wall: float, refresh_s: float) -> Due:
    """mark: what the Node says. refresh_s: the age at which it is written again, infinite for never."""
    if wanted is None:
        return Due(0.0) if mark.status else NEVER
    if wanted.status != mark.status:
        return Due(0.0, urgent=True)
    age_s = _age_s(mark.seen, wall)
    if (wanted.reason, wanted.message) != (mark.reason, mark.message):
        return Due(max(0.0, CALM_S - age_s))
    return NEVER if math.isinf(refresh_s) else Due(max(0.0, refresh_s - age_s))


def _age_s(seen: str, wall: float) -> float:
    """Returns the age: 0 for a time ahead of the own clock, infinite for an unreadable one."""
    try:
        at = parse_time(seen) if seen else None
    except (msgspec.ValidationError, OverflowError):
        at = None
    return math.inf if at is None else max(0.0, wall - at)


class WriteOrder:
    """Waiting nodes, for one thread. The caller answers each node of take() with put() or gone(), or writes it and
    reports written(), refused() or failed()."""

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
        """The number of nodes that are due."""
        return len(self._urgent) + len(self._calm)

    @property
    def looks(self) -> bool:
        """Whether there are nodes to compare."""
        return bool(self._look)

    def look(self, nodes: Iterable[str]) -> None:
        """Adds nodes to compare: something about them may have changed."""
        self._look.update(dict.fromkeys(nodes))

    def to_look_at(self, limit: int) -> list[str]:
        """Returns some nodes to compare, each once; the caller answers each with put() or gone()."""
        found = list(self._look)[:limit] if len(self._look) > limit else list(self._look)
        for node in found:
            del self._look[node]
        return found

    def put(self, node: str, uid: str, due: Due, monotonic: float) -> None:
        """Stores the result of a comparison. uid: of the Node; a refused write of an earlier Node of this name does not
        count."""
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
        """Returns the node to compare again and to write now, if it is time; and whether it was urgent."""
        self._calm.update(dict.fromkeys(self._later.due(monotonic)))
        if not self.waiting or monotonic < self._free_at(monotonic):
            return None
        urgent = bool(self._urgent)
        kind = self._urgent if urgent else self._calm
        node = next(iter(kind))
        del kind[node]
        return node, urgent

    def next_at(self, monotonic: float) -> float:
        """Returns monotonic seconds; infinite while nothing waits. Not later than the next due time of any node."""
        if self._look:
            return monotonic
        return max(self._later.next_at() if not self.waiting else monotonic, self._free_at(monotonic))

    def written(self, node: str, monotonic: float) -> None:
        self._bucket.take(monotonic)
        self._aside.pop(node, None)
        self._denials.clear()
        self._retry = RETRY

    def refused(self, node: str, uid: str, monotonic: float, *, denied: bool) -> bool:
        """The write was refused for its content. denied: the server reports a missing right; a policy may do so for one
        node. Returns whether all writes are paused for DENIED_S."""
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
        """All writes pause; then another node is tried first, because this one may be the cause."""
        self._bucket.take(monotonic)
        pause_s, self._retry = self._retry.next(self._random, retry_after_s)
        self._not_before = monotonic + pause_s
        self._urgent[node] = None

    def _free_at(self, monotonic: float) -> float:
        return max(self._bucket.free_at(monotonic), self._not_before)
