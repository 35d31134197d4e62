"""Pure: ContainersReady and Ready of a pod as we see them, by the rules of agent.status.

Container by container, first match wins; `told` is what the API server has:

    its state is not known                       told: unknown
    it does not run                              not ready
    it has not started, and is the one told      told: unknown (startup probes are the kubelet's)
    it has not started, and is newer             not ready, as its kubelet will say
    no readiness probe                           ready
    a probe that we cannot make (a command)      told: unknown
    our probe has given no stable result yet     not ready if it was started since we look, as for the kubelet; else
                                                 told: unknown
    else                                         as our probe says

Where all that is not unknown is ready and something is unknown, the pod is unknown: a probe that cannot be made speaks
for nobody. One container that is not ready is enough for the pod not to be.
"""

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from enum import StrEnum

from agent.kubelet.prober.decide import parse_container_id, started_before_restart
from agent.kubelet.status.conditions import containers_ready_condition, find_condition, ready_condition
from agent.kubelet.status.generate import Inputs, generate_status
from agent.opinion.selection import can_probe, counted
from agent.wire.containers import RuntimePod
from agent.wire.model import ContainerRunning, ContainerStatus, ContainerWaiting, Pod, PodStatus, Result
from agent.wire.semantics import Semantics
from kube.contract import (
    CONDITION_CONTAINERS_READY,
    CONDITION_NODE_HEALTHY,
    CONDITION_READY,
    STATUS_FALSE,
    STATUS_TRUE,
)


class Word(StrEnum):
    READY = "ready"
    NOT_READY = "not ready"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Opinion:
    """`containers`, `pod`: our ContainersReady and Ready. `unready`, `unknown`: names of containers. `status`: with
    these states, for the probes."""

    containers: Word
    pod: Word
    unready: tuple[str, ...] = ()
    status: PodStatus = field(default_factory=PodStatus, compare=False, repr=False)
    unknown: frozenset[str] = field(default=frozenset(), compare=False)


def opinion_of(
    pod: Pod,
    runtime: RuntimePod | None,
    result: Callable[[str], Result | None],
    *,
    semantics: Semantics,
    with_exec: bool = False,
    wall: float = 0.0,
    start_wall: float = math.inf,
) -> Opinion:
    """Our word on the pod. runtime: what the runtime knows of it; None: only what the API server tells is known.

    result: container id -> the stable result of our readiness probe. wall, start_wall: seconds since the epoch, now and
    when we began to look.
    """
    status = _seen(pod, runtime, semantics, wall) if runtime is not None and runtime.containers else pod.status
    told_ids = {c.container_id for c in _statuses(pod.status)}
    unknown: set[str] = set()
    by_name = {c.name: c for c in _statuses(status)}
    for container in counted(pod):
        seen = by_name.get(container.name)
        ready: Word
        if seen is None or seen.state is None:
            ready = Word.UNKNOWN
        elif not isinstance(seen.state, ContainerRunning):
            ready = Word.NOT_READY
        elif seen.started is False:
            ready = Word.UNKNOWN if seen.container_id in told_ids else Word.NOT_READY
        elif container.readiness_probe is None:
            ready = Word.READY
        elif not can_probe(container.readiness_probe, with_exec=with_exec):
            ready = Word.UNKNOWN
        else:
            is_new = seen.state.started_at is not None and not started_before_restart(seen.state.started_at, start_wall)
            ready = _by_result(result(parse_container_id(seen.container_id)), is_new=is_new)
        if ready is Word.UNKNOWN:
            unknown.add(container.name)
        # What is unknown counts as ready here: it is looked at once all else is known to be.
        by_name[container.name] = replace(
            seen or ContainerStatus(container.name, ContainerWaiting()), ready=ready is not Word.NOT_READY
        )
    statuses = tuple(by_name.values())
    ours = containers_ready_condition(pod, pod.status, statuses, status.phase)
    whole = ready_condition(pod, pod.status, pod.status.conditions, statuses, status.phase)
    unready = tuple(c.name for c in counted(pod) if not by_name[c.name].ready)
    words = _word(ours.status, unknown), _word(whole.status, unknown)
    return Opinion(*words, unready, status, frozenset(unknown))


def told(status: PodStatus) -> tuple[Word, Word]:
    """ContainersReady and Ready as the kubelet has said last."""
    return _told(status, CONDITION_CONTAINERS_READY), _told(status, CONDITION_READY)


def was_said(status: PodStatus, reasons: Collection[str]) -> bool:
    """Does our condition, as the API server has it, say that the node is not healthy, for one of these reasons? Not
    where the kubelet has changed its word since: it knows more than an agent that has only just begun to look."""
    ours = find_condition(status.conditions, CONDITION_NODE_HEALTHY)
    if ours is None or ours.status != STATUS_FALSE or ours.reason not in reasons:
        return False
    theirs = find_condition(status.conditions, CONDITION_CONTAINERS_READY)
    at, changed = ours.last_transition_time, None if theirs is None else theirs.last_transition_time
    return at is None or changed is None or changed <= at


def _seen(pod: Pod, runtime: RuntimePod, semantics: Semantics, wall: float) -> PodStatus:
    """The pod's status by the runtime's states. Whether a container has started its kubelet tells, where it has a probe
    for that; else it has when it runs."""
    told = {c.container_id: c.started for c in _statuses(pod.status)}
    by_probe = {c.name for c in (*pod.init_containers, *pod.containers) if c.startup_probe is not None}

    def one(container: ContainerStatus) -> ContainerStatus:
        if container.name in by_probe:
            return replace(container, started=bool(told.get(container.container_id)))
        return replace(container, started=isinstance(container.state, ContainerRunning))

    def fill(_pod: Pod, status: PodStatus) -> PodStatus:
        return replace(
            status,
            container_statuses=tuple(one(c) for c in status.container_statuses or ()),
            init_container_statuses=tuple(one(c) for c in status.init_container_statuses or ()),
        )

    seen = generate_status(Inputs(pod, runtime, semantics, old=pod.status, wall=wall), fill)
    # A pod on the host's network has no address of its own.
    return replace(seen, pod_ip=seen.pod_ip or pod.status.pod_ip, host_ip=pod.status.host_ip)


def _statuses(status: PodStatus) -> tuple[ContainerStatus, ...]:
    return (*(status.init_container_statuses or ()), *(status.container_statuses or ()))


def _by_result(result: Result | None, *, is_new: bool) -> Word:
    if result is None or result is Result.UNKNOWN:
        return Word.NOT_READY if is_new else Word.UNKNOWN
    return Word.READY if result is Result.SUCCESS else Word.NOT_READY


def _word(status: str, unknown: set[str]) -> Word:
    if status != STATUS_TRUE:
        return Word.NOT_READY
    return Word.UNKNOWN if unknown else Word.READY


def _told(status: PodStatus, condition_type: str) -> Word:
    condition = find_condition(status.conditions, condition_type)
    if condition is None:
        return Word.UNKNOWN
    if condition.status == STATUS_TRUE:
        return Word.READY
    return Word.NOT_READY if condition.status == STATUS_FALSE else Word.UNKNOWN
