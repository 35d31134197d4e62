"""What a container is started with: its environment and its command line. Pure.

Mirrors makeEnvironmentVariables and podFieldSelectorRuntimeValue of pkg/kubelet/kubelet_pods.go.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent.kubelet.runtime.base import StartError
from agent.probe.go_quoting import quoted
from agent.wire.model import Container, EnvVar, Pod
from component.text import expand

REASON_CONFIG = "CreateContainerConfigError"
REASON_CREATE = "CreateContainerError"

# Set for every container, whether the spec asks or not: a process has no network namespace of its own to listen in.
ENV_POD_IP = "READYGATE_POD_IP"

_SUBSCRIPT = re.compile(r"^metadata\.(labels|annotations)\['(.+)'\]$")


@dataclass(frozen=True, slots=True)
class Place:
    """Where the pod runs. `base_env`: what every container inherits, before anything of the spec."""

    pod_ip: str
    host_ip: str
    base_env: Mapping[str, str]


def environment(pod: Pod, container: Container, place: Place) -> dict[str, str]:
    """Variables in spec order, each expanded with those before it. Raises StartError for a source we cannot read."""
    env = dict(place.base_env)
    env["HOSTNAME"] = pod.name
    env[ENV_POD_IP] = place.pod_ip
    return {**env, **variables(pod, container, place)}


def variables(pod: Pod, container: Container, place: Place) -> dict[str, str]:
    """Those of the spec alone, which is all that a container of a runtime gets from us. Raises StartError."""
    named: dict[str, str] = {}
    for variable in container.env:
        if not variable.absent:
            named[variable.name] = _value(variable, pod, place, named)
    return named


def command_line(container: Container, env: Mapping[str, str], pause: Sequence[str]) -> list[str]:
    """command + args with $(VAR) expanded; `pause` for a container that has neither. `env`: what the container gets; of
    it only its own variables, and the pod's address, are put in, as the kubelet knows no others.

    Raises StartError for args without a command: the entrypoint of an image is not known.
    """
    if not container.command:
        if container.args:
            raise StartError(REASON_CREATE, "args without command: set command, the image's entrypoint is not known")
        return list(pause)
    own = {ENV_POD_IP, *(variable.name for variable in container.env if not variable.absent)}
    known = {name: value for name, value in env.items() if name in own}
    return [expand(part, known) for part in (*container.command, *container.args)]


def _value(variable: EnvVar, pod: Pod, place: Place, named: Mapping[str, str]) -> str:
    if variable.unsupported:
        raise StartError(
            REASON_CONFIG,
            f"env {variable.name}: {variable.unsupported} is not supported here; only values and fieldRef are",
        )
    if variable.field_path:
        return _field(variable, pod, place)
    return expand(variable.value, named)


def _field(variable: EnvVar, pod: Pod, place: Place) -> str:
    path = variable.field_path
    simple = {
        "metadata.name": pod.name,
        "metadata.namespace": pod.namespace,
        "metadata.uid": pod.uid,
        "metadata.labels": _listed(pod.labels),
        "metadata.annotations": _listed(pod.annotations),
        "spec.nodeName": pod.node_name,
        "spec.serviceAccountName": pod.service_account,
        "status.podIP": place.pod_ip,
        "status.podIPs": place.pod_ip,
        "status.hostIP": place.host_ip,
        "status.hostIPs": place.host_ip,
    }
    if path in simple:
        return simple[path]
    subscript = _SUBSCRIPT.match(path)
    if subscript is not None:
        source = pod.labels if subscript.group(1) == "labels" else pod.annotations
        return source.get(subscript.group(2), "")
    raise StartError(REASON_CONFIG, f"env {variable.name}: fieldPath {path} is not supported")


def _listed(pairs: Mapping[str, str]) -> str:
    """FormatMap of pkg/fieldpath: sorted lines key="value"."""
    return "\n".join(f"{key}={quoted(value)}" for key, value in sorted(pairs.items()))
