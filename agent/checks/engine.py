"""Runs the checks, each in its own thread, and keeps the health of the node.

Guarantees: one run of a check at a time; a run that does not come back changes nothing but its own check, which is
shown as hung; `publish` is called from one thread, in order, and always with the newest health; whether the engine is
healthy never depends on what the checks find or how long they take.

Checks may be replaced by others while it runs. One whose settings are the same goes on as if nothing had happened. One
with other settings begins to run when the last run of the one before it is over, and until it has said something, what
that one said holds. A check that is new counts from its first verdict on, and one that is gone no more: but where it
closed the node, not before the new ones have said something. So to replace them neither closes nor opens a node.
"""

import logging
import math
import os
import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from agent.checks.catalogue import CheckSpec
from agent.checks.health import NodeHealth, log_text, node_health
from agent.checks.kernel_events import KernelEvents
from agent.checks.schedule import Turns, Why
from agent.checks.state import CheckState, CheckStatus, Finding, Shown, missed_runs, next_status, overdue
from agent.processes.command import kill_running, reap_orphans
from agent.processes.rate_limit import RateLimit
from agent.wire.condition import REASON_STARTING
from agent.wire.model import Result
from component.loop import Loop

log = logging.getLogger(__name__)

LATE_S = 2.0  # beyond the deadline of a run: twice KILL_WAIT_S, what killing and reaping a command may take
TURN_S = 0.5  # how often lateness is looked for where a run is beyond its deadline: small beside LATE_S
CALM_S = 2.0  # the same where none is: a run that begins now is looked at between its deadline and its lateness
STALLED_S = 15.0  # chosen: no machine that still works keeps a thread from running for so long
LINES = 20  # of log at once where the health changes again and again; after them
LINE_S = 10.0  # one line in so many seconds, of the newest health
STOP_LIMIT_S = 0.9  # a Service stops within a second
KILL_AGAIN_S = 0.05
OLD_RUN_S = 0.1  # how often a check looks whether the run of the one before it is over


class CheckEngine:
    """A Service. The health of the node goes to `publish`, at first that it is starting. Clocks: `wall` dates what is
    shown, `monotonic` measures. `restored`: states by name from before a restart; `save` gets them at each turn, and
    `follow` the checks that they are of from now on."""

    name = "checks"

    def __init__(
        self,
        specs: Sequence[CheckSpec],
        publish: Callable[[NodeHealth], None] = lambda _health: None,
        *,
        restored: Mapping[str, CheckStatus] = MappingProxyType({}),
        save: Callable[[Sequence[CheckStatus]], None] = lambda _statuses: None,
        follow: Callable[[Sequence[CheckSpec]], None] = lambda _specs: None,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        random: Callable[[], float] = random.random,
    ) -> None:
        self._publish = publish
        self._save = save
        self._follow = follow
        self._wall = wall
        self._monotonic = monotonic
        self._random = random
        self._logged: object = None
        self._lines = RateLimit(LINES, LINE_S)
        self._loop = Loop("checks", self._turn, stuck_after_s=STALLED_S, join_limit_s=0.0, monotonic=monotonic)
        self._lock = threading.Lock()  # _wanted
        self._wanted: tuple[CheckSpec, ...] | None = None
        self._gone: tuple[CheckStatus, ...] = ()  # that closed the node, until the new ones have said something
        self._events = KernelEvents() if _any_told(specs) else None
        self._workers = [
            self._worker(spec, (index + 1) / len(specs), restored.get(spec.name)) for index, spec in enumerate(specs)
        ]

    @property
    def _loops(self) -> list[Loop]:
        """Its own first: where every check has run, and the node may be ready, all of them turn."""
        return [self._loop, *([self._events.loop] if self._events else []), *(w.loop for w in self._workers)]

    def _worker(
        self, spec: CheckSpec, phase: float, restored: CheckStatus | None = None, before: "_Worker | None" = None
    ) -> "_Worker":
        clocks = (self._wall, self._monotonic, self._random)
        return _Worker(spec, self._loop.wake, *clocks, phase, restored, self._events, before)

    def start(self) -> None:
        for loop in self._loops:
            loop.start()

    def replace(self, specs: Sequence[CheckSpec]) -> None:
        """Makes these the checks, soon. May be called from any thread."""
        with self._lock:
            self._wanted = tuple(specs)
        self._loop.wake()

    def stop(self) -> None:
        """Commands of checks that run now are killed, also those that are only being started."""
        for loop in self._loops:
            loop.stop()  # does not wait
        deadline = time.monotonic() + STOP_LIMIT_S
        while any(_alive(loop) for loop in self._loops) and time.monotonic() < deadline:
            kill_running()
            time.sleep(KILL_AGAIN_S)

    def healthy(self, monotonic: float) -> bool:
        return all(loop.healthy(monotonic) for loop in self._loops)

    def statuses(self) -> list[CheckStatus]:
        """Every check as it is now, in configured order."""
        return [status for _, status in self._now()]

    def shown(self) -> list[Shown]:
        """The same, with the kind of each and the seconds that its last run took."""
        return [Shown(worker.spec.kind, status, worker.took_s) for worker, status in self._now()]

    def node_health(self) -> NodeHealth:
        return node_health(self.counted())

    def counted(self) -> list[CheckStatus]:
        """Those that the node's health is made of."""
        now = self._now()
        counted = [s for worker, s in now if not (worker.joins and s.state is CheckState.STARTING)]
        return [*counted, *(self._gone if len(counted) < len(now) else ())]

    def _now(self) -> "list[tuple[_Worker, CheckStatus]]":
        monotonic, wall = self._monotonic(), self._wall()
        return [(worker, worker.shown(monotonic, wall)) for worker in self._workers]

    def runs(self) -> list[tuple[str, CheckState, int]]:
        """(check, result, how many runs ended so)."""
        return [(w.spec.name, state, count) for w in self._workers for state, count in sorted(w.runs.items())]

    def _turn(self) -> float:
        if os.getpid() == 1:
            reap_orphans()
        with self._lock:
            wanted, self._wanted = self._wanted, None
        if wanted is not None:
            self._take(wanted)
        health = self.node_health()
        if health.log_key != self._logged and self._lines.take(self._monotonic()):
            _log(health, self._lines.left_out)
            self._logged = health.log_key
        self._publish(health)
        monotonic, wall = self._monotonic(), self._wall()
        self._save([worker.status(monotonic, wall) for worker in self._workers])
        return TURN_S if any(worker.overruns(monotonic) for worker in self._workers) else CALM_S

    def _take(self, specs: Sequence[CheckSpec]) -> None:
        """In the engine's thread. Where no thread can be had everything stays as it was."""
        before = {worker.spec.name: worker for worker in self._workers}
        if self._events is None and _any_told(specs):
            self._events = KernelEvents()
        workers, started = list[_Worker](), list[_Worker]()
        try:
            if self._events is not None:
                self._events.loop.start()
            for index, spec in enumerate(specs):
                worker = before.get(spec.name)
                if worker is None or not worker.is_of(spec):
                    worker = self._worker(spec, (index + 1) / len(specs), before=worker)
                    worker.joins = worker.before is None
                    worker.loop.start()
                    started.append(worker)
                workers.append(worker)
        except RuntimeError as e:  # no more threads
            for worker in started:
                worker.loop.stop()
            log.error("checks not replaced, the old ones go on", extra={"error": str(e)})
            return
        names = {spec.name for spec in specs}
        self._gone = tuple(s for s in self.counted() if s.name not in names and not s.state.closes_nothing)
        old = [worker for worker in self._workers if worker not in workers]
        self._workers = workers
        self._follow(specs)
        for worker in [*old, *(workers if self._loop.stopping else ())]:
            worker.loop.stop()  # does not wait


