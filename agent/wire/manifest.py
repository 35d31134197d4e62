"""The manifest of a static pod: bytes of a file to a pod, with name, uid and annotations as a kubelet gives them. Pure.

Mirrors tryDecodeSinglePod and applyDefaults of pkg/kubelet/config/common.go, v1.36.3.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from agent.wire.documents import DocumentError, document
from agent.wire.model import Pod, PodStatus, RestartPolicy
from agent.wire.pod import (
    ANNOTATION_CONFIG_HASH,
    ANNOTATION_CONFIG_MIRROR,
    ANNOTATION_CONFIG_SEEN,
    ANNOTATION_CONFIG_SOURCE,
    PodObject,
    pod_from_object,
)
from component.text import one_line
from kube.objects import UNREADABLE

MOST_BYTES = 2**20  # a kubelet reads 10 MiB, but the API server takes no object of that size as a mirror
FILE_SOURCE = "file"
TOLERATION = {"operator": "Exists", "effect": "NoExecute"}  # each static pod has it
_KIND = "couldn't parse as pod, allowed: one object with apiVersion: v1 and kind: Pod"
# As pkg/apis/core/validation has names.
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_SUBDOMAIN_LENGTH = 253
_LABEL_KEY = re.compile(rf"({_SUBDOMAIN.pattern}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_FNV_OFFSET, _FNV_PRIME = 0x6C62272E07BB014262B821756295C58D, 0x0000000001000000000000000000013B  # of 128 bits


class ManifestError(Exception):
    """The file is no static pod. The text is one line: what is wrong and, where it helps, what is allowed."""


@dataclass(frozen=True, slots=True)
class StaticPod:
    """`pod`: what the sync loop runs. `manifest`: the JSON object that its mirror is made of."""

    pod: Pod
    manifest: Mapping[str, Any]


class _Named(msgspec.Struct):
    name: str = ""


class _Source(msgspec.Struct, rename="camel"):
    config_map_ref: _Named | None = None
    config_map_key_ref: _Named | None = None
    secret_ref: _Named | None = None
    secret_key_ref: _Named | None = None


class _Env(msgspec.Struct, rename="camel"):
    value_from: _Source | None = None


class _Container(msgspec.Struct, rename="camel"):
    env: list[_Env] = []
    env_from: list[_Source] = []


class _Projected(msgspec.Struct):
    sources: list[dict[str, Any]] = []


class _Volume(msgspec.Struct, rename="camel"):
    config_map: Any = None
    secret: Any = None
    csi: Any = None
    glusterfs: Any = None
    persistent_volume_claim: Any = None
    ephemeral: Any = None
    azure_file: Any = None
    projected: _Projected = msgspec.field(default_factory=_Projected)


class _Spec(msgspec.Struct, rename="camel"):
    tolerations: list[dict[str, Any]] = []
    image_pull_secrets: list[_Named] = []
    service_account_name: str = ""
    service_account: str = ""
    resource_claims: list[_Named] = []
    init_containers: list[_Container] = []
    containers: list[_Container] = []
    volumes: list[_Volume] = []


class _Manifest(msgspec.Struct):
    """The parts that the pod of the model has not."""

    spec: _Spec = msgspec.field(default_factory=_Spec)


def static_pod(data: bytes, path: str, node_name: str, seen: str) -> StaticPod:
    """`path`: the file that holds `data`. `seen`: when it was read first, as RFC 3339. Raises ManifestError."""
    if len(data) > MOST_BYTES:
        raise ManifestError(f"is {len(data)} bytes long, allowed: at most {MOST_BYTES}")
    try:
        found = _without_nulls(document(data))
    except DocumentError as e:
        raise ManifestError(str(e)) from e
    if not isinstance(found, dict) or (found.get("apiVersion"), found.get("kind")) != ("v1", "Pod"):
        raise ManifestError(_KIND)
    given, spec = _decoded(found)
    if not given.name:
        raise ManifestError("invalid pod: name is needed for the pod")
    uid = given.uid or uid_of(found, path, node_name)
    own = {ANNOTATION_CONFIG_HASH: uid, ANNOTATION_CONFIG_SOURCE: FILE_SOURCE, ANNOTATION_CONFIG_SEEN: seen}
    meta = {
        "name": f"{given.name}-{node_name.lower()}",
        "namespace": given.namespace or "default",
        "uid": uid,
        "annotations": {**given.annotations, **own},
    }
    placed = {"nodeName": node_name, "tolerations": _tolerations(spec.tolerations)}
    manifest = {
        **found,
        "metadata": {**found["metadata"], **meta},
        "spec": {**found.get("spec", {}), **placed},
    }
    pod = _decoded(manifest)[0]
    grace_s = 1 if pod.termination_grace_period_s < 0 else pod.termination_grace_period_s  # as Convert_v1_PodSpec
    pod = replace(pod, status=PodStatus(), termination_grace_period_s=grace_s)
    _check(pod)
    if referred := next(_references(spec), ""):
        raise ManifestError(f"static pods may not reference {referred}")
    return StaticPod(pod, manifest)


def uid_of(manifest: Mapping[str, Any], path: str, node_name: str) -> str:
    """FNV-128a of the object, the node and the file, in hex. A kubelet hashes Go's dump of the object with all defaults
    in it; this is the object's JSON with sorted keys."""
    found = _FNV_OFFSET
    for byte in msgspec.json.encode(manifest, order="sorted") + f"host:{node_name}file:{path}".encode():
        found = (found ^ byte) * _FNV_PRIME % 2**128
    return f"{found:032x}"


