"""Keeps the newest status of every pod and writes it to the API server.

Mirrors pkg/kubelet/status/status_manager.go of v1.36.3.

Guarantees:
 1. Everything said of a pod gets a version, higher than any before; only the newest is written, older ones never.
 2. A status equal to the kept one (`merge.equal_for_kubelet`) makes no version and no request, unless it is forced.
 3. A container that is over for good does not come back: such an update is dropped whole.
 4. Start time never changes; transition times change with the status of their condition only.
 5. All requests are made by one thread, one pod after another; callers never wait for the network, nor does the lock.
 6. An update wakes the thread, one during a batch wakes it for the next, so none waits for the tick.
 7. A failed write is tried again with the next update of any pod, at the latest after `SYNC_PERIOD_S`. A batch ends
    with the first request that gets no answer: the others would cost a deadline each. Its pod comes last the next time.
 8. What somebody else wrote into fields or conditions we own is put right within `SYNC_PERIOD_S`; the rest is kept.
 9. A pod that was created anew under the same name is never written: the UID is in every patch and every delete.
10. No terminal phase is written while containers could run, and no pod in a terminal phase is Ready.
11. A pod object is deleted (grace 0) only after its termination was finished here and its own phase is terminal.
12. The status of a static pod is written to its mirror, by the mirror's uid, once there is one. No mirror is deleted.
"""

import copy
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from agent.kubelet.status import conditions, merge, patch, termination
from agent.wire.histogram import Histogram
from agent.wire.model import ContainerStatus, Pod, PodStatus
from agent.wire.pod import delete_options, parse_pod
from agent.wire.semantics import Semantics
from agent.wire.status import write_status
from component.loop import Loop
from kube import paths
from kube.errors import CredentialsInvalid, KubeError, NotFound, Unreachable
from kube.media_types import STRATEGIC_MERGE_PATCH
from kube.objects import UNREADABLE

log = logging.getLogger(__name__)

SYNC_PERIOD_S = 10.0
SYNC_BOUNDS_S = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 20.0, 30.0, 45.0, 60.0)
STUCK_AFTER_S = 60.0  # longer than the requests of one pod: each has its deadline


class PodClient(Protocol):
    """The part of kube.client.Client that is used."""

    def get(self, path: str) -> bytes: ...
    def patch(self, path: str, body: bytes, *, content_type: str) -> bytes: ...
    def delete(self, path: str, body: bytes = b"") -> bytes: ...


class PodLookup(Protocol):
    """Pods as last seen in the watch. See agent.kubelet.pods.index for those that have a mirror there."""

    def pod_by_uid(self, uid: str) -> Pod | None: ...
    def mirror_of(self, pod: Pod) -> Pod | None: ...
    def resolved_uid(self, uid: str) -> str: ...
    def status_uid(self, uid: str) -> str | None: ...


@dataclass(frozen=True, slots=True)
class VersionedStatus:
    """`finished` is set by terminate_pod and never taken back. `since`: of the first change that is not yet written
    (monotonic); None where all are."""

    status: PodStatus
    version: int
    name: str
    namespace: str
    finished: bool
    since: float | None = None


