"""Ends all containers of a pod in their order. As killContainersWithSyncResult of kuberuntime, but nothing here waits.

Sidecars are asked to end when the app containers and the next sidecar behind them have, or when the grace is over.
"""

from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass, field

from agent.model import Pod
from agent.pods.actions import MIN_GRACE_S, Remove, Start, waits_for
from agent.runtime.base import ContainerRuntime


@dataclass(slots=True)
class Ending:
    """Of one pod. `since`: from when the grace counts, by the monotonic clock. `asked`: id -> its deadline."""

    grace_s: float | None = None
    since: float = 0.0
    asked: dict[str, float] = field(default_factory=dict)


def end_containers(runtime: ContainerRuntime, pod: Pod, ending: Ending, monotonic: float) -> float | None:
    """Asks those to end whose turn it is. A grace only becomes shorter, and counts anew then.

    Returns in how many seconds it has to be called again at the latest; None: nothing runs any more.
    """
    running = runtime.pod(pod.uid).running
    if not running:
        return None
    grace_s = grace_of(pod)
    if ending.grace_s is None or grace_s < ending.grace_s:
        ending.grace_s, ending.since = grace_s, monotonic
    left_s = ending.since + ending.grace_s - monotonic
    waits = waits_for(pod, [instance.name for instance in running])
    for instance in running:
        if waits[instance.name] and left_s > 0:
            continue
        deadline = monotonic + max(MIN_GRACE_S, left_s)
        if deadline < ending.asked.get(instance.id, float("inf")):
            ending.asked[instance.id] = deadline
            runtime.stop_container(instance.id, max(MIN_GRACE_S, left_s))
    return max(left_s, MIN_GRACE_S)


def reset_containers(
    runtime: ContainerRuntime, removals: Sequence[Remove], killed: MutableMapping[str, Start | None]
) -> bool:
    """Ends what runs, then has the runtime forget all of them, in this order: True. `killed` is kept up to date."""
    ending = [remove.instance.id for remove in removals if remove.kill]
    for container_id in ending:
        if container_id not in killed:
            killed[container_id] = None
            runtime.stop_container(container_id, MIN_GRACE_S)
    for remove in () if ending else removals:
        runtime.remove_container(remove.instance.id)
    return not ending


def grace_of(pod: Pod) -> float:
    """calculateEffectiveGracePeriod: the API server's word on a pod being deleted, else the spec's."""
    given = pod.deletion_grace_period_s
    return max(MIN_GRACE_S, pod.termination_grace_period_s if given is None else given)
