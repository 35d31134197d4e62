"""The thread that decides: evidence in, a new snapshot out, released nodes to the kick.

It wakes when something is observed, and when time alone changes something. It decides at once after a quiet time, and
then not again for APART_S. Events within that time are decided together, so a flood of events costs a bounded number of
decisions.
"""

import logging
import math
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Protocol

from component.loop import Loop
from extender.cluster.health_pods import GatePods
from extender.cluster.index import Batch
from extender.cluster.silent_gates import SilentGates
from extender.policy.changes import lines
from extender.policy.decide import Rules, decide
from extender.policy.evidence import Surroundings
from extender.policy.memory import Decided, DecisionMemory
from extender.policy.snapshot import Board, Snapshot

log = logging.getLogger(__name__)

APART_S = 0.02
AWAITED_PAUSE_S = 0.5  # while nothing may be decided yet: the awaited lists may not come
STUCK_AFTER_S = 30.0  # deciding 5,000 nodes at once takes a tenth of a second
# when decisions have failed for so long, the thread counts as stuck: a restart may help, and waiting will not
FAILING_LIMIT_S = 30.0
NOBODY_SPEAKS = "its selector matches no pod on any node; see healthPods of the gate, and readygate doctor"
REMEDY = "see the line `watch failed` of each; the rights are in the Roles of the playbooks"


class Evidence(Protocol):
    """The part of cluster.index.Index that is used here."""

    def take(self, also: Iterable[str] = (), *, everything: bool = False) -> Batch | None: ...
    def give_back(self, names: Iterable[str]) -> None: ...
    def silent(self) -> Collection[GatePods]: ...


class Decider:
    """A Service with one thread, which calls turn().

    surroundings(): the newest; whatever changes them calls wake(). unread(): optional lists that were not read yet.
    on_release(nodes): refused nodes have opened. on_decided(before, decided, monotonic): another snapshot is in force,
    also the first. Neither may block.
    """

    name = "decider"

    def __init__(
        self,
        evidence: Evidence,
        rules: Rules,
        board: Board,
        *,
        on_release: Callable[[Sequence[str]], None],
        surroundings: Callable[[], Surroundings] = Surroundings,
        unread: Callable[[], Collection[str]] = frozenset,
        on_decided: Callable[[Snapshot, Decided, float], None] = lambda *_: None,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._evidence = evidence
        self._rules = rules
        self._board = board
        self._on_release = on_release
        self._surroundings = surroundings
        self._unread = unread
        self._on_decided = on_decided
        self._monotonic = monotonic
        self._wall = wall
        self._sleep = sleep
        self._memory = DecisionMemory()
        self._unheard = SilentGates()
        self._decided_at = -math.inf
        self._failing_since: float | None = None
        self._loop = Loop(
            "decider", self.turn, stuck_after_s=STUCK_AFTER_S, first_pause_s=math.inf, monotonic=monotonic
        )
        # The loop makes this a Service; healthy() adds failures that last.
        self.start, self.stop, self.wake = self._loop.start, self._loop.stop, self._loop.wake

    def healthy(self, monotonic: float) -> bool:
        return self._loop.healthy(monotonic) and self.deciding(monotonic)

    def turn(self) -> float:
        """Decides on all changes. Returns the seconds until it must be called again without a change."""
        early_s = self._decided_at + APART_S - self._monotonic()
        if early_s > 0:
            self._sleep(min(early_s, APART_S))
        self._decided_at = monotonic = self._monotonic()
        wall = self._wall()
        names: Collection[str] = self._memory.due(monotonic)
        try:
            surroundings = self._surroundings()
            batch = self._evidence.take(names, everything=self._memory.needs_all(surroundings, wall))
            if batch is None:
                return AWAITED_PAUSE_S
            names = batch.evidence
            decided = decide(self._rules, self._memory, batch.evidence, surroundings, monotonic=monotonic, wall=wall)
            before, published = self._board.snapshot, self._publish(decided)
            self._memory.keep(decided)
            if published:
                self._tell(before, decided, monotonic)
        except Exception:
            if self._failing_since is None:
                self._failing_since = monotonic
            self._evidence.give_back(names)
            raise
        self._failing_since = None
        self._tell_who_is_unheard(monotonic)
        due_at = min(batch.due_at, self._memory.due_at(monotonic, wall), self._unheard.due_at)
        return max(0.0, due_at - self._monotonic())

    def deciding(self, monotonic: float) -> bool:
        """Returns False while decisions have failed for longer than the limit: the published snapshot is older than it
        looks."""
        failing_since = self._failing_since
        return failing_since is None or monotonic - failing_since <= FAILING_LIMIT_S

    def _publish(self, decided: Decided) -> bool:
        """Publishes a decision. Returns whether it is another snapshot."""
        if decided.snapshot is self._board.snapshot and self._board.filled:
            return False
        if not self._board.filled and (unread := self._unread()):
            missing = ", ".join(sorted(unread))
            log.warning(
                "decided without inputs that could not be read yet", extra={"missing": missing, "error": REMEDY}
            )
        released = self._board.swap(decided.snapshot)
        if released:
            self._on_release(released)
        return True

    def _tell_who_is_unheard(self, monotonic: float) -> None:
        late, back = self._unheard.turn(self._evidence.silent(), monotonic)
        for one in late:
            facts = {"gate": one.gate, "namespace": one.pods.namespace, "labelSelector": one.pods.label_selector}
            log.warning("a gate has no health pod", extra={**facts, "error": NOBODY_SPEAKS})
        for one in back:
            log.info("the gate has a health pod again", extra={"gate": one.gate})

    def _tell(self, before: Snapshot, decided: Decided, monotonic: float) -> None:
        """Last of all: a failure here must not prevent a publication."""
        self._on_decided(before, decided, monotonic)
        for line in lines(before, decided.snapshot, decided.changed):
            (log.warning if line.level == "warning" else log.info)(line.message, extra=line.facts)
