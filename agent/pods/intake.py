"""Pods that come: the oldest first, each is taken or refused. As HandlePodAdditions of pkg/kubelet/kubelet.go, v1.36.3.

One thread takes them in, so that no two are told there is room for both; it waits for nothing.
"""

import logging
from collections.abc import Callable
from contextlib import suppress

from agent.events.event import WARNING, Event, Record, about_pod
from agent.model import Pod
from agent.pods import admission
from agent.pods.partners import Pods, Statuses, StoppableRuntime
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
        max_pods: int,
        semantics: Semantics,
        record: Record,
        again: Callable[[str], None],
    ) -> None:
        self._pods, self._runtime, self._statuses = pods, runtime, statuses
        self._states = states
        self._max_pods, self._features = max_pods, semantics.declared_features
        self._record, self._again = record, again

    def take(self) -> set[str]:
        """Takes or refuses the pods that are new; returns their uids. Those after one of which it is not known yet what
        the runtime has wait for it: it comes again."""
        taken: set[str] = set()
        new = (self._pods.pod_by_uid(uid) for uid in self._pods.uids() - self._states.keys())
        ready = (pod for pod in new if pod is not None and not self._is_held_back(pod))
        for pod in sorted(ready, key=lambda pod: (pod.created_at or 0.0, pod.uid)):
            if not self._runtime.ready(pod.uid):
                break
            try:
                self._take(pod)
                taken.add(pod.uid)
            except Exception:
                log.exception("pod not taken in", extra={"uid": pod.uid})
                self._again(pod.uid)
        return taken

    def _is_held_back(self, pod: Pod) -> bool:
        """It comes again when the pod before it is over (allowStaticPodStart)."""
        return pod.static and any(s.is_static(pod.namespace, pod.name) for s in list(self._states.values()))

    def _take(self, pod: Pod) -> None:
        state = PodState(pod, takes_room=not (is_terminal(pod.status.phase) and self._is_over(pod.uid)))
        if not is_to_end(pod):
            used = sum(s.takes_room and s.stage is not Stage.TERMINATED for s in list(self._states.values()))
            used = 0 if pod.static else used  # a kubelet ends another pod to make room for one
            refusal = admission.refusal(pod, used, self._max_pods, self._features)
            if refusal is not None:
                self._refuse(state, refusal)
        self._states[pod.uid] = state

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
