"""The section `node` of the configuration file: where mode node reads, what it looks at, what it writes. Pure."""

from collections.abc import Collection
from typing import Annotated
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from agent.podsapi.base import SOCKET as PODS_SOCKET
from agent.wire.setting_types import NonEmpty
from component.settings import Section, SettingsError
from component.text import one_line
from kube import contract
from kube.selector import SelectorError
from kube.selector import parse as parse_selector

Name = Annotated[
    str,
    Meta(
        pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?\Z",
        max_length=253,
        description="a DNS name: lower case letters, digits, - and . inside, at most 253",
    ),
]
KUBELET_CERTIFICATE = "/var/lib/kubelet/pki/kubelet-client-current.pem"


class HealthPodsSection(Section, frozen=True):
    """`daemon_set` None: pods of any owner, the selector alone decides. `checks`: the names of those that count for
    these pods, and for no others but where it is said there too; None: all that no section names."""

    namespace: Name = contract.NAMESPACE
    label_selector: NonEmpty = f"{contract.LABEL_NAME}={contract.NAME_AGENT}"
    daemon_set: Name | None = contract.NAME_AGENT
    checks: tuple[NonEmpty, ...] | None = None


class HeartbeatSection(Section, frozen=True):
    """The agent's own Lease. 3 s suits clusters of up to 300 nodes, 10 s larger ones."""

    period_seconds: Annotated[int, Meta(ge=1, le=60, description="whole seconds, 1 to 60")] = 3


class NodeSection(Section, frozen=True):
    """Mode `node`. Paths are files that somebody else renews in place; certificate and key may be one file.

    `cri_socket` None: container states are those that the API server tells. `pods_socket` None: the kubelet is
    not asked for its pods while the API server tells nothing.
    """

    name: Name
    server: NonEmpty
    certificate_authority: NonEmpty = "/etc/kubernetes/pki/ca.crt"
    certificate: NonEmpty = KUBELET_CERTIFICATE
    key: NonEmpty = KUBELET_CERTIFICATE
    health_pods: tuple[HealthPodsSection, ...] = (HealthPodsSection(),)
    publish: bool = True
    kubelet_healthz: NonEmpty | None = "http://127.0.0.1:10248/healthz"
    lease_limit_seconds: Annotated[int, Meta(ge=15, le=600, description="whole seconds, 15 to 600")] = 24
    heartbeat: HeartbeatSection | None = None
    cri_socket: NonEmpty | None = None
    exec_probes: bool = False
    pods_socket: NonEmpty | None = PODS_SOCKET
    disagreement_seconds: Annotated[int, Meta(ge=1, le=600, description="whole seconds, 1 to 600")] = 10


def check(node: NodeSection, checks: Collection[str], left_out: Collection[str]) -> None:
    """The rules that go across keys, and what no type says. Raises SettingsError. checks: the names of all that the
    file has, those of its profile too; left_out: of the profile's, those that it leaves out."""
    if not _is_url(node.server, "https"):
        raise SettingsError(f"node.server: is {node.server}, allowed: https://HOST:PORT of the API server")
    if node.kubelet_healthz is not None and not _is_url(node.kubelet_healthz, "http", "https"):
        allowed = "http://127.0.0.1:10248/healthz or another URL, or null"
        raise SettingsError(f"node.kubeletHealthz: is {node.kubelet_healthz}, allowed: {allowed}")
    if node.cri_socket is not None and not node.cri_socket.startswith("/"):
        allowed = "the path of the container runtime's socket, as /run/containerd/containerd.sock, or null"
        raise SettingsError(f"node.criSocket: is {node.cri_socket}, allowed: {allowed}")
    if node.pods_socket is not None and not node.pods_socket.startswith("/"):
        allowed = f"the path of the kubelet's socket, as {PODS_SOCKET}, or null"
        raise SettingsError(f"node.podsSocket: is {node.pods_socket}, allowed: {allowed}")
    if node.exec_probes and node.cri_socket is None:
        raise SettingsError("node.execProbes: is true without node.criSocket, allowed: false, or both")
    if not node.health_pods:
        raise SettingsError("node.healthPods: is empty, allowed: at least one {namespace, labelSelector, daemonSet}")
    for index, one in enumerate(node.health_pods):
        try:
            parse_selector(one.label_selector)
        except SelectorError as e:
            key = f"node.healthPods[{index}].labelSelector"
            raise SettingsError(f"{key}: {e}, allowed: a label selector, as app=health") from e
        if one.checks is not None:
            _check_names(f"node.healthPods[{index}].checks", one.checks, checks, left_out)


def without_health_pods(node: NodeSection) -> NodeSection:
    """What of it holds until the next start."""
    return msgspec.structs.replace(node, health_pods=())


def without_checks(pods: HealthPodsSection) -> HealthPodsSection:
    """Which pods they are, whatever counts for them."""
    return msgspec.structs.replace(pods, checks=None)


def _check_names(key: str, named: tuple[str, ...], checks: Collection[str], left_out: Collection[str]) -> None:
    allowed = f"allowed: {', '.join(checks) or 'none, as the file has no checks'}"
    if not named:
        raise SettingsError(f"{key}: is empty, {allowed}, or leave the key out")
    for index, name in enumerate(named):
        if name not in checks:
            why = "is left out by profile.leaveOut" if name in left_out else "is no check of this file"
            raise SettingsError(f"{key}[{index}]: {one_line(name, 64)} {why}, {allowed}")


def _is_url(text: str, *schemes: str) -> bool:
    try:
        url = urlsplit(text)
        return url.scheme in schemes and bool(url.hostname) and url.port != 0 and text.isprintable()
    except ValueError:  # half an IPv6 address, a port that is none
        return False