class _Worker:
    """One check: its thread, its status, and how often its runs ended how. `changed` is called after a run that
    has changed what is said of it.

    All checks run at once when the agent starts, so that the health is soon known; `phase`, more than 0 up to 1, is the
    part of its period after which it runs again, so that checks of one period do not run together for ever. One with a
    descriptor runs too when `events` say that there is something to be read. `before`: whose place it takes, until it
    has said something itself. `joins`: it came while the engine ran, and takes nobody's place.
    """

    def __init__(
        self,
        spec: CheckSpec,
        changed: Callable[[], None],
        wall: Callable[[], float],
        monotonic: Callable[[], float],
        random: Callable[[], float],
        phase: float,
        restored: CheckStatus | None,
        events: KernelEvents | None,
        before: "_Worker | None" = None,
    ) -> None:
        self.spec = spec
        self.joins = False
        # One that never ran itself has left the place to the one before it.
        self.before: _Worker | None = before.before if before is not None and before.before is not None else before
        self.runs: dict[CheckState, int] = {state: 0 for state in CheckState if state is not CheckState.STARTING}
        self.loop = Loop(
            f"check-{spec.name}",
            self._turn,
            first_pause_s=spec.initial_delay_s,
            stuck_after_s=STALLED_S,
            join_limit_s=0.0,
            at_end=spec.close,
            monotonic=monotonic,
        )
        self.took_s: float | None = None
        self._changed = changed
        self._wall = wall
        self._monotonic = monotonic
        self._status = restored or CheckStatus(spec.name, spec.severity, since=wall())
        self._found = CheckState.STARTING  # by the last run
        self._running_since: float | None = None  # monotonic
        self._turns = Turns(spec.period_s, phase, spec.doubts, random)
        self._events = events

    def status(self, monotonic: float, wall: float) -> CheckStatus:
        spec, status, since = self.spec, self._status, self._running_since
        late_s = 0.0 if since is None else monotonic - since - spec.limit_s
        return overdue(status, late_s, spec.period_s, spec.thresholds, wall) if late_s > LATE_S else status

    def overruns(self, monotonic: float) -> bool:
        """Is its run beyond its deadline?"""
        since = self._running_since
        return since is not None and monotonic - since >= self.spec.limit_s

    def shown(self, monotonic: float, wall: float) -> CheckStatus:
        """The same, or what the one before it said as long as it has said nothing."""
        status, before = self.status(monotonic, wall), self.before
        if before is None or status.state is not CheckState.STARTING:
            return status
        return replace(before.status(monotonic, wall), severity=self.spec.severity)

    def is_of(self, spec: CheckSpec) -> bool:
        return self.spec is spec or (self.spec.key == spec.key != "")

    def _turn(self) -> float:
        """One run; returns the seconds until the next is due."""
        began = self._monotonic()
        if self.before is not None and _alive(self.before.loop):
            return OLD_RUN_S
        why = self._turns.due(began)
        if why is None:
            return self._turns.wait_s(began)
        self.loop.progressed(math.inf)  # a run may take as long as it likes: its check shows it, not the engine
        self._running_since = began
        before = self._status
        try:
            finding = self.spec.run()
            if not self.loop.stopping:  # a command that we killed ourselves says nothing about the node
                self._take(finding, self._monotonic() - began, why)
        except Exception as e:
            log.exception("check could not be run", extra={"check": self.spec.name})
            self._take(Finding(CheckState.UNKNOWN, f"{type(e).__name__}: {e}"), self._monotonic() - began, why)
        self._running_since = None
        self._follow()
        if not _says_the_same(before, self._status, self.spec.thresholds.failure):
            self._changed()
        self._turns.ended(began, fails=_has_failed(self._found), failed=_has_failed(self._status.state))
        return self._turns.wait_s(self._monotonic())

    def _follow(self) -> None:
        """After a run, which may have opened the descriptor anew."""
        if self._events is not None and self.spec.descriptor is not None:
            self._events.follow(self.spec.descriptor(), self._tell)

    def _tell(self) -> None:
        self._turns.tell(self._monotonic())
        self.loop.wake()

    def _take(self, finding: Finding, took_s: float, why: Why) -> None:
        """A run that comes back long after its deadline has hung, whatever it found: else the node opens and closes
        with every run of a check that is too slow. What cannot be looked at counts by the check's own times alone: news
        come as often as the node's pods do."""
        self.took_s = took_s
        spec, status, runs = self.spec, self._status, 1
        late_s = took_s - spec.limit_s
        if late_s > LATE_S:
            if finding.state is not CheckState.HUNG:
                finding = Finding(CheckState.HUNG, f"took {took_s:.0f} s of {spec.limit_s:g} s: {finding.output}")
            runs = min(missed_runs(late_s, spec.period_s), spec.thresholds.failure)
        self._found = finding.state
        self.runs[finding.state] += 1
        if finding.state is CheckState.UNKNOWN and why is not Why.PERIOD:
            return
        for _ in range(runs):
            status = next_status(status, finding, spec.thresholds, self._wall())
        self._status = status
        if status.state is not CheckState.STARTING:
            self.before = None


