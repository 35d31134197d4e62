"""Pods that come: the oldest first, each is taken or refused. As HandlePodAdditions of pkg/kubelet/kubelet.go, v1.36.3.

One thread admits pods, so that two pods never get the same room. It waits for nothing but, where it would
refuse a pod, once a turn for the Node as the API server has it.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress

from agent.kubelet.events.event import WARNING, Event, Record, about_pod
from agent.kubelet.pods import admission
from agent.kubelet.pods.interfaces import Nodes, Pods, Statuses, StoppableRuntime
from agent.kubelet.pods.source import concerns_sync
from agent.kubelet.pods.state import PodState, Stage, is_to_end
from agent.kubelet.status.conditions import is_terminal
from agent.processes.command import RuntimeUnavailable
from agent.wire.containers import ContainerPhase
from agent.wire.model import Node, Pod
from agent.wire.semantics import Semantics

log = logging.getLogger(__name__)


class AdmissionOrder:
    """`states`: the loop's, which new ones are put into. `again(uid)`: one that could not be taken in comes back."""

    def __init__(
        self,
        pods: Pods,
        runtime: StoppableRuntime,
        statuses: Statuses,
        states: dict[str, PodState],
        *,
        nodes: Nodes,
        semantics: Semantics,
        record: Record,
        again: Callable[[str], None],
    ) -> None:
        self._pods, self._runtime, self._statuses = pods, runtime, statuses
        self._states = states
        self._nodes, self._semantics = nodes, semantics
        self._newest: Node | None = None  # read for a pod of this turn
        self._unreadable = False  # in this turn
        self._record, self._again = record, again

    def take(self) -> set[str]:
        """Takes or refuses the pods that are new; returns their uids. Those after one of which it is not known yet what
        the runtime has wait for it: it comes again."""
        taken: set[str] = set()
        self._newest, self._unreadable = None, False
        new = (self._pods.pod_by_uid(uid) for uid in self._pods.uids() - self._states.keys())
        ready = (pod for pod in new if pod is not None and not self._is_held_back(pod))
        for pod in sorted(ready, key=lambda pod: (pod.created_at or 0.0, pod.uid)):
            if not self._runtime.ready(pod.uid):
                break
            try:
                if self._take(pod):
                    taken.add(pod.uid)
                else:
                    self._again(pod.uid)
            except Exception:
                log.exception("pod not taken in", extra={"uid": pod.uid})
                self._again(pod.uid)
        return taken

    def changed(self, state: PodState, pod: Pod) -> None:
        """A refused pod that is changed later, or deleted, is ended as any other that is over."""
        if state.refused and is_to_end(pod) and concerns_sync(state.pod, pod, self._semantics):
            state.end(is_over=is_terminal(pod.status.phase) and self._is_over(pod.uid))

    def _is_held_back(self, pod: Pod) -> bool:
        """It comes again when the pod before it is over (allowStaticPodStart)."""
        return pod.static and any(s.is_static(pod.namespace, pod.name) for s in list(self._states.values()))

    def _take(self, pod: Pod) -> bool:
        """False: it cannot be decided now."""
        state = PodState(pod)
        if is_to_end(pod):
            state.end(is_over=is_terminal(pod.status.phase) and self._is_over(pod.uid))
        if not is_terminal(pod.status.phase):  # one that is being deleted needs room, too
            refusal = self._refusal(pod, self._active())
            if refusal is not None and self._unreadable:
                log.warning("pod waits until the Node can be read", extra={**state.facts, "reason": refusal.text})
                return False
            if refusal is not None:
                self._refuse(state, refusal)
        self._states[pod.uid] = state
        return True

    def _active(self) -> list[Pod]:
        """The pods that take room: those that the API server still has and that are not over (GetActivePods)."""
        return [state.pod for uid, state in list(self._states.items()) if self._takes_room(uid, state)]

    def _refusal(self, pod: Pod, others: Sequence[Pod]) -> admission.Refusal | None:
        """A refusal is final: it is given by no Node that may have changed since it was read."""
        features = self._semantics.declared_features
        refusal = admission.refusal(pod, others, self._newest or self._nodes.known_node(), features)
        if refusal is None or self._newest is not None or self._unreadable:
            return refusal
        self._newest = self._nodes.read_node()
        self._unreadable = self._newest is None
        return refusal if self._newest is None else admission.refusal(pod, others, self._newest, features)

    def _takes_room(self, uid: str, state: PodState) -> bool:
        pod = self._pods.pod_by_uid(uid)
        if pod is None or not state.takes_room or state.stage is Stage.TERMINATED:
            return False
        return state.ending or state.stage is Stage.TERMINATING or not is_terminal(pod.status.phase)

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