class StatusManager:
    """See the guarantees above. `could_run` says whether containers of a pod may still run; it must not block."""

    name = "status manager"

    def __init__(
        self,
        client: PodClient,
        pods: PodLookup,
        could_run: Callable[[str], bool],
        semantics: Semantics,
        *,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._pods = pods
        self._could_run = could_run
        self._semantics = semantics
        self._wall = wall
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._statuses: dict[str, VersionedStatus] = {}
        self._api_versions: dict[str, int] = {}  # used by the thread that syncs only
        self._unanswered: dict[str, int] = {}  # whose last request got no answer, in that order; by that thread too
        self._next_tick = monotonic() + SYNC_PERIOD_S
        self._ended: Counter[termination.Termination] = Counter()
        self._took = Histogram(SYNC_BOUNDS_S)
        self._loop = Loop(
            "status-manager",
            self.turn,
            stuck_after_s=STUCK_AFTER_S,
            first_pause_s=SYNC_PERIOD_S,
            at_end=self._write_the_rest,
            monotonic=monotonic,
        )
        # A Service by its loop.
        self.start, self.stop, self.healthy = self._loop.start, self._loop.stop, self._loop.healthy

    def turn(self) -> float:
        """One batch, of everything where the period is over; returns the seconds until it will be."""
        monotonic = self._monotonic()
        due = monotonic >= self._next_tick
        if due:
            self._next_tick = monotonic + SYNC_PERIOD_S
        self.sync_batch(everything=due)
        return self._next_tick - self._monotonic()

    def _write_the_rest(self) -> None:
        """As far as that takes less than a second: no longer does stop() wait."""
        self.sync_batch(everything=False)

    def ended(self) -> dict[termination.Termination, int]:
        """kubelet_terminated_containers_total."""
        with self._lock:
            return dict(self._ended)

    def took(self) -> Histogram:
        """kubelet_pod_status_sync_duration_seconds: from the first change that was not yet written to its write."""
        with self._lock:
            return copy.deepcopy(self._took)

    # --- what others say ---

    def pod_status(self, uid: str) -> PodStatus | None:
        """The newest status of the pod, whether written or not."""
        kept = self.versioned_status(uid)
        return None if kept is None else kept.status

    def versioned_status(self, uid: str) -> VersionedStatus | None:
        """As pod_status, with what is known beside it."""
        uid = self._pods.resolved_uid(uid)
        with self._lock:
            return self._statuses.get(uid)

    def set_pod_status(self, pod: Pod, status: PodStatus) -> bool:
        """Keeps a freshly generated status. True if it makes a new version. Forced while the pod is being deleted."""
        status = replace(status, observed_generation=pod.generation)
        with self._lock:
            return self._update(pod, status, force=pod.deletion_timestamp is not None, finished=False)

    def set_container_readiness(self, uid: str, container_id: str, ready: bool) -> None:
        """The fast path of a readiness result: changes the container and the conditions made of it, nothing else."""

        def with_readiness(pod: Pod, old: PodStatus, container: ContainerStatus) -> PodStatus | None:
            if container.ready == ready:
                return None
            status = _with_container(old, replace(container, ready=ready))
            counted: conditions.Statuses | None = status.container_statuses
            if self._semantics.probes_sidecars:
                counted = (*(status.init_container_statuses or ()), *(counted or ()))
            else:
                pod = replace(pod, init_containers=())
            ends = self._semantics.phase_ends_readiness
            for condition in (
                conditions.ready_condition(pod, old, status.conditions, counted, status.phase, failed_is_unready=ends),
                conditions.containers_ready_condition(pod, old, counted, status.phase, failed_is_unready=ends),
            ):
                status = replace(status, conditions=conditions.replace_or_append(status.conditions, condition))
            return status

        self._set_container(uid, container_id, with_readiness)

    def set_container_startup(self, uid: str, container_id: str, started: bool) -> None:
        """The fast path of a startup result. Conditions are not made anew, as upstream."""

        def with_startup(_pod: Pod, old: PodStatus, container: ContainerStatus) -> PodStatus | None:
            return None if container.started is started else _with_container(old, replace(container, started=started))

        self._set_container(uid, container_id, with_startup)

    def terminate_pod(self, pod: Pod) -> None:
        """Nothing of the pod runs or will run: all containers end, the phase becomes terminal, deletion may follow."""
        with self._lock:
            kept = self._statuses.get(pod.uid)
            status = termination.terminated_status(pod, pod.status if kept is None else kept.status, self._semantics)
            self._update(pod, status, force=True, finished=True)

    def remove_orphaned(self, uids: frozenset[str]) -> None:
        """Forgets every pod that is not in `uids`."""
        with self._lock:
            for uid in self._statuses.keys() - uids:
                del self._statuses[uid]

    def _set_container(
        self, uid: str, container_id: str, change: Callable[[Pod, PodStatus, ContainerStatus], PodStatus | None]
    ) -> None:
        """`change` gets the pod, its kept status and the container's in it, under the lock; None: nothing changes."""
        pod = self._pods.pod_by_uid(uid)
        if pod is None:
            return
        with self._lock:
            kept = self._statuses.get(uid)
            found = None if kept is None else _find(kept.status, container_id)
            status = None if kept is None or found is None else change(pod, kept.status, found)
            if status is not None:
                self._update(pod, status, force=False, finished=False)

    def _update(self, pod: Pod, status: PodStatus, *, force: bool, finished: bool) -> bool:
        kept = self._statuses.get(pod.uid)
        old = self._first_status(pod) if kept is None else kept.status
        if kept is not None and kept.finished and not pod.static:
            finished = True
        reason = merge.illegal_transition(old, status, pod, self._semantics)
        if reason:
            log.error("status update dropped", extra={"pod": _key(pod), "reason": reason})
            return False
        status = merge.settled(pod, old, status, self._wall(), self._semantics)
        self._ended.update(termination.terminations(old, status))
        if kept is not None and not force and merge.equal_for_kubelet(kept.status, status, self._semantics):
            return False
        self._statuses[pod.uid] = VersionedStatus(
            status=status,
            version=1 if kept is None else kept.version + 1,
            name=pod.name,
            namespace=pod.namespace,
            finished=finished,
            since=self._monotonic() if kept is None or kept.since is None else kept.since,
        )
        self._loop.wake()
        return True

    def _first_status(self, pod: Pod) -> PodStatus:
        """What the API server has, where we have said nothing yet."""
        mirror = self._pods.mirror_of(pod)
        return pod.status if mirror is None else mirror.status

    # --- towards the API server ---

    def sync_batch(self, *, everything: bool) -> int:
        """Writes what is not yet written; returns the number of pods tried.

        With `everything` also what differs in the API or waits for deletion: `turn` asks for it every ten seconds, a
        wake-up and the end do not. In the manager's own thread only.
        """
        with self._lock:
            kept = dict(self._statuses)
        if everything:
            for known in (self._api_versions, self._unanswered):
                for uid in known.keys() - kept.keys():
                    if self._pods.resolved_uid(uid) == uid:
                        del known[uid]
        due = []
        for uid, status in kept.items():
            status_uid = self._pods.status_uid(uid)
            if status_uid is None:
                continue
            if self._api_versions.get(status_uid, 0) < status.version or (everything and self._may_go(uid, status)):
                due.append(uid)
            elif everything and self._differs(uid, status):
                del self._api_versions[status_uid]
                due.append(uid)
        due.sort(key=lambda uid: self._unanswered.get(uid, 0))
        for tried, uid in enumerate(due, 1):
            self._loop.progressed()
            try:
                self._sync_pod(uid, kept[uid])
                self._unanswered.pop(uid, None)
            except Unreachable as e:
                self._unanswered[uid] = max(self._unanswered.values(), default=0) + 1
                log.warning("statuses not written", extra={"pods": len(due) - tried + 1, **_error(e)})
                return tried
            except Exception:
                # A bug of ours: it shall cost this pod its status, and no other.
                log.exception("pod status not written", extra={"pod": f"{kept[uid].namespace}/{kept[uid].name}"})
        return len(due)

    def _may_go(self, uid: str, kept: VersionedStatus) -> bool:
        pod = self._pods.pod_by_uid(uid)
        return pod is not None and not pod.static and merge.can_be_deleted(pod, self._semantics, finished=kept.finished)

    def _differs(self, uid: str, kept: VersionedStatus) -> bool:
        """Has the API server another status than we do?"""
        pod = self._pods.pod_by_uid(uid)
        if pod is not None and pod.static:
            pod = self._pods.mirror_of(pod)
        if pod is None:
            return False
        return not merge.equal_for_kubelet(merge.normalized(pod, pod.status), kept.status, self._semantics)

    def _sync_pod(self, uid: str, kept: VersionedStatus) -> None:
        """Raises Unreachable; what concerns this pod alone is logged."""
        facts = {"pod": f"{kept.namespace}/{kept.name}", "uid": uid}
        try:
            pod = self._write(uid, kept)
            if pod is not None and merge.can_be_deleted(pod, self._semantics, finished=kept.finished):
                self._client.delete(paths.pod(pod.namespace, pod.name), delete_options(pod.uid))
                log.info("pod removed from the API server", extra=facts)
                self._forget(uid)
        except NotFound:
            # Gone: remove_orphaned will forget it.
            log.debug("pod is gone from the API server", extra=facts)
        except Unreachable:
            raise
        except (KubeError, CredentialsInvalid) as e:
            log.warning("pod status not written", extra={**facts, **_error(e)})
        except UNREADABLE as e:
            log.warning("pod could not be decoded", extra={**facts, **_error(e)})

    def _write(self, uid: str, kept: VersionedStatus) -> Pod | None:
        """The pod as it stands after the write; None when it is another one by now."""
        pod = parse_pod(self._client.get(paths.pod(kept.namespace, kept.name)))
        if pod.uid and self._pods.resolved_uid(pod.uid) != uid:
            log.info("pod was created anew", extra={"pod": _key(pod), "uid": uid, "new_uid": pod.uid})
            self._forget(uid)
            return None
        merged = merge.merged(
            pod,
            pod.status,
            kept.status,
            could_run=self._could_run(uid),
            wall=self._wall(),
            semantics=self._semantics,
        )
        body = patch.status_patch(
            pod.uid or uid,
            write_status(pod.status),
            write_status(merged),
            sends_empty=self._semantics.sends_empty_patches,
        )
        if body is not None:
            reply = self._client.patch(
                paths.pod_status(pod.namespace, pod.name), body, content_type=STRATEGIC_MERGE_PATCH
            )
            pod = parse_pod(reply)
        self._api_versions[pod.uid or uid] = kept.version
        with self._lock:
            if kept.since is not None:
                self._took.observe(round(self._monotonic() - kept.since, 3))
            if self._statuses.get(uid) is kept:
                self._statuses[uid] = replace(kept, since=None)
        return pod

    def _forget(self, uid: str) -> None:
        with self._lock:
            self._statuses.pop(uid, None)


def _key(pod: Pod) -> str:
    return f"{pod.namespace}/{pod.name}"


def _error(error: Exception) -> dict[str, str]:
    return {"cause": type(error).__name__, "error": str(error)}


def _find(status: PodStatus, container_id: str) -> ContainerStatus | None:
    """By id, app containers first."""
    everything = (*(status.container_statuses or ()), *(status.init_container_statuses or ()))
    return next((s for s in everything if s.container_id == container_id), None)


def _with_container(status: PodStatus, changed: ContainerStatus) -> PodStatus:
    def put(statuses: Sequence[ContainerStatus] | None) -> tuple[ContainerStatus, ...] | None:
        if statuses is None:
            return None
        return tuple(changed if s.container_id == changed.container_id else s for s in statuses)

    return replace(
        status,
        container_statuses=put(status.container_statuses),
        init_container_statuses=put(status.init_container_statuses),
    )
