"""Pure: when kube-scheduler is to be made to look again, and by a write to which node. Time is an argument.

Releases are not kicked one by one. With kube-scheduler 1.34 and later a change of any Node wakes every pod that an
extender refused, whatever node the pod waits for: its queueing hints know nothing of extenders, so a refused pod is
registered for all events (`defaultEnqueueExtension`), and the check of the pod against the changed node is gone
(`preCheckForNode`). So one kick after the last release of a batch is enough, and any released node will do.

A release after a quiet time is kicked at once; those that come within the second after a kick share the next one. A
node that is released again and again has to wait longer, but never longer than FLAP_LIMIT_S after the last kick; the
release of another node does not wait for it. What was not taken is tried again, until the kick has no use any more.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from component.backoff import Backoff

APART_S = 1.0  # between two kicks
USEFUL_S = 300.0  # by then kube-scheduler has looked by itself (DefaultPodMaxInUnschedulablePodsDuration)
FORBIDDEN_S = 60.0  # a right that we lack is not given by asking often
# But an API server that comes back refuses what it will allow when it has loaded its rules: so long a right that was
# there is asked for again.
LOADING_S = 30.0
FLAP_WITHIN_S = 10.0  # a node that is released twice within this time flaps
FLAP_FIRST_S, FLAP_LIMIT_S = 2.0, 8.0  # its kick is so long after the last one, doubling
FEW = 8  # nodes remembered to choose from, the newest
RETRY = Backoff(first_s=0.2, limit_s=10.0, jitter=1.0)


class _Flap(NamedTuple):
    released_at: float
    pause_s: float


class Schedule:
    """For one thread. repeat_after_s: once more so long after a kick, for other replicas; 0 = not.

    Each node that take() gives is to be answered with one of sent(), gone(), failed(), forbidden().
    """

    def __init__(self, *, repeat_after_s: float, random: Callable[[], float]) -> None:
        self._repeat_after_s = repeat_after_s or math.inf
        self._random = random
        self._nodes: dict[str, None] = {}  # to choose from, the newest last
        self._kick_at = self._repeat_at = math.inf
        self._not_before = self._taken_at = self._sent_at = -math.inf
        self._useful_until = -math.inf
        self._allowed = False  # the last answer that tells said so
        self._forbidden_at = math.inf  # since when it says otherwise
        self._retry = RETRY
        self._flaps: dict[str, _Flap] = {}

    def request(self, nodes: Sequence[str], monotonic: float) -> None:
        """These were released together, at this time."""
        for node in nodes[-FEW:]:
            self._nodes.pop(node, None)
            self._nodes[node] = None
        for node in list(self._nodes)[:-FEW]:
            del self._nodes[node]
        self._useful_until = max(self._useful_until, monotonic + USEFUL_S)
        self._kick_at = min(self._kick_at, min(self._calm_at(node, monotonic) for node in nodes))

    def next_at(self) -> float:
        """Monotonic seconds; infinite while there is nothing to do."""
        return max(min(self._kick_at, self._repeat_at), self._not_before)

    def take(self, monotonic: float) -> str | None:
        """The node to write to now, if it is time."""
        if monotonic < self.next_at():
            return None
        self._taken_at = monotonic
        return next(reversed(self._nodes))

    def give_up(self, monotonic: float) -> bool:
        """Whether there was something that has no use any more; now it is forgotten."""
        useless = bool(self._nodes) and self._useful_until <= monotonic
        if useless:
            self._forget()
        return useless

    def sent(self) -> None:
        """It was taken. All pauses count from when the write began: over a slow path its answer comes late.

        A repeat is for what was kicked before: a node that flaps keeps its time.
        """
        if self._kick_at <= self._taken_at:
            self._kick_at, self._repeat_at = math.inf, self._taken_at + self._repeat_after_s
        else:
            self._repeat_at = math.inf
        self._sent_at, self._not_before, self._retry = self._taken_at, self._taken_at + APART_S, RETRY
        self._allowed, self._forbidden_at = True, math.inf
        if math.isinf(self.next_at()):
            self._nodes.clear()
        self._forget_calm(self._taken_at)

    def gone(self, node: str) -> None:
        """There is no such node any more: another one, at once."""
        self._nodes.pop(node, None)
        if not self._nodes:
            self._forget()

    def failed(self, monotonic: float, retry_after_s: float | None) -> None:
        """Again after a doubling pause with jitter, or after what the server asked for."""
        pause_s, self._retry = self._retry.next(self._random, retry_after_s)
        self._not_before = monotonic + pause_s
        self._forget_calm(monotonic)

    def forbidden(self, monotonic: float) -> None:
        """Given up, at once where it never was allowed. The next release tries again, though not soon."""
        self._forbidden_at = min(self._forbidden_at, monotonic)
        if self._allowed and monotonic < self._forbidden_at + LOADING_S:
            self.failed(monotonic, None)
            return
        self._allowed, self._forbidden_at, self._retry = False, math.inf, RETRY
        self._forget()
        self._not_before = monotonic + FORBIDDEN_S
        self._forget_calm(monotonic)

    def _forget(self) -> None:
        self._kick_at = self._repeat_at = math.inf
        self._nodes.clear()

    def _forget_calm(self, monotonic: float) -> None:
        self._flaps = {n: flap for n, flap in self._flaps.items() if monotonic - flap.released_at < FLAP_WITHIN_S}

    def _calm_at(self, node: str, monotonic: float) -> float:
        last = self._flaps.get(node)
        if last is None or monotonic - last.released_at >= FLAP_WITHIN_S:
            self._flaps[node] = _Flap(monotonic, 0.0)
            return monotonic
        pause_s = min(max(2 * last.pause_s, FLAP_FIRST_S), FLAP_LIMIT_S)
        self._flaps[node] = _Flap(monotonic, pause_s)
        return max(monotonic, self._sent_at + pause_s)
