"""How pods start, as the API server reports it: pods that are bound and do not run yet, and rejected pods.

One watch of the cluster leaves out pods that run or have succeeded: of 150,000 pods it lists a few hundred and those
that have failed (the controller manager keeps 12,500 of them at most). A pod that starts to run leaves it. Only what
`policy.pod_starts` needs is kept of a pod, for minutes; the uid of a rejected pod is kept until it is gone.

A pod whose own volumes may keep it from starting is no evidence against its node. A kubelet mounts all volumes before
it makes the sandbox, and does not report which one it waits for. So a pod without a sandbox counts only if the kubelet
makes all of its volumes from what each namespace has (core/v1 VolumeSource). Kinds of later releases do not count.
"""

import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from component.text import one_line
from extender.policy.pod_starts import Attempt, StartRule, Starts
from kube import contract
from kube.objects import BareMeta, Condition, OwnerReference
from kube.times import parse_time

STARTS = "starts"  # the name of its cache
SELECTOR = "spec.nodeName!=,status.phase!=Running,status.phase!=Succeeded"
LOOKS_APART_S = 1.0
FAILED, PENDING = "Failed", "Pending"
NAME_LIMIT = 128
# Reasons with which a kubelet rejects a pod because its node is faulty. Other reasons are about the pod, a full node,
# or a node that shuts down.
REJECTED = frozenset({"UnexpectedAdmissionError", "InvalidNodeInfo"})
BROKEN = frozenset({"CreateContainerError"})  # of a waiting container
# ConfigMaps that a controller creates in each namespace, with their only key.
PUBLISHED = {"kube-root-ca.crt": "ca.crt", "openshift-service-ca.crt": "service-ca.crt"}
MEDIA = frozenset({"", "Memory"})  # huge pages of a size may be missing
# Controllers whose pods cannot go elsewhere: each node has its own.
BOUND_TO_NODES = frozenset({"DaemonSet", "Node"})


class _Waiting(msgspec.Struct, frozen=True, gc=False):
    reason: str = ""


class _State(msgspec.Struct, frozen=True, gc=False):
    waiting: _Waiting | None = None


class _Container(msgspec.Struct, frozen=True, gc=False):
    state: _State = _State()


