"""What nobody tells of: every two seconds. As HandlePodCleanups of pkg/kubelet/kubelet_pods.go."""

from collections.abc import Callable

from agent.kubelet.pods.interfaces import Pods, ProbeWorkers, Statuses, StoppableRuntime
from agent.kubelet.pods.resizing import Resizer
from agent.kubelet.pods.state import PodState, Stage
from agent.kubelet.pods.work_queue import WorkQueue
from agent.kubelet.status import deadline
from agent.kubelet.status.conditions import is_terminal
from agent.processes.command import RuntimeUnavailable


class Housekeeper:
    """`states`: the loop's. Pods that it finds something to do for are put into `inbox`."""

    def __init__(
        self,
        inbox: WorkQueue,
        pods: Pods,
        runtime: StoppableRuntime,
        statuses: Statuses,
        prober: ProbeWorkers,
        resizer: Resizer,
        states: dict[str, PodState],
        *,
        source_synced: Callable[[], bool],
        wall: Callable[[], float],
    ) -> None:
        self._inbox, self._pods, self._runtime = inbox, pods, runtime
        self._statuses, self._prober, self._resizer = statuses, prober, resizer
        self._states = states
        self._source_synced, self._wall = source_synced, wall

    def turn(self) -> None:
        states = dict(self._states)
        active = frozenset(uid for uid, state in states.items() if state.stage is not Stage.TERMINATED)
        self._prober.cleanup_pods(active)
        for uid, state in states.items():
            # Seen here only where the clock was set forward: else the pod's own due time tells.
            known = self._statuses.pod_status(uid) or state.pod.status
            if state.stage is Stage.SYNCING and deadline.past_active_deadline(state.pod, known, self._wall()):
                self._inbox.put(uid)
        if not self._source_synced():
            return
        wanted = self._pods.uids()
        self._statuses.remove_orphaned(wanted | active)
        self._resizer.keep(wanted | states.keys())
        kept = {uid for uid in wanted | states.keys() if uid not in states or not states[uid].refused}
        there = self._runtime.known_pods()
        for uid in wanted - kept - there:
            pod = self._pods.pod_by_uid(uid)  # refused; filterTerminalPodsToDelete
            if pod is not None and pod.deletion_timestamp is not None and is_terminal(pod.status.phase):
                states[uid].end(is_over=self._is_known(uid))
                self._inbox.put(uid)
        for uid in there - kept:
            self._inbox.put(uid)

    def _is_known(self, uid: str) -> bool:
        """What the runtime has of the pod."""
        try:
            self._runtime.pod(uid)
        except RuntimeUnavailable:
            return False
        return True

    def clear_away(self, uid: str) -> None:
        """Of a pod that is not to run here: an agent before us left it."""
        if self._source_synced() and uid in self._runtime.known_pods():
            self._runtime.remove_pod(uid)
