"""Pure: whose pods are health pods, and which of their probes we can make."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from agent.kubelet.status.restarts import is_sidecar
from agent.wire.model import Container, ExecAction, Pod, Probe


@dataclass(frozen=True, slots=True)
class HealthPods:
    """Where the health pods of one DaemonSet are. `label_selector`: "" for all of the namespace. `daemon_set`: "" for
    those of any owner."""

    namespace: str
    label_selector: str = ""
    daemon_set: str = ""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A health pod, and the entries that have chosen it."""

    pod: Pod
    by: frozenset[HealthPods]


def joined(lists: Iterable[tuple[HealthPods, Iterable[Pod]]]) -> list[Chosen]:
    """The pods of all entries, by uid once, also where several have chosen one."""
    pods: dict[str, Pod] = {}
    by: dict[str, set[HealthPods]] = {}
    for chosen, found in lists:
        for pod in found:
            pods[pod.uid] = pod
            by.setdefault(pod.uid, set()).add(chosen)
    return [Chosen(pod, frozenset(by[uid])) for uid, pod in pods.items()]


def limited(pods: Iterable[Chosen], most: int) -> list[Chosen]:
    """By namespace and name, at most so many of each entry, so that one that matches everything leaves the others
    theirs."""
    taken: Counter[HealthPods] = Counter()
    found = []
    for one in sorted(pods, key=lambda one: (one.pod.namespace, one.pod.name, one.pod.uid)):
        if any(taken[entry] < most for entry in one.by):
            taken.update(one.by)
            found.append(one)
    return found


def probed(pod: Pod, *, with_exec: bool) -> Pod:
    """The pod with those probes only that we make: the readiness probes, without commands unless `with_exec`.

    Liveness is not ours: nobody is restarted by a second opinion. Whether a container has started, the kubelet says.
    """

    def only_readiness(container: Container) -> Container:
        made = container.readiness_probe if can_probe(container.readiness_probe, with_exec=with_exec) else None
        return replace(container, readiness_probe=made, liveness_probe=None, startup_probe=None)

    return replace(
        pod,
        containers=tuple(only_readiness(c) for c in pod.containers),
        init_containers=tuple(only_readiness(c) for c in pod.init_containers),
    )


def can_probe(probe: Probe | None, *, with_exec: bool) -> bool:
    """Whether the probe is there and can be made from outside of the container."""
    if probe is None or probe.action is None:
        return False
    return with_exec or not isinstance(probe.action, ExecAction)


def counted(pod: Pod) -> tuple[Container, ...]:
    """The containers that ContainersReady counts."""
    return (*(c for c in pod.init_containers if is_sidecar(c)), *pod.containers)


def budget_s(pod: Pod) -> float:
    """The longest time after which a readiness probe of the pod has failed or passed for good, in seconds."""
    probes = [c.readiness_probe for c in counted(pod) if c.readiness_probe is not None]
    runs = (
        max(probe.failure_threshold, probe.success_threshold) * probe.period_s + probe.timeout_s for probe in probes
    )
    return float(max(runs, default=0))
