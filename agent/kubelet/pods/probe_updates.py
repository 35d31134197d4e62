"""What a changed probe result brings about, as in syncLoopIteration of pkg/kubelet/kubelet.go, v1.36.3.

readiness   the status shows it at once, and the pod is synced
startup     the same
liveness    a failure has the pod synced, which ends the container; a success concerns nobody
"""

from collections.abc import Callable
from typing import Protocol

from agent.wire.model import ProbeUpdate, Result
from agent.wire.semantics import Semantics


class ContainerFlags(Protocol):
    """The part of agent.kubelet.status.manager.StatusManager that is used."""

    def set_container_readiness(self, uid: str, container_id: str, ready: bool) -> None: ...
    def set_container_startup(self, uid: str, container_id: str, started: bool) -> None: ...


class ProbeUpdates:
    """Called in the threads of the probes; waits for nothing. `sync(uid)` asks for a sync of the pod."""

    def __init__(self, statuses: ContainerFlags, sync: Callable[[str], None], semantics: Semantics) -> None:
        self._statuses = statuses
        self._sync = sync
        self._syncs = semantics.syncs_after_probes

    def readiness(self, update: ProbeUpdate) -> None:
        ready = update.result is Result.SUCCESS
        self._statuses.set_container_readiness(update.pod_uid, update.container_id, ready)
        if self._syncs:
            self._sync(update.pod_uid)

    def startup(self, update: ProbeUpdate) -> None:
        started = update.result is Result.SUCCESS
        self._statuses.set_container_startup(update.pod_uid, update.container_id, started)
        if self._syncs:
            self._sync(update.pod_uid)

    def liveness(self, update: ProbeUpdate) -> None:
        if update.result is Result.FAILURE:
            self._sync(update.pod_uid)
