"""Pods that come: the oldest first, each is taken or refused. As HandlePodAdditions of pkg/kubelet/kubelet.go, v1.36.3.

One thread takes them in, so that no two are told there is room for both. It waits for nothing but, where it would
refuse a pod, once a turn for the Node as the API server has it.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress

from agent.events.event import WARNING, Event, Record, about_pod
from agent.model import Node, Pod
from agent.pods import admission
from agent.pods.partners import NodeNow, Pods, Statuses, StoppableRuntime
from agent.pods.state import PodState, Stage, is_to_end
from agent.processes.command import RuntimeUnavailable
from agent.runtime.base import ContainerPhase
from agent.semantics import Semantics
from agent.status.conditions import is_terminal

log = logging.getLogger(__name__)


class Intake:
    """`states`: the loop's, which new ones are put into. `again(uid)`: one that could not be taken in comes back."""

    def __init__(
        self,
        pods: Pods,
        runtime: StoppableRuntime,
        statuses: Statuses,
        states: dict[str, PodState],
        *,
        node: NodeNow,
        semantics: Semantics,
        record: Record,
        again: Callable[[str], None],
    ) -> None:
        self._pods, self._runtime, self._statuses = pods, runtime, statuses
        self._states = states
        self._node, self._features = node, semantics.declared_features
        self._newest: Node | None = None  # read for a pod of this turn
        self._record, self._again = record, again

    def take(self) -> set[str]:
        """Takes or refuses the pods that are new; returns their uids. Those after one of which it is not known yet what
        the runtime has wait for it: it comes again."""
        taken: set[str] = set()
        self._newest = None
        new = (self._pods.pod_by_uid(uid) for uid in self._pods.uids() - self._states.keys())
        for pod in sorted((pod for pod in new if pod is not None), key=lambda pod: (pod.created_at or 0.0, pod.uid)):
            if not self._runtime.ready(pod.uid):
                break
            try:
                self._take(pod)
                taken.add(pod.uid)
            except Exception:
                log.exception("pod not taken in", extra={"uid": pod.uid})
                self._again(pod.uid)
        return taken

    def _take(self, pod: Pod) -> None:
        state = PodState(pod, takes_room=not (is_terminal(pod.status.phase) and self._is_over(pod.uid)))
        if not is_to_end(pod):
            refusal = self._refusal(pod, self._active())
            if refusal is not None:
                self._refuse(state, refusal)
        self._states[pod.uid] = state

    def _active(self) -> list[Pod]:
        """The pods that take room (GetActivePods)."""
        states = list(self._states.values())
        return [state.pod for state in states if state.takes_room and state.stage is not Stage.TERMINATED]

    def _refusal(self, pod: Pod, others: Sequence[Pod]) -> admission.Refusal | None:
        """A refusal is final: it is given for no Node that has changed since it was read."""
        node = self._newest or self._node(newest=False)
        refusal = admission.refusal(pod, others, node, self._features)
        if refusal is None or self._newest is not None:
            return refusal
        self._newest = self._node(newest=True)
        return admission.refusal(pod, others, self._newest, self._features)

    def _is_over(self, uid: str) -> bool:
        """An agent before us has ended it: nothing of it is there that runs (isPodStatusCacheTerminal)."""
        with suppress(RuntimeUnavailable):
            known = self._runtime.pod(uid)
            runs = any(container.phase is ContainerPhase.RUNNING for container in known.containers)
            return not runs and not any(sandbox.ready for sandbox in known.sandboxes)
        return False

    def _refuse(self, state: PodState, refusal: admission.Refusal) -> None:
        """What an agent before us has left of it is ended by the housekeeping."""
        pod = state.pod
        log.warning("pod rejected", extra={**state.facts, "reason": refusal.text})
        self._record(Event(about_pod(pod), WARNING, refusal.reason, refusal.text))
        state.stage, state.could_run, state.refused = Stage.TERMINATED, False, True
        self._statuses.set_pod_status(pod, refusal.status(pod))
        self._statuses.terminate_pod(pod)
