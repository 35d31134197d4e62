"""What the check of the pod network gets of the agent around it, in modes pod and node; its page and its metrics."""

import os
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from agent.checks.peer_answer import PATH, Board
from agent.checks.peer_list import Source
from agent.checks.surroundings import NoPodNetwork, OpenSocket, Surroundings
from agent.cri.base import Reader
from agent.modes.sandbox_sockets import SandboxSockets
from agent.opinion.settings import NodeSection
from agent.report.metrics import Family
from agent.report.server import JSON, Answers, Page
from agent.settings import Settings
from agent.wire.model import Pod
from component.command import product_version
from kube import contract
from kube.errors import CredentialsInvalid

if TYPE_CHECKING:
    from kube.client import Client

RESOLV_CONF = Path("/etc/resolv.conf")
DEADLINE_S = 5.0
ANSWER_LIMIT_BYTES = 8 * 2**20
CLOSE_ON_EXEC = socket.SOCK_CLOEXEC


class Around:
    """A Service without a thread: a reload finds it among the services of the mode."""

    name = "surroundings"

    def __init__(self, surroundings: Surroundings) -> None:
        self.surroundings = surroundings

    def start(self) -> None:
        """It has no thread."""

    def stop(self) -> None:
        """It holds nothing."""

    def healthy(self, monotonic: float) -> bool:  # noqa: ARG002 - the Service protocol
        return True


def in_a_pod(settings: Settings, environ: Mapping[str, str] = os.environ) -> Surroundings:
    """Of an agent that is itself in the health pod. The chart sets NODE_NAME, POD_NAMESPACE, POD_IP and HOST_IP."""
    namespace = environ.get("POD_NAMESPACE") or contract.NAMESPACE
    kubernetes = settings.kubernetes

    def connected(service: str) -> Source:
        from agent.modes.peer_source import PeerSource  # late: the client is a third of the agent's memory
        from kube.client import Client
        from kube.connect import connect

        connection = connect(kubernetes.kubeconfig, server=kubernetes.server)
        name = f"readygate-agent/{product_version()}"
        client = Client(connection, user_agent=name, deadline_s=DEADLINE_S, answer_limit_bytes=ANSWER_LIMIT_BYTES)
        return PeerSource(client, namespace, service)

    return Surroundings(
        node=environ.get("NODE_NAME", "") or socket.gethostname(),
        namespace=namespace,
        board=Board(time.monotonic),
        connect=connected,
        open_socket=own_sockets(environ),
        resolv_conf=text_of(RESOLV_CONF),
        service=service_of(environ),
    )


def beside_pods(
    node: NodeSection, health_pod: Callable[[], Pod | None], client: "Callable[[Pod], tuple[Client, Client]]"
) -> Surroundings:
    """Of an agent on the host: the network is that of the node's first health pod, and so is the identity by which the
    list of peers is read. client: what asks for tokens of that pod, and what uses them."""

    def connected(service: str) -> Source:
        from agent.modes.peer_source import PeerSource

        pod = health_pod()
        if pod is None:
            raise CredentialsInvalid("this node has no health pod whose identity may read the list of peers")
        requests, reads = client(pod)
        return PeerSource(reads, pod.namespace, service, requests)

    def known() -> tuple[str, bool] | None:
        pod = health_pod()
        return None if pod is None else (pod.uid, pod.host_network)

    def runtime() -> Reader:
        from agent.cri.connect import connect  # late: gRPC is large

        return connect(node.cri_socket or "", deadline_s=DEADLINE_S)

    return Surroundings(
        node=node.name,
        namespace=node.health_pods[0].namespace,
        board=Board(time.monotonic),
        connect=connected,
        open_socket=SandboxSockets(known, runtime if node.cri_socket else None),
        is_asked=False,
    )


def for_once(settings: Settings) -> Surroundings:
    """Of an agent that runs each check once, which on a host knows no health pod."""
    found = in_a_pod(settings)
    return found if settings.mode == "pod" else replace(found, open_socket=_no_socket)


def _no_socket(family: int, kind: int) -> socket.socket:  # noqa: ARG001 - of OpenSocket
    raise NoPodNetwork("--once knows no health pod whose network it could enter; the service says it at /checks")


def own_sockets(environ: Mapping[str, str]) -> OpenSocket:
    address, host = environ.get("POD_IP", ""), environ.get("HOST_IP", "")

    def opened(family: int, kind: int) -> socket.socket:
        if address and address == host:
            raise NoPodNetwork("the agent runs in the host's network, which is no pod's")
        return socket.socket(family, kind | CLOSE_ON_EXEC)

    return opened


def service_of(environ: Mapping[str, str]) -> tuple[str, int] | None:
    """The API server's Service, as each pod is told."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "")
    return (host, int(port)) if host and port.isdigit() else None


def text_of(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def answers_of(board: Board) -> Answers:
    """The page that other agents ask for."""
    return {PATH: lambda request: Page(200, board.page(request), JSON)}


def families_of(board: Board) -> list[Family]:
    """Latency and loss, of /metrics. Nothing where no check of the pod network runs."""
    counts, seconds = board.counts(), board.seconds()
    if not counts:
        return []
    return [
        Family(
            "readygate_pod_network_tries_total",
            "counter",
            "Connections and datagrams of the check podNetwork by how they ended.",
            [({"leg": t.leg, "family": t.family, "result": t.result}, float(n)) for t, n in sorted(counts.items())],
        ),
        Family(
            "readygate_pod_network_seconds",
            "histogram",
            "Seconds until a leg of the check podNetwork had its whole answer.",
            histograms=[({"leg": leg, "family": family}, made) for (leg, family), made in sorted(seconds.items())],
        ),
    ]