def _any_told(specs: Sequence[CheckSpec]) -> bool:
    return any(spec.descriptor is not None for spec in specs)


def _has_failed(state: CheckState) -> bool:
    return state in (CheckState.FAILED, CheckState.HUNG)


def _says_the_same(before: CheckStatus, after: CheckStatus, failures: int) -> bool:
    """Whether the engine's next turn is soon enough: what a check that passes says, and how often, is in no hurry."""
    if before.state is not after.state or before.kept is not after.kept:
        return False
    if _against(before, failures) != _against(after, failures):  # a restart shall go on counting
        return False
    return after.state.closes_nothing or before.output == after.output


def _against(status: CheckStatus, failures: int) -> tuple[int, int]:
    """What counts against a check up to its threshold: failures, and runs that could not be made."""
    run = status.streak.run if status.streak.last is Result.FAILURE else 0
    return min(run, failures), min(status.unknowns, failures)


def _alive(loop: Loop) -> bool:
    return loop.healthy(-math.inf)  # at that time no sign of life was due yet


def _log(health: NodeHealth, left_out: int) -> None:
    facts: dict[str, object] = {"reason": health.reason}
    if left_out:
        facts["looks_left_out"] = left_out
    if health.problems:
        facts["problems"] = log_text(health.problems)
    if health.notices:
        facts["notices"] = log_text(health.notices)
    if health.not_applicable:
        facts["not_applicable"] = log_text(health.not_applicable)
    if health.healthy and health.kept:
        log.warning("check unknown, last result kept", extra=facts)
    elif health.healthy:
        log.info("node is healthy", extra=facts)
    elif health.reason == REASON_STARTING:
        log.info("node is not healthy yet", extra=facts)  # so does each start begin
    else:
        log.warning("node is not healthy", extra=facts)
