"""Messages of the CRI to what the agent's rooms say to each other. Pure.

Mirrors labels.go, helpers.go, toKubeContainerStatus, getPods and determinePodSandboxIPs of pkg/kubelet/kuberuntime,
v1.36.3. A message that lacks what each has raises Garbled.
"""

import ipaddress
import re
from collections.abc import Iterable, Mapping
from typing import TypeVar

import msgspec

from agent.cri import api_pb2 as cri
from agent.cri.base import RuntimeCondition, RuntimeStatus, Version
from agent.wire.containers import ContainerEvent, ContainerPhase, EventKind, RuntimeContainer, RuntimePod, Sandbox
from agent.wire.model import MOST_RESTARTS, NodeRuntimeHandler

LABEL_POD_UID = "io.kubernetes.pod.uid"
LABEL_POD_NAME = "io.kubernetes.pod.name"
LABEL_POD_NAMESPACE = "io.kubernetes.pod.namespace"
LABEL_CONTAINER_NAME = "io.kubernetes.container.name"
# Whose a sandbox or container is: the name of the agent's Node. Two slashes, since no label of a pod's can be called
# so: else one that a kubelet runs could be taken for ours.
LABEL_OWNER = "readygate.dev/agent/node"
ANNOTATION_RESTART_COUNT = "io.kubernetes.container.restartCount"

LIGHT_BYTES = 1024
_NS_PER_S = 1_000_000_000
L = TypeVar("L", cri.PodSandbox, cri.Container)
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
_PHASES: dict[int, ContainerPhase] = {
    cri.CONTAINER_CREATED: ContainerPhase.CREATED,
    cri.CONTAINER_RUNNING: ContainerPhase.RUNNING,
    cri.CONTAINER_EXITED: ContainerPhase.EXITED,
    cri.CONTAINER_UNKNOWN: ContainerPhase.UNKNOWN,
}
_KINDS: dict[int, EventKind] = {
    cri.CONTAINER_CREATED_EVENT: EventKind.CREATED,
    cri.CONTAINER_STARTED_EVENT: EventKind.STARTED,
    cri.CONTAINER_STOPPED_EVENT: EventKind.STOPPED,
    cri.CONTAINER_DELETED_EVENT: EventKind.DELETED,
}


class Garbled(Exception):  # noqa: N818 - what an answer is
    """The answer is none of the CRI's. str() says what is missing."""


def version_of(answer: cri.VersionResponse) -> Version:
    if not (answer.runtime_name and answer.runtime_version and answer.runtime_api_version):
        raise Garbled("it has no name or no version")
    return Version(answer.runtime_name, answer.runtime_version, answer.runtime_api_version)


def status_of(answer: cri.StatusResponse) -> RuntimeStatus:
    if not answer.HasField("status"):
        raise Garbled("there is no status in it")
    conditions = (RuntimeCondition(c.type, c.status, c.reason, c.message) for c in answer.status.conditions)
    handlers = (
        NodeRuntimeHandler(h.name, h.features.recursive_read_only_mounts, h.features.user_namespaces)
        for h in answer.runtime_handlers
    )
    policy = answer.features.supplemental_groups_policy if answer.HasField("features") else None
    return RuntimeStatus(tuple(conditions), dict(answer.info), tuple(handlers), policy)


def listed_pods(
    sandboxes: Iterable[cri.PodSandbox], containers: Iterable[cri.Container], runtime: str
) -> list[RuntimePod]:
    """By uid, in the order of the newest sandbox first. `runtime`: its name, for the ids. Left out: what is no pod's,
    and what has no id."""
    found: dict[str, RuntimePod] = {}
    sandboxes_of: dict[str, list[Sandbox]] = {}
    containers_of: dict[str, list[RuntimeContainer]] = {}
    for sandbox in newest_first(sandboxes):
        uid = sandbox.metadata.uid
        if uid and sandbox.id:
            found.setdefault(uid, RuntimePod(uid, name=sandbox.metadata.name, namespace=sandbox.metadata.namespace))
            sandboxes_of.setdefault(uid, []).append(_listed_sandbox(sandbox, runtime))
    for container in sorted(containers, key=lambda c: (-c.created_at, c.id)):
        uid = container.labels.get(LABEL_POD_UID, "")
        if uid and container.id and container.HasField("metadata") and container.HasField("image"):
            labels = container.labels
            name, namespace = labels.get(LABEL_POD_NAME, ""), labels.get(LABEL_POD_NAMESPACE, "")
            found.setdefault(uid, RuntimePod(uid, name=name, namespace=namespace))
            containers_of.setdefault(uid, []).append(_listed_container(container, runtime))
    return [
        RuntimePod(
            uid,
            tuple(sandboxes_of.get(uid, ())),
            tuple(containers_of.get(uid, ())),
            name=pod.name,
            namespace=pod.namespace,
        )
        for uid, pod in found.items()
    ]


def lighter(listed: L) -> L:
    """Without the annotations that are not looked at: a pod's may be as long as all else of it a hundred times."""
    if len(listed.annotations) <= 1 and listed.ByteSize() <= LIGHT_BYTES:
        return listed
    count = listed.annotations.get(ANNOTATION_RESTART_COUNT)
    listed.annotations.clear()
    if count is not None:
        listed.annotations[ANNOTATION_RESTART_COUNT] = count
    return type(listed).FromString(listed.SerializeToString())  # a message keeps what it has ever held


