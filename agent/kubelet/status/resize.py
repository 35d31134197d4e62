"""What the status says of a pod whose resources were changed while it runs. Pure: time is an argument.

Mirrors the resize conditions of pkg/kubelet/status/status_manager.go, v1.36.3. They carry the generation of the pod
that they were made for, which is not always the newest.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from agent.kubelet.status.conditions import CONDITION_POD_RESIZE_IN_PROGRESS, CONDITION_POD_RESIZE_PENDING
from agent.wire.model import Condition
from kube.contract import STATUS_TRUE

REASON_DEFERRED = "Deferred"
REASON_INFEASIBLE = "Infeasible"


@dataclass(frozen=True, slots=True)
class Resizes:
    """`pending`: the resources that are asked for are not granted. `in_progress`: granted, and not in effect yet."""

    pending: Condition | None = None
    in_progress: Condition | None = None

    def conditions(self) -> tuple[Condition, ...]:
        return tuple(c for c in (self.pending, self.in_progress) if c is not None)


NO_RESIZES = Resizes()


def with_pending(resizes: Resizes, reason: str, message: str, generation: int, wall: float) -> tuple[Resizes, bool]:
    """True: it is another reason, or another generation, than before. Whatever is not infeasible is deferred."""
    before = resizes.pending
    reason = reason if reason == REASON_INFEASIBLE else REASON_DEFERRED
    made = _condition(CONDITION_POD_RESIZE_PENDING, before, reason, message, generation, wall)
    changed = before is None or (before.reason, before.observed_generation) != (reason, generation)
    return replace(resizes, pending=made), changed


def with_progress(
    resizes: Resizes, reason: str, message: str, generation: int, wall: float
) -> tuple[Resizes, int, bool]:
    """Also the generation that it is of, and whether it says anything else than before. One that is there keeps its
    generation, and its words where there are no new ones."""
    before = resizes.in_progress
    if before is not None:
        generation = before.observed_generation
        if not reason and not message:
            reason, message = before.reason, before.message
    made = _condition(CONDITION_POD_RESIZE_IN_PROGRESS, before, reason, message, generation, wall)
    changed = before is None or (before.reason, before.message) != (reason, message)
    return replace(resizes, in_progress=made), generation, changed


def without_pending(resizes: Resizes) -> Resizes:
    return replace(resizes, pending=None)


def without_progress(resizes: Resizes) -> tuple[Resizes, int | None]:
    """Also the generation of the one that was there."""
    before = resizes.in_progress
    return replace(resizes, in_progress=None), None if before is None else before.observed_generation


def backfilled(resizes: Resizes, conditions: Iterable[Condition], wall: float) -> Resizes:
    """With what was said before we were there."""
    for said in conditions:
        if said.type not in (CONDITION_POD_RESIZE_PENDING, CONDITION_POD_RESIZE_IN_PROGRESS):
            continue
        made = _condition(said.type, None, said.reason, said.message, said.observed_generation, wall)
        pending = said.type == CONDITION_POD_RESIZE_PENDING
        resizes = replace(resizes, pending=made) if pending else replace(resizes, in_progress=made)
    return resizes


def of_generation(resizes: Resizes, generation: int) -> Resizes:
    """For a pod of that generation: where it has none its conditions have none either."""
    if generation or not any(c.observed_generation for c in resizes.conditions()):
        return resizes
    pending, progress = resizes.pending, resizes.in_progress
    return Resizes(
        pending and replace(pending, observed_generation=0), progress and replace(progress, observed_generation=0)
    )


def _condition(
    kind: str, before: Condition | None, reason: str, message: str, generation: int, wall: float
) -> Condition:
    """The time of its transition is that of its reason."""
    since = before.last_transition_time if before is not None and before.reason == reason else wall
    return Condition(kind, STATUS_TRUE, reason, message, since, wall, generation)
