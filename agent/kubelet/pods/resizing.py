"""A pod whose resources are changed while it runs: what its status says of it.

Mirrors pkg/kubelet/allocation of v1.36.3 on a platform without resizes: neither of our runtimes limits what a container
takes, so a change is infeasible, in the words that a kubelet has for such a node, until it is taken back. What a pod
had when it was first seen is what it was granted, and that outlives the agent, as the kubelet's checkpoint.
"""

import json
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

from agent.kubelet.events.event import WARNING, Event, Record, about_pod
from agent.kubelet.node.facts import amount
from agent.kubelet.status.conditions import is_terminal
from agent.kubelet.status.resize import (
    NO_RESIZES,
    REASON_INFEASIBLE,
    Resizes,
    backfilled,
    with_pending,
    without_pending,
    without_progress,
)
from agent.wire.model import Container, Pod

MESSAGE_INFEASIBLE = "In-place pod resize is not supported on this node"
EVENT_INFEASIBLE = "ResizeInfeasible"

Amounts = frozenset[tuple[str, str, str, Fraction | str]]
"""Container, limits or requests, resource, amount by value."""
Resources = tuple[tuple[str, str, str, str], ...]
"""The same with the quantities as they were written."""


class Grants(Protocol):
    """By the uids of pods; may be called from any thread."""

    def of(self, uid: str) -> Resources | None: ...
    def grant(self, uid: str, resources: Resources) -> None: ...
    def keep(self, uids: AbstractSet[str]) -> None: ...


class Forgotten:
    """Grants that nothing keeps."""

    def of(self, uid: str) -> Resources | None:  # noqa: ARG002 - as Grants
        return None

    def grant(self, uid: str, resources: Resources) -> None:
        """Not kept."""

    def keep(self, uids: AbstractSet[str]) -> None:
        """There are none."""


FORGOTTEN = Forgotten()


@dataclass(frozen=True, slots=True)
class Allocation:
    """`granted`: with what the pod was taken. `asked`: what it asked for when last seen."""

    granted: Amounts
    asked: Amounts
    resizes: Resizes = NO_RESIZES


class Resizer:
    def __init__(self, record: Record, wall: Callable[[], float], grants: Grants) -> None:
        self._record = record
        self._wall = wall
        self._grants = grants
        self.keep = grants.keep

    def seen(self, before: Allocation | None, pod: Pod) -> Allocation:
        """With each look at a pod that is there."""
        kept = self._grants.of(pod.uid) if before is None else None
        if before is None and kept is None and not is_terminal(pod.status.phase):
            self._grants.grant(pod.uid, resources(pod))
        after, infeasible = allocated(before, pod, self._wall(), None if kept is None else amounts(kept))
        if infeasible:
            self._record(Event(about_pod(pod), WARNING, EVENT_INFEASIBLE, event_text(pod)))
        return after


def allocated(
    before: Allocation | None, pod: Pod, wall: float, granted: Amounts | None = None
) -> tuple[Allocation, bool]:
    """True: a change that cannot be made has come anew. `granted`: by an agent before us, of a pod that we have not
    seen; where it asks for just that, what was said stays as it is, as after the start of a kubelet. Pure."""
    asked = amounts(resources(pod))
    if before is None:
        said = without_progress(backfilled(NO_RESIZES, pod.status.conditions, wall))[0]
        granted = asked if granted is None else granted
        before = Allocation(granted, granted, said)
    if asked == before.asked or is_terminal(pod.status.phase):
        return before, False
    if asked == before.granted:
        return Allocation(before.granted, asked, without_pending(before.resizes)), False
    resizes, changed = with_pending(before.resizes, REASON_INFEASIBLE, MESSAGE_INFEASIBLE, pod.generation, wall)
    return Allocation(before.granted, asked, resizes), changed


def resources(pod: Pod) -> Resources:
    """What the pod's containers ask for, without those that are there to look into it."""
    return tuple(
        (container.name, kind, resource, quantity)
        for container in (*pod.init_containers, *pod.containers)
        for kind, resource, quantity in container.resources
    )


def amounts(asked: Iterable[tuple[str, str, str, str]]) -> Amounts:
    return frozenset((name, kind, resource, amount(quantity)) for name, kind, resource, quantity in asked)


def event_text(pod: Pod) -> str:
    """As PodResizePendingMsg."""
    summary: dict[str, Any] = {
        "initContainers": [_summary(c) for c in pod.init_containers],
        "containers": [_summary(c) for c in pod.containers],
        "generation": pod.generation,
        "error": MESSAGE_INFEASIBLE,
    }
    shown = {key: value for key, value in summary.items() if value != []}
    return f"Pod resize {REASON_INFEASIBLE}: {json.dumps(shown, separators=(',', ':'))}"


def _summary(container: Container) -> dict[str, Any]:
    kinds = sorted({kind for kind, _resource, _quantity in container.resources})
    return {
        "name": container.name,
        "resources": {
            kind: {resource: quantity for of, resource, quantity in sorted(container.resources) if of == kind}
            for kind in kinds
        },
    }
