"""What /metrics shows of the lists, by the kubelet's names (pkg/kubelet/metrics/metrics.go, pleg/generic.go)."""

import copy
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from agent.wire.containers import ContainerPhase, RuntimePod
from agent.wire.histogram import Histogram


@dataclass(frozen=True, slots=True)
class Running:
    """By the last list. `pods`: with a sandbox that is ready. `containers`: how many, by state."""

    pods: int = 0
    containers: dict[ContainerPhase, int] = field(default_factory=dict)


def running_of(listed: Sequence[RuntimePod]) -> Running:
    """A kubelet leaves a state that no container is in any more at its last count; here it is 0."""
    states = Counter(container.phase for pod in listed for container in pod.containers)
    ready = sum(any(sandbox.ready for sandbox in pod.sandboxes) for pod in listed)
    return Running(ready, {phase: states[phase] for phase in ContainerPhase})


@dataclass(frozen=True, slots=True)
class Durations:
    """Seconds. `lists`: of all pods, failed ones too. `looks`: at one pod. `intervals`: from the beginning of the last
    list that there was to that of the next."""

    lists: Histogram
    looks: Histogram
    intervals: Histogram


class Clocked:
    """Counted by the thread that lists, read by the server's."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counted = Durations(Histogram(), Histogram(), Histogram())

    def listed(self, last: float | None, began: float, ended: float) -> None:
        """Monotonic. `last`: when the last list began that there was."""
        with self._lock:
            if last is not None:
                self._counted.intervals.observe(began - last)
            self._counted.lists.observe(ended - began)

    def looked(self, began: float, ended: float) -> None:
        with self._lock:
            self._counted.looks.observe(ended - began)

    def durations(self) -> Durations:
        with self._lock:
            return copy.deepcopy(self._counted)