def _without_nulls(value: Any) -> Any:  # noqa: ANN401 - what JSON has
    """A null is a field that is not given."""
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [_without_nulls(inner) for inner in value] if isinstance(value, list) else value


def _decoded(manifest: Mapping[str, Any]) -> tuple[Pod, _Spec]:
    """Raises ManifestError."""
    data = msgspec.json.encode({key: value for key, value in manifest.items() if key != "status"})
    try:
        pod = pod_from_object(msgspec.json.decode(data, type=PodObject))
        return pod, msgspec.json.decode(data, type=_Manifest).spec
    except (*UNREADABLE, ValueError, OverflowError) as e:
        raise ManifestError(one_line(f"couldn't parse as pod: {e}")) from e


def _tolerations(given: list[dict[str, Any]]) -> list[Mapping[str, Any]]:
    """With that of static pods, which takes the place of one for the same taints (AddOrUpdateTolerationInPod)."""
    same = {"key": "", "value": "", **TOLERATION}
    found: list[Mapping[str, Any]] = [
        TOLERATION if same == {name: one.get(name) or "" for name in same} else one for one in given
    ]
    return found if TOLERATION in found else [*found, TOLERATION]


def _check(pod: Pod) -> None:
    """What the API server would refuse, as far as the sync loop relies on it. Raises ManifestError."""
    if pod.mirror:
        raise ManifestError(f"invalid pod: has the annotation {ANNOTATION_CONFIG_MIRROR}, which only a mirror has")
    if len(pod.name) > _SUBDOMAIN_LENGTH or not _SUBDOMAIN.fullmatch(pod.name):
        raise ManifestError(f"invalid pod: metadata.name: {pod.name[:300]} is no DNS name of at most 253 characters")
    if not _LABEL.fullmatch(pod.namespace):
        raise ManifestError(f"invalid pod: metadata.namespace: {pod.namespace[:100]} is no DNS label")
    for key, value in pod.labels.items():
        if not (_LABEL_KEY.fullmatch(key) and _LABEL_VALUE.fullmatch(value)):
            raise ManifestError(f"invalid pod: metadata.labels: {key[:100]}: {value[:100]} is no label")
    if not pod.containers:
        raise ManifestError("invalid pod: spec.containers: missing, allowed: at least one container")
    if pod.ephemeral_containers:
        raise ManifestError("invalid pod: spec.ephemeralContainers: not for a new pod")
    if not isinstance(pod.restart_policy, RestartPolicy):
        raise ManifestError(f"invalid pod: spec.restartPolicy: {pod.restart_policy}, allowed: Always, OnFailure, Never")
    names: set[str] = set()
    for container in (*pod.init_containers, *pod.containers):
        if not _LABEL.fullmatch(container.name):
            raise ManifestError(f"invalid pod: the container name {container.name[:100]} is no DNS label")
        if container.name in names:
            raise ManifestError(f"invalid pod: the container name {container.name} is there twice")
        if not container.image.strip():
            raise ManifestError(f"invalid pod: the container {container.name} has no image")
        names.add(container.name)


def _references(spec: _Spec) -> Iterator[str]:
    """What the pod asks of the API server: a static pod runs while there is none (HasAPIObjectReference)."""
    if spec.service_account_name or spec.service_account:
        yield "serviceaccounts"
    containers = [*spec.init_containers, *spec.containers]
    sources = [source for one in containers for source in one.env_from]
    sources += [env.value_from for one in containers for env in one.env if env.value_from is not None]
    if spec.image_pull_secrets or any(source.secret_ref or source.secret_key_ref for source in sources):
        yield "secrets"
    if any(source.config_map_ref or source.config_map_key_ref for source in sources):
        yield "configmaps"
    if spec.resource_claims:
        yield "resourceclaims"
    for volume in spec.volumes:
        yield from (text for name, text in _VOLUMES.items() if getattr(volume, name) is not None)
        for source in volume.projected.sources:
            yield from (text for name, text in _PROJECTED.items() if name in source)


_VOLUMES = {
    "config_map": "configmaps (via configmap volumes)",
    "secret": "secrets (via secret volumes)",
    "csi": "csidrivers (via CSI volumes)",
    "glusterfs": "endpoints (via glusterFS volumes)",
    "persistent_volume_claim": "persistentvolumeclaims",
    "ephemeral": "persistentvolumeclaims (via ephemeral volumes)",
    "azure_file": "secrets (via azureFile volumes)",
}
_PROJECTED = {
    "configMap": "configmaps (via projected volumes)",
    "secret": "secrets (via projected volumes)",
    "serviceAccountToken": "serviceaccounts (via projected volumes)",
    "clusterTrustBundle": "clustertrustbundles",
    "podCertificate": "podcertificates",
}
