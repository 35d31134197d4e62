"""Owns the probe workers of all pods of a node, and folds their results into a pod's status (pkg/kubelet/prober).

Guarantees: at most one worker per pod, container and probe type; no call waits for a probe or a network; the worker
takes itself out of the table when it ends.
"""

import copy
import logging
import random as random_module
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import NamedTuple

from agent.kubelet.prober.decide import NOTHING_KEPT, Target, parse_container_id, started_before_restart
from agent.kubelet.prober.results import Results
from agent.kubelet.prober.worker import JOIN_LIMIT_S, ProbeFunction, Worker, WorkerContext
from agent.kubelet.status.restarts import is_sidecar
from agent.probe.streak import Kept, KeptResults
from agent.wire.histogram import Histogram
from agent.wire.model import (
    PROBE_DEFAULTS,
    Container,
    ContainerRunning,
    ContainerStatus,
    ContainerTerminated,
    Pod,
    PodStatus,
    ProbeType,
    Result,
)
from agent.wire.semantics import Semantics
from kube import contract

log = logging.getLogger(__name__)

RESTORED_S = 300.0  # in which a container that was probed before is found again; else there is no such any more
ADD_ORDER = (ProbeType.STARTUP, ProbeType.READINESS, ProbeType.LIVENESS)


class WorkerKey(NamedTuple):
    pod_uid: str
    container: str
    probe_type: ProbeType


class ProbeLabels(NamedTuple):
    """The labels of prober_probe_total. `result`: successful or failed."""

    probe_type: str
    result: str
    container: str
    pod: str
    namespace: str
    pod_uid: str


class DurationLabels(NamedTuple):
    """The labels of prober_probe_duration_seconds."""

    probe_type: str
    container: str
    pod: str
    namespace: str


