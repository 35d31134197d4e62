"""Runs the checks, each in its own thread, and keeps the verdict.

Guarantees: one run of a check at a time; a run that does not come back changes nothing but its own check, which is
shown as hung; `on_verdict` is called from one thread, in order, and always with the newest verdict; whether the engine
is healthy never depends on what the checks find or how long they take.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Sequence

from agent.checks.catalogue import CheckSpec
from agent.checks.health import (
    CheckState,
    CheckStatus,
    Finding,
    Severity,
    Verdict,
    missed_runs,
    next_status,
    overdue,
    verdict,
)
from agent.probe.ticker import Ticker
from agent.processes.command import kill_running, reap_orphans

log = logging.getLogger(__name__)

LATE_S = 2.0  # beyond the deadline of a run: killing and reaping take up to 1 s
TURN_S = 0.5  # how often lateness is looked for
STALLED_S = 15.0  # a thread of ours that should have done something so long ago is broken
JOIN_LIMIT_S = 0.9
KILL_AGAIN_S = 0.05


class CheckEngine:
    """A Service. Verdicts go to `on_verdict`, at first that it is starting."""

    name = "checks"

    def __init__(
        self,
        specs: Sequence[CheckSpec],
        on_verdict: Callable[[Verdict], None] = lambda _verdict: None,
        *,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._on_verdict = on_verdict
        self._now = now
        self._monotonic = monotonic
        self._stop = threading.Event()
        self._changed = threading.Event()
        self._turned = 0.0
        self._workers = [_Worker(spec, self._stop, self._changed, now, monotonic) for spec in specs]
        self._thread = threading.Thread(target=self._supervise, name="checks", daemon=True)

    def start(self) -> None:
        self._turned = self._monotonic()
        for worker in self._workers:
            worker.start()
        self._thread.start()

    def stop(self) -> None:
        """Commands of checks that run now are killed, also those that are only being started."""
        self._stop.set()
        self._changed.set()
        kill_running()
        deadline = time.monotonic() + JOIN_LIMIT_S
        for thread in (self._thread, *(worker.thread for worker in self._workers)):
            while thread.is_alive() and time.monotonic() < deadline:
                thread.join(KILL_AGAIN_S)
                kill_running()

    def healthy(self, now: float) -> bool:
        return (
            self._thread.is_alive()
            and now - self._turned < STALLED_S
            and all(worker.healthy(now) for worker in self._workers)
        )

    def statuses(self) -> list[CheckStatus]:
        """Every check as it is now, in configured order."""
        monotonic, now = self._monotonic(), self._now()
        return [worker.shown(monotonic, now) for worker in self._workers]

    def verdict(self) -> Verdict:
        return verdict(self.statuses())

    def runs(self) -> list[tuple[str, CheckState, int]]:
        """(check, result, how many runs ended so)."""
        return [(w.spec.name, state, count) for w in self._workers for state, count in sorted(w.runs.items())]

    def _supervise(self) -> None:
        words: object = None
        while not self._stop.is_set():
            self._changed.clear()
            try:
                current = self.verdict()
                if current.words != words:
                    _tell(current)
                words = current.words
                self._on_verdict(current)
                if os.getpid() == 1:
                    reap_orphans()
            except Exception:
                log.exception("the verdict could not be told")
            self._turned = self._monotonic()
            self._changed.wait(TURN_S)


class _Worker:
    def __init__(
        self,
        spec: CheckSpec,
        stop: threading.Event,
        changed: threading.Event,
        now: Callable[[], float],
        monotonic: Callable[[], float],
    ) -> None:
        self.spec = spec
        self.runs: dict[CheckState, int] = {state: 0 for state in CheckState if state is not CheckState.STARTING}
        self.thread = threading.Thread(target=self._run, name=f"check-{spec.name}", daemon=True)
        self._stop = stop
        self._changed = changed
        self._now = now
        self._monotonic = monotonic
        self._status = CheckStatus(spec.name, spec.severity, since=now())
        self._running_since: float | None = None
        self._due = monotonic() + spec.initial_delay_s

    def start(self) -> None:
        self._due = self._monotonic() + self.spec.initial_delay_s
        self.thread.start()

    def healthy(self, now: float) -> bool:
        return self.thread.is_alive() and (self._running_since is not None or now - self._due < STALLED_S)

    def shown(self, monotonic: float, now: float) -> CheckStatus:
        spec, status, since = self.spec, self._status, self._running_since
        late_s = 0.0 if since is None else monotonic - since - spec.timeout_s
        return overdue(status, late_s, spec.period_s, spec.thresholds, now) if late_s > LATE_S else status

    def _run(self) -> None:
        if self._stop.wait(max(0.0, self._due - self._monotonic())):
            return
        ticker = Ticker(self.spec.period_s, self._monotonic())
        while True:
            self._running_since = began = self._monotonic()
            finding = self._once()
            if self._stop.is_set():
                return  # a command that we killed ourselves says nothing about the node
            self._take(finding, self._monotonic() - began)
            self._due = max(ticker.due, self._monotonic())
            self._running_since = None
            self._changed.set()
            if self._stop.wait(ticker.wait_s(self._monotonic())):
                return
            ticker.take(self._monotonic())

    def _take(self, finding: Finding, took_s: float) -> None:
        """A run that comes back long after its deadline has hung, whatever it found: else the node opens and closes
        with every run of a check that is too slow."""
        spec, status, runs = self.spec, self._status, 1
        late_s = took_s - spec.timeout_s
        if late_s > LATE_S:
            if finding.state is not CheckState.HUNG:
                finding = Finding(CheckState.HUNG, f"took {took_s:.0f} s of {spec.timeout_s:g} s: {finding.output}")
            runs = min(missed_runs(late_s, spec.period_s), spec.thresholds.failure)
        for _ in range(runs):
            status = next_status(status, finding, spec.thresholds, self._now())
        self._status = status
        self.runs[finding.state] += 1

    def _once(self) -> Finding:
        try:
            return self.spec.run()
        except Exception as e:
            log.exception("check could not be run", extra={"check": self.spec.name})
            return Finding(CheckState.UNKNOWN, f"{type(e).__name__}: {e}")


def _tell(current: Verdict) -> None:
    facts = {"reason": current.reason, "problems": [f"{p.name}: {p.state}: {p.output}" for p in current.problems]}
    if current.notices:
        facts["notices"] = [f"{p.name}: {p.state}: {p.output}" for p in current.notices]
    if current.healthy and any(check.severity is Severity.GATE for check in current.notices):
        log.warning("node is kept open, a check can no longer be run", extra=facts)
    elif current.healthy:
        log.info("node is healthy", extra=facts)
    else:
        log.warning("node is not healthy", extra=facts)
