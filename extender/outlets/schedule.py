"""Pure: when kube-scheduler must be woken, and by a write to which node. Time is an argument.

Releases are not kicked one by one. Since kube-scheduler 1.34 a change of any Node wakes every pod that an extender
refused, whatever node the pod waits for: queueing hints do not know extenders, so a refused pod is registered for all
events (`defaultEnqueueExtension`), and the check of the pod against the changed node is gone (`preCheckForNode`). So
one kick after the last release of a batch is enough, and any released node will do.

A release after a quiet time is kicked at once; releases within the second after a kick share the next one. A node that
is released again and again waits longer, but never longer than FLAP_LIMIT_S after the last kick; releases of other
nodes do not wait for it. A failed kick is retried until it has become useless.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from component.backoff import Backoff

APART_S = 1.0  # between two kicks
USEFUL_S = 300.0  # by then kube-scheduler retries the pods itself (DefaultPodMaxInUnschedulablePodsDuration)
FORBIDDEN_S = 60.0  # asking more often does not grant a missing right
# An API server that returns first refuses what it allows once it has loaded its rules: a right that was there before is
# tried again for so long.
LOADING_S = 30.0
FLAP_WITHIN_S = 10.0  # a node that is released twice within this time flaps
FLAP_FIRST_S, FLAP_LIMIT_S = 2.0, 8.0  # the pause of its kick after the last one, doubling
FEW = 8  # nodes remembered to choose from, the newest
RETRY = Backoff(first_s=0.2, limit_s=10.0, jitter=1.0)


class _Flap(NamedTuple):
    released_at: float
    pause_s: float


class Schedule:
    """Planned kicks, for one thread. repeat_after_s: one more so long after a kick, for other replicas; 0 = none.

    The caller answers each node of take() with sent(), gone(), failed() or forbidden().
    """

    def __init__(self, *, repeat_after_s: float, random: Callable[[], float]) -> None:
        self._repeat_after_s = repeat_after_s or math.inf
        self._random = random
        self._nodes: dict[str, None] = {}  # to choose from, the newest last
        self._kick_at = self._repeat_at = math.inf
        self._not_before = self._taken_at = self._sent_at = -math.inf
        self._useful_until = -math.inf
        self._allowed = False  # whether the last answer about the right was yes
        self._forbidden_at = math.inf  # since when it was no
        self._retry = RETRY
        self._flaps: dict[str, _Flap] = {}

    def request(self, nodes: Sequence[str], monotonic: float) -> None:
        """Plans a kick: these nodes were released together, at this time."""
        for node in nodes[-FEW:]:
            self._nodes.pop(node, None)
            self._nodes[node] = None
        for node in list(self._nodes)[:-FEW]:
            del self._nodes[node]
        self._useful_until = max(self._useful_until, monotonic + USEFUL_S)
        self._kick_at = min(self._kick_at, min(self._calm_at(node, monotonic) for node in nodes))

    def next_at(self) -> float:
        """Returns monotonic seconds; infinite while there is nothing to do."""
        return max(min(self._kick_at, self._repeat_at), self._not_before)

    def take(self, monotonic: float) -> str | None:
        """Returns the node to write now, if it is time."""
        if monotonic < self.next_at():
            return None
        self._taken_at = monotonic
        return next(reversed(self._nodes))

    def give_up(self, monotonic: float) -> bool:
        """Drops a useless kick. Returns whether there was one."""
        useless = bool(self._nodes) and self._useful_until <= monotonic
        if useless:
            self._forget()
        return useless

    def sent(self) -> None:
        """The kick has succeeded. All pauses count from the beginning of the write: over a slow path its answer is
        late.

        A repeat is for earlier kicks: a flapping node keeps its time.
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
        """The Node does not exist any more: another one is written at once."""
        self._nodes.pop(node, None)
        if not self._nodes:
            self._forget()

    def failed(self, monotonic: float, retry_after_s: float | None) -> None:
        """Retries after a doubling pause with jitter, or after the time that the server requested."""
        pause_s, self._retry = self._retry.next(self._random, retry_after_s)
        self._not_before = monotonic + pause_s
        self._forget_calm(monotonic)

    def forbidden(self, monotonic: float) -> None:
        """Gives up, at once if the right was never there. The next release tries again, after a while."""
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