def newest_first(sandboxes: Iterable[cri.PodSandbox]) -> list[cri.PodSandbox]:
    """By attempt before creation time: the clock may be set back between two."""
    return sorted(sandboxes, key=lambda s: (-s.metadata.attempt, -s.created_at, s.id))


def sandbox_of(answer: cri.PodSandboxStatusResponse, runtime: str) -> Sandbox:
    """Its address is shown while it is ready."""
    status = answer.status
    if not status.id:
        raise Garbled("there is no sandbox in it")
    ready = status.state == cri.SANDBOX_READY
    ip = _address(status.network) if ready else ""
    return Sandbox(
        ready,
        ip if status.HasField("network") else None,
        status.linux.namespaces.options.network == cri.NODE,
        f"{runtime}://{status.id}",
        status.metadata.attempt,
        status.created_at / _NS_PER_S,
    )


class _Namespace(msgspec.Struct):
    type: str = ""
    path: str = ""


class _Linux(msgspec.Struct):
    namespaces: list[_Namespace] = []


class _RuntimeSpec(msgspec.Struct):
    linux: _Linux = msgspec.field(default_factory=_Linux)


class _SandboxInfo(msgspec.Struct, rename="camel"):
    """Of a verbose answer: containerd and CRI-O both have the OCI specification of the sandbox in it."""

    runtime_spec: _RuntimeSpec = msgspec.field(default_factory=_RuntimeSpec)


def network_namespace_of(answer: cri.PodSandboxStatusResponse) -> str:
    """Its file, "" for a sandbox with the host's network, and where the runtime does not say."""
    try:
        info = msgspec.json.decode(answer.info.get("info", "{}"), type=_SandboxInfo)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    return next((one.path for one in info.runtime_spec.linux.namespaces if one.type == "network"), "")


def container_of(status: cri.ContainerStatus, runtime: str, sandbox_id: str = "") -> RuntimeContainer:
    """`sandbox_id`: with the runtime's name; a status does not tell it. The time of a start that failed is 0, as for
    the kubelet."""
    if not status.id:
        raise Garbled("there is no container in it")
    phase = _phase(status.state)
    ended = phase is ContainerPhase.EXITED
    return RuntimeContainer(
        id=f"{runtime}://{status.id}",
        name=status.labels.get(LABEL_CONTAINER_NAME, ""),
        phase=phase,
        created_at=status.created_at / _NS_PER_S,
        started_at=None if phase is ContainerPhase.CREATED else status.started_at / _NS_PER_S,
        finished_at=status.finished_at / _NS_PER_S if ended else None,
        exit_code=status.exit_code if ended else 0,
        reason=status.reason if ended else "",
        message=status.message if ended else "",
        restart_count=_restart_count(status.annotations),
        image=status.image.image,
        image_id=status.image_ref,
        sandbox_id=sandbox_id,
    )


def event_of(answer: cri.ContainerEventResponse, runtime: str) -> ContainerEvent | None:
    """None: of no pod, or of a kind that is newer than we are."""
    kind, uid = _KINDS.get(answer.container_event_type), answer.pod_sandbox_status.metadata.uid
    if kind is None or not uid or not answer.container_id:
        return None
    return ContainerEvent(kind, uid, f"{runtime}://{answer.container_id}")


def bare_id(container_id: str) -> str:
    """Without the runtime's name."""
    return container_id.rpartition("://")[2]


def _listed_sandbox(sandbox: cri.PodSandbox, runtime: str) -> Sandbox:
    return Sandbox(
        sandbox.state == cri.SANDBOX_READY,
        None,
        id=f"{runtime}://{sandbox.id}",
        attempt=sandbox.metadata.attempt,
        created_at=sandbox.created_at / _NS_PER_S,
    )


def _listed_container(container: cri.Container, runtime: str) -> RuntimeContainer:
    return RuntimeContainer(
        id=f"{runtime}://{container.id}",
        name=container.metadata.name,
        phase=_phase(container.state),
        created_at=container.created_at / _NS_PER_S,
        restart_count=_restart_count(container.annotations),
        image=container.image.image,
        image_id=container.image_ref,
        sandbox_id=f"{runtime}://{container.pod_sandbox_id}",
    )


def _phase(state: int) -> ContainerPhase:
    """One that is newer than we are is unknown."""
    return _PHASES.get(state, ContainerPhase.UNKNOWN)


def _restart_count(annotations: Mapping[str, str]) -> int:
    """0 where the annotation is missing or no number, or one that the API would not take with the next restart."""
    text = annotations.get(ANNOTATION_RESTART_COUNT, "")
    count = int(text) if _WHOLE.fullmatch(text) else 0
    return count if 0 <= count < MOST_RESTARTS else 0


def _address(network: cri.PodSandboxNetworkStatus) -> str:
    """The first of the pod's addresses; none at all if one of them is none."""
    addresses = [*([network.ip] if network.ip else []), *(more.ip for more in network.additional_ips)]
    try:
        for address in addresses:
            ipaddress.ip_address(address)
            if "%" in address:  # an interface of this node: the API takes no address with one
                return ""
    except ValueError:
        return ""
    return next(iter(addresses), "")