class _Status(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    phase: str = ""
    reason: str = ""
    conditions: list[Condition] | None = None
    container_statuses: list[_Container] | None = None
    init_container_statuses: list[_Container] | None = None
    start_time: str | None = None
    pod_ip: str = msgspec.field(default="", name="podIP")


class _EmptyDir(msgspec.Struct, frozen=True, gc=False):
    medium: str = ""


class _Key(msgspec.Struct, frozen=True, gc=False):
    key: str = ""


class _Named(msgspec.Struct, frozen=True, gc=False):
    """A ConfigMap or a Secret."""

    name: str = ""
    items: list[_Key] | None = None
    optional: bool | None = None


class _Source(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A source of a projected volume."""

    service_account_token: dict[str, object] | None = None
    downward_api: dict[str, object] | None = msgspec.field(default=None, name="downwardAPI")
    config_map: _Named | None = None
    secret: _Named | None = None


class _Projected(msgspec.Struct, frozen=True, gc=False):
    sources: list[_Source] | None = None


class _Volume(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The kinds of volumes that a kubelet makes itself. A volume without any of them is of another kind."""

    empty_dir: _EmptyDir | None = None
    downward_api: dict[str, object] | None = msgspec.field(default=None, name="downwardAPI")
    config_map: _Named | None = None
    secret: _Named | None = None
    projected: _Projected | None = None


class _Spec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    node_name: str = ""
    volumes: list[_Volume] | None = None


class StartingPod(msgspec.Struct, frozen=True, gc=False):
    metadata: BareMeta
    spec: _Spec = _Spec()
    status: _Status = _Status()


class PodStarts:
    """A store of kube.reflector that the index also uses. Thread-safe.

    asked(): whether kube-scheduler is known to have asked about the pod, and the answer left the pod its node; memory
    only. on_change(): called from any thread, outside the lock, when it is time to check; must not block. reported():
    when the server last reported, monotonic seconds. ahead_s(): of the current list, as Reflector.list_ahead_s: the
    server's times are compared with its own clock. wall: this machine's clock, used if the server does not report its
    own.
    """

    def __init__(
        self,
        rule: StartRule,
        *,
        asked: Callable[[Attempt], bool],
        on_change: Callable[[], None],
        reported: Callable[[], float],
        ahead_s: Callable[[], float | None] = lambda: None,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._on_change = on_change
        self._reported = reported
        self._ahead_s = ahead_s
        self._monotonic = monotonic
        self._wall = wall
        self._lock = threading.Lock()
        self._starts = Starts(rule, asked)
        self._found: Mapping[str, str] = {}
        self._looked_at = -math.inf
        self._moved = False  # something was reported since the last check

    # The store.

    def replace(self, pods: Sequence[StartingPod]) -> None:
        """Takes a whole list. Whether pods run that have left it in the meantime is unknown."""
        listed = {pod.metadata.uid for pod in pods}
        with self._lock:
            monotonic, ahead_s = self._monotonic(), self._ahead_s()
            wall = self._wall() if ahead_s is None else monotonic + ahead_s
            for uid in self._starts.known - listed:
                self._starts.ended(uid, deleted=True, at=monotonic)
            for pod in pods:
                self._tell(pod, monotonic - _age_s(pod, wall), monotonic)
            self._moved = True
        self._on_change()

    def upsert(self, pod: StartingPod) -> None:
        with self._lock:
            monotonic = self._monotonic()
            self._tell(pod, monotonic, monotonic)
            waked, self._moved = self._moved, True
        if not waked:
            self._on_change()

    def remove(self, pod: StartingPod) -> None:
        """Takes a pod that runs or is gone. A gone pod was marked for deletion before, unless it was deleted by
        force."""
        with self._lock:
            deleted = pod.metadata.deletion_timestamp is not None
            self._starts.ended(pod.metadata.uid, deleted=deleted, at=self._monotonic())
            waked, self._moved = self._moved, True
        if not waked:
            self._on_change()

    # For the index.

    def look(self) -> tuple[Mapping[str, str], float]:
        """Returns the nodes that are black holes, with the evidence; and the monotonic time of the next check."""
        with self._lock:
            monotonic = self._monotonic()
            if monotonic >= self._due_at():
                self._looked_at, self._moved = monotonic, False
                self._found = self._starts.look(monotonic, self._reported())
            return self._found, self._due_at()

    # For the status API.

    def sizes(self) -> Mapping[str, int]:
        with self._lock:
            return self._starts.sizes()

    # Under the lock.

    def _due_at(self) -> float:
        at_once = self._moved or self._starts.claims
        due_at = -math.inf if at_once else min(self._starts.due_at(), self._starts.over_at())
        return max(due_at, self._looked_at + LOOKS_APART_S)

    def _tell(self, pod: StartingPod, since: float, monotonic: float) -> None:
        owner = _controller(pod.metadata.owner_references)
        if owner is None:
            return
        attempt = _attempt(pod, owner)
        if pod.status.phase == FAILED:
            if pod.status.reason in REJECTED:
                self._starts.rejected(attempt, since)
            else:
                self._starts.ended(attempt.uid, deleted=True, at=monotonic)
        elif pod.metadata.deletion_timestamp is not None or pod.status.phase != PENDING:
            self._starts.ended(attempt.uid, deleted=True, at=monotonic)
        else:
            self._starts.bound(attempt, since)


def _controller(owners: Iterable[OwnerReference] | None) -> OwnerReference | None:
    """Returns the controller of a pod that could be placed elsewhere."""
    owner = next((one for one in owners or () if one.controller is True), None)
    return None if owner is None or not owner.uid or owner.kind in BOUND_TO_NODES else owner


def _attempt(pod: StartingPod, owner: OwnerReference) -> Attempt:
    meta, spec, status = pod.metadata, pod.spec, pod.status
    sandbox = _condition(status, contract.CONDITION_POD_READY_TO_START_CONTAINERS)
    # Kubelets before 1.29 do not report the sandbox; the address comes with it, except for pods in the host's network.
    able = status.pod_ip != "" if sandbox is None else sandbox.status == contract.STATUS_TRUE
    waiting = [
        one.state.waiting.reason
        for one in (*(status.init_container_statuses or ()), *(status.container_statuses or ()))
        if one.state.waiting is not None
    ]
    volumes = spec.volumes or ()
    broken = status.reason
    if status.phase != FAILED:
        broken = next((one for one in waiting if one in BROKEN), "") if all(map(_of_kubelet, volumes)) else ""
    return Attempt(
        uid=meta.uid,
        namespace=meta.namespace,
        pod=meta.name,
        node=spec.node_name,
        owner=owner.uid,
        name=one_line(f"{meta.namespace}/{owner.name}", NAME_LIMIT),
        able=able,
        broken=broken,
        waits=not all(map(_comes_by_itself, volumes)),
    )


def _of_kubelet(volume: _Volume) -> bool:
    """Returns whether the kubelet makes the volume itself: it is there once there is a sandbox."""
    kinds = (volume.empty_dir, volume.downward_api, volume.config_map, volume.secret, volume.projected)
    return any(kind is not None for kind in kinds)


def _comes_by_itself(volume: _Volume) -> bool:
    """Returns whether nothing of the pod's namespace can keep the kubelet from mounting the volume."""
    if volume.empty_dir is not None:
        return volume.empty_dir.medium in MEDIA
    if volume.projected is not None:
        return all(map(_source_comes_by_itself, volume.projected.sources or ()))
    return volume.downward_api is not None or _optional(volume.config_map) or _optional(volume.secret)


def _source_comes_by_itself(source: _Source) -> bool:
    if source.service_account_token is not None or source.downward_api is not None:
        return True
    return _published(source.config_map) or _optional(source.config_map) or _optional(source.secret)


def _published(of: _Named | None) -> bool:
    return of is not None and of.name in PUBLISHED and all(one.key == PUBLISHED[of.name] for one in of.items or ())


def _optional(of: _Named | None) -> bool:
    return of is not None and of.optional is True


def _age_s(pod: StartingPod, wall: float) -> float:
    """Returns for how long the pod has been bound, by its object; 0 if unknown. The server's time comes before the
    kubelet's, whose clock may be wrong, too."""
    scheduled = _condition(pod.status, contract.CONDITION_POD_SCHEDULED)
    text = (None if scheduled is None else scheduled.last_transition_time) or pod.status.start_time
    try:
        since = parse_time(text)
    except (msgspec.ValidationError, OverflowError):
        return 0.0
    return 0.0 if since is None else max(0.0, wall - since)


def _condition(status: _Status, kind: str) -> Condition | None:
    return next((one for one in status.conditions or () if one.type == kind), None)
