"""One loop for one pod, container and probe type (pkg/kubelet/prober/worker.go): thin; `decide` decides."""

import logging
import random as random_module
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from agent.kubelet.prober.decide import Remove, Set, Step, Target, WorkerState, after_probe, before_probe
from agent.kubelet.prober.prober import CutOff
from agent.kubelet.prober.results import Results
from agent.probe.result import ProbeErrored
from agent.probe.streak import Kept
from agent.probe.ticker import Ticker
from agent.wire.model import Container, Pod, PodStatus, ProbeType, Result
from agent.wire.semantics import Semantics

log = logging.getLogger(__name__)

JOIN_LIMIT_S = 1.0


ProbeFunction = Callable[[ProbeType, Pod, PodStatus, Container, str, CutOff], Result]
"""(type, pod, cached status, container, container id, whether commands are cut off) -> SUCCESS or FAILURE. Raises
ProbeErrored."""


@dataclass(frozen=True, slots=True)
class WorkerContext:
    """What all workers of a manager share. `start_wall`, `start_monotonic`: when it was made, by either clock.
    `restored`: what an agent before us has found, until a worker takes it over."""

    get_pod_status: Callable[[str], PodStatus | None]
    probe: ProbeFunction
    results: dict[ProbeType, Results]
    start_wall: float
    start_monotonic: float
    semantics: Semantics
    wall: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    random: Callable[[], float] = random_module.random
    count: Callable[[Target, Result, float], None] = lambda _target, _result, _took_s: None
    shutdown: threading.Event = field(default_factory=threading.Event)
    restored: dict[tuple[str, ProbeType], Kept] = field(default_factory=dict)

    def ahead_s(self) -> float:
        """By how much the clock was set ahead since then, less than 0 for back."""
        if not self.semantics.fix_clock_that_is_set:
            return 0.0
        return (self.wall() - self.start_wall) - (self.monotonic() - self.start_monotonic)


class Worker:
    """Probes until it is stopped or its container will never run again. `on_exit` is called last, in its thread."""

    def __init__(self, target: Target, context: WorkerContext, on_exit: Callable[["Worker"], None]) -> None:
        self.target = target
        self.state = WorkerState()
        self._context = context
        self._results = context.results[target.type]
        self._on_exit = on_exit
        self._wake = threading.Condition()
        self._stopped = False
        self._triggered = False
        self._cut_off = False
        self._thread = threading.Thread(
            target=self._run, name=f"probe-{target.type.lower()}-{target.pod.name}-{target.container.name}", daemon=True
        )

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Asks the worker to end after the probe it is in; never waits; may be called often."""
        with self._wake:
            self._stopped = True
            self._wake.notify()

    def pod_ends(self) -> None:
        """Its pod is being ended: commands are cut off, where the semantics want that."""
        self._cut_off = not self._context.semantics.fix_exec_probes_of_ending_pods

    def trigger(self) -> bool:
        """Asks for a probe at once. At most one such wish is kept: False when one is waiting already."""
        with self._wake:
            if self._triggered:
                return False
            self._triggered = True
            self._wake.notify()
            return True

    def join(self, timeout_s: float) -> None:
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def alive(self) -> bool:
        return self._thread.is_alive()

    def do_probe(self) -> bool:
        """One doProbe: False means remove the worker. An exception counts as 'go on' (row D0)."""
        try:
            return self._do_probe()
        except Exception:
            log.exception("probe worker failed", extra=self._facts())
            return True

    def _do_probe(self) -> bool:
        context, target = self._context, self.target
        began = context.monotonic()
        status = context.get_pod_status(target.pod.uid)
        step = before_probe(
            self.state,
            target,
            status,
            wall=context.wall(),
            manager_start=context.start_wall,
            semantics=context.semantics,
            ahead_s=context.ahead_s(),
            restored=context.restored,
        )
        self._apply(step)
        context.restored.pop((self.state.container_id, target.type), None)  # from here on it is ours
        if not step.probe or status is None:
            return step.keep
        try:
            asked = (target.type, target.pod, status, target.container, self.state.container_id)
            result = context.probe(*asked, lambda: self._cut_off)
        except ProbeErrored:
            # kubelet drops the result when the probe could not run; counting it would flap the gate.
            return True
        context.count(target, result, context.monotonic() - began)
        step = after_probe(self.state, target, result, context.semantics)
        self._apply(step)
        return step.keep

    def _apply(self, step: Step) -> None:
        self.state = step.state
        for write in step.writes:
            match write:
                case Remove(container_id):
                    self._results.remove(container_id)
                case Set(container_id, result):
                    self._results.set(container_id, result, self.target.pod.uid)

    def _run(self) -> None:
        context = self._context
        period_s = float(max(1, self.target.probe.period_s)) if self.target.probe else 1.0
        age_s = 0.0 if context.semantics.always_jitters else context.monotonic() - context.start_monotonic
        jitter_s = jitter(period_s, age_s, context.random())
        try:
            # A stop does not end this sleep: kubelet's worker makes its first probe and ends after it.
            if jitter_s > 0 and context.shutdown.wait(jitter_s):
                return
            ticker = Ticker(period_s, context.monotonic())
            while self.do_probe() and self._wait(ticker):
                pass
        finally:
            self._ended()

    def _ended(self) -> None:
        if self.state.container_id:
            self._results.remove(self.state.container_id)
        self._on_exit(self)

    def _wait(self, ticker: Ticker) -> bool:
        """Waits for a tick or a trigger; False for a stop."""
        monotonic = self._context.monotonic
        with self._wake:
            while not self._stopped:
                if self._triggered:
                    self._triggered = False
                    ticker.reset(monotonic())
                    return True
                if ticker.take(monotonic()):
                    return True
                self._wake.wait(ticker.wait_s(monotonic()))
            return False

    def _facts(self) -> dict[str, str]:
        pod = self.target.pod
        return {
            "probe_type": self.target.type,
            "pod": pod.name,
            "namespace": pod.namespace,
            "container": self.target.container.name,
        }


def jitter(period_s: float, manager_age_s: float, random: float) -> float:
    """The pause before the first probe: a random part of the period while the manager is younger than a period."""
    return random * period_s if period_s > manager_age_s else 0.0
