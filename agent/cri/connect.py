"""A reader of the socket that is given, or a runtime that writes to it."""

from pathlib import Path
from typing import TYPE_CHECKING

from agent.cri import rpc
from agent.cri.base import CONTAINERD_SOCKET, CriError, Reader, Trouble
from agent.kubelet.runtime.kubelet_lock import KubeletLock

if TYPE_CHECKING:
    from agent.kubelet.runtime.cri_runtime import CriRuntime

REQUEST_S = 120.0  # a kubelet's runtimeRequestTimeout


def connect(socket: str = CONTAINERD_SOCKET, *, deadline_s: float = 5.0, may_exec: bool = False) -> Reader:
    """Connects when it is first asked. `deadline_s`: of each call. `may_exec`: it runs commands in containers, for
    probes; else it only reads. Raises CriError where gRPC is not installed."""
    try:
        (grpc,) = rpc.load("grpc")
        # Behind the load: the messages stand on a package that comes with it.
        from agent.cri.client import LIGHT_BYTES, Client
        from agent.cri.reader import CriReader
    except ImportError as e:
        raise CriError("connect", socket, Trouble.NO_PACKAGES, e) from None
    return CriReader(Client(grpc, socket, deadline_s=deadline_s, most_bytes=LIGHT_BYTES), may_exec=may_exec)


def connect_runtime(
    socket: str, *, owner: str, host_ip: str, logs: Path, guard: KubeletLock, deadline_s: float = REQUEST_S
) -> "CriRuntime":
    """As `connect`, to run pods: they are marked as the owner's, and nobody else's are seen."""
    try:
        (grpc,) = rpc.load("grpc")
        from agent.cri.client import Client
        from agent.kubelet.runtime.cri_runtime import CriRuntime
        from agent.kubelet.runtime.cri_writer import CriWriter
    except ImportError as e:
        raise CriError("connect", socket, Trouble.NO_PACKAGES, e) from None
    writer = CriWriter(Client(grpc, socket, deadline_s=deadline_s), owner=owner)
    return CriRuntime(writer, host_ip=host_ip, logs=logs, guard=guard)