class ProberManager:
    """A Service. `probe` makes one probe, `get_pod_status` reads the status manager's cache (None: not known)."""

    name = "prober"

    def __init__(
        self,
        *,
        get_pod_status: Callable[[str], PodStatus | None],
        probe: ProbeFunction,
        readiness: Results,
        liveness: Results,
        startup: Results,
        semantics: Semantics,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        random: Callable[[], float] = random_module.random,
        start_wall: float | None = None,
        restored: KeptResults = NOTHING_KEPT,
    ) -> None:
        self._semantics = semantics
        self._readiness = readiness
        self._startup = startup
        self._start_wall = wall() if start_wall is None else start_wall
        self._lock = threading.Lock()
        self._workers: dict[WorkerKey, Worker] = {}
        self._threadless: set[WorkerKey] = set()  # to be probed, once there is a thread for it
        self._totals: Counter[ProbeLabels] = Counter()
        self._durations: defaultdict[DurationLabels, Histogram] = defaultdict(Histogram)
        self._shutdown = threading.Event()
        self._context = WorkerContext(
            get_pod_status=get_pod_status,
            probe=probe,
            results={
                ProbeType.READINESS: readiness,
                ProbeType.LIVENESS: liveness,
                ProbeType.STARTUP: startup,
            },
            start_wall=self._start_wall,
            start_monotonic=monotonic() + (self._start_wall - wall()),
            semantics=semantics,
            wall=wall,
            monotonic=monotonic,
            random=random,
            count=self._count,
            shutdown=self._shutdown,
        )
        if not semantics.change_container_status_on_kubelet_restart:
            self._context.restored.update(restored)
        for (container_id, probe_type), kept in self._context.restored.items():
            if kept.result is not None:  # at once: a worker makes its first step within a period
                self._context.results[probe_type].restore(container_id, kept.result)

    def start(self) -> None:
        """Nothing to make: workers start with add_pod."""

    def stop(self) -> None:
        """Ends all workers; those in a probe that hangs are left behind as daemons after one second."""
        self._shutdown.set()
        with self._lock:
            workers = list(self._workers.values())
        for worker in workers:
            worker.stop()
        deadline = time.monotonic() + JOIN_LIMIT_S
        for worker in workers:
            worker.join(max(0.0, deadline - time.monotonic()))

    def healthy(self, monotonic: float) -> bool:  # noqa: ARG002 - the Service protocol
        """Every worker in the table has a living thread."""
        with self._lock:
            return all(worker.alive() for worker in self._workers.values())

    def add_pod(self, pod: Pod) -> bool:
        """Starts a worker for every probe of the pod's app containers and sidecars. False: there was no thread for some
        of them; until the pod is added again they count as workers that have no result.

        One that exists already stays. In 1.36 the whole call ends there, which the semantics mend.
        """
        error = ""
        with self._lock:
            if self._shutdown.is_set():
                return True
            before = {key for key in self._threadless if key.pod_uid == pod.uid}
            self._threadless -= before
            for container in self._probed(pod):
                for probe_type in ADD_ORDER:
                    target = Target(pod, container, probe_type)
                    if target.probe is None:
                        continue
                    key = WorkerKey(pod.uid, container.name, probe_type)
                    if key in self._workers:
                        if self._semantics.fix_add_pod_ends_at_first_worker:
                            continue
                        return True
                    worker = Worker(target, self._context, self._forget)
                    try:
                        worker.start()  # before it is kept: one that cannot start must not stay in the table
                        self._workers[key] = worker
                    except RuntimeError as e:
                        self._threadless.add(key)
                        error = str(e)
            lacking = {key for key in self._threadless if key.pod_uid == pod.uid}
        if lacking - before:
            facts = {"pod": f"{pod.namespace}/{pod.name}", "uid": pod.uid, "probes": len(lacking)}
            log.warning("no thread for probes", extra={**facts, "error": error})
        return not lacking

    def stop_liveness_and_startup(self, pod: Pod) -> None:
        """Called when the pod begins to terminate. App containers only; readiness goes on."""
        names = {container.name for container in pod.containers}
        types = (ProbeType.LIVENESS, ProbeType.STARTUP)
        with self._lock:
            workers = [worker for key, worker in self._workers.items() if key.pod_uid == pod.uid]
        for worker in workers:
            worker.pod_ends()
        self._stop(lambda key: key.pod_uid == pod.uid and key.container in names and key.probe_type in types)

    def remove_pod(self, pod: Pod) -> None:
        """Called when all containers are dead. May be repeated."""
        names = {container.name for container in self._probed(pod)}
        self._stop(lambda key: key.pod_uid == pod.uid and key.container in names)

    def cleanup_pods(self, desired: Collection[str]) -> None:
        """Stops the workers of every pod whose uid is not in `desired`."""
        self._stop(lambda key: key.pod_uid not in desired)
        if self._context.restored and self._context.monotonic() > self._context.start_monotonic + RESTORED_S:
            for container_id, probe_type in list(self._context.restored):
                if self._context.restored.pop((container_id, probe_type), None) is not None:
                    self._context.results[probe_type].remove(container_id)

    def kept(self) -> dict[tuple[str, ProbeType], Kept]:
        """What shall outlive us: a run only as far as it is asked for, so it stays the same while nothing changes."""
        with self._lock:
            workers = list(self._workers.values())
        found = dict(self._context.restored)
        for worker in workers:
            state, target = worker.state, worker.target
            if state.container_id:
                probe = target.probe or PROBE_DEFAULTS
                most = max(1, probe.success_threshold, probe.failure_threshold)
                streak = replace(state.streak, run=min(state.streak.run, most))
                result = self._context.results[target.type].get(state.container_id)
                found[state.container_id, target.type] = Kept(result, streak, state.on_hold)
        return found

    def workers(self) -> frozenset[WorkerKey]:
        with self._lock:
            return frozenset(self._workers)

    def totals(self) -> dict[ProbeLabels, int]:
        """prober_probe_total, of living workers."""
        with self._lock:
            return dict(self._totals)

    def durations(self) -> dict[DurationLabels, Histogram]:
        """prober_probe_duration_seconds: of probes that succeeded, of living workers."""
        with self._lock:
            return {labels: copy.deepcopy(histogram) for labels, histogram in self._durations.items()}

    def update_pod_status(self, pod: Pod, status: PodStatus) -> PodStatus:
        """The status with `started` and `ready` of every container (3 rules: runs, started, ready). Triggers readiness
        probes of containers that are started but not known to be ready."""
        containers = status.container_statuses
        if containers is not None:
            containers = tuple(self._app_status(pod, container) for container in containers)
        inits = status.init_container_statuses
        if inits is not None:
            inits = tuple(self._init_status(pod, index, container) for index, container in enumerate(inits))
        return replace(status, container_statuses=containers, init_container_statuses=inits)

    def _app_status(self, pod: Pod, container: ContainerStatus) -> ContainerStatus:
        container = replace(container, started=self._is_started(pod, container))
        if not container.started and self._semantics.started_before_ready:
            return container
        spec = next((c for c in pod.containers if c.name == container.name), None)
        return replace(container, ready=self._is_ready(pod, container, spec))

    def _init_status(self, pod: Pod, index: int, container: ContainerStatus) -> ContainerStatus:
        done = isinstance(container.state, ContainerTerminated) and container.state.exit_code == 0
        if not self._semantics.started_before_ready:
            return replace(container, ready=done)
        container = replace(container, started=self._is_started(pod, container))
        spec = pod.init_containers[index] if index < len(pod.init_containers) else None
        if spec is None or spec.name != container.name:
            return container
        if not is_sidecar(spec):
            return replace(container, ready=True) if done else container
        if not container.started:
            return container
        return replace(container, ready=self._is_ready(pod, container, spec))

    def _is_started(self, pod: Pod, container: ContainerStatus) -> bool:
        if not isinstance(container.state, ContainerRunning):
            return False
        result = self._startup.get(parse_container_id(container.container_id))
        if result is not None:
            return result is Result.SUCCESS
        if not self._semantics.change_container_status_on_kubelet_restart and container.started:
            return True
        return not self._is_probed(pod, container, ProbeType.STARTUP)

    def _is_ready(self, pod: Pod, container: ContainerStatus, spec: Container | None) -> bool:
        if not isinstance(container.state, ContainerRunning):
            return False
        result = self._readiness.get(parse_container_id(container.container_id))
        if result is Result.SUCCESS:
            return True
        if result is not None and not self._semantics.only_success_is_ready:
            return False
        worker = self._worker(pod, container, ProbeType.READINESS)
        if worker is not None and self._semantics.triggers_readiness:
            worker.trigger()
        ready = not self._is_probed(pod, container, ProbeType.READINESS)
        restart_rule = not self._semantics.change_container_status_on_kubelet_restart
        if spec is None or not restart_rule or not self._is_older(container.state.started_at, worker):
            return ready
        # The container is older than this agent: what was ready stays ready until a probe says otherwise.
        if result is None:
            ready = True
        if spec.readiness_probe is not None and not _pod_was_ready(pod):
            ready = False
        return ready

    def _is_older(self, started_at: float | None, worker: Worker | None) -> bool:
        """Than this agent, by the clock as it was when it first saw the container."""
        began = worker.state.began if worker is not None else None
        if began is not None and began[0] == started_at:
            return started_before_restart(began[1], self._start_wall)
        return started_before_restart(started_at, self._start_wall + self._context.ahead_s())

    def _probed(self, pod: Pod) -> tuple[Container, ...]:
        """Containers that may have workers, in kubelet's order: app containers, then sidecars."""
        sidecars = pod.init_containers if self._semantics.probes_sidecars else ()
        return (*pod.containers, *(c for c in sidecars if is_sidecar(c)))

    def _worker(self, pod: Pod, container: ContainerStatus, probe_type: ProbeType) -> Worker | None:
        with self._lock:
            return self._workers.get(WorkerKey(pod.uid, container.name, probe_type))

    def _is_probed(self, pod: Pod, container: ContainerStatus, probe_type: ProbeType) -> bool:
        key = WorkerKey(pod.uid, container.name, probe_type)
        with self._lock:
            return key in self._workers or key in self._threadless

    def _stop(self, chosen: Callable[[WorkerKey], bool]) -> None:
        with self._lock:
            workers = [worker for key, worker in self._workers.items() if chosen(key)]
            self._threadless = {key for key in self._threadless if not chosen(key)}
        for worker in workers:
            worker.stop()

    def _forget(self, worker: Worker) -> None:
        target = worker.target
        key = WorkerKey(target.pod.uid, target.container.name, target.type)
        with self._lock:
            if self._workers.get(key) is worker:
                del self._workers[key]
            for labels in [t for t in self._totals if (t.pod_uid, t.container, t.probe_type) == key]:
                del self._totals[labels]
            self._durations.pop(_duration_labels(target), None)

    def _count(self, target: Target, result: Result, took_s: float) -> None:
        word = "successful" if result is Result.SUCCESS else "failed"
        pod = target.pod
        labels = ProbeLabels(str(target.type), word, target.container.name, pod.name, pod.namespace, pod.uid)
        with self._lock:
            self._totals[labels] += 1
            if result is Result.SUCCESS:
                self._durations[_duration_labels(target)].observe(took_s)


def _duration_labels(target: Target) -> DurationLabels:
    return DurationLabels(str(target.type), target.container.name, target.pod.name, target.pod.namespace)


def _pod_was_ready(pod: Pod) -> bool:
    return any(c.type == contract.CONDITION_READY and c.status == contract.STATUS_TRUE for c in pod.status.conditions)
