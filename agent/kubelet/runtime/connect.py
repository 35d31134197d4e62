"""Opens the socket of a container runtime to run pods there; loads gRPC. To read only: `agent.cri.connect`."""

from pathlib import Path
from typing import TYPE_CHECKING

from agent.cri import rpc
from agent.cri.base import CriError, Trouble
from agent.kubelet.runtime.kubelet_lock import KubeletLock

if TYPE_CHECKING:
    from agent.kubelet.runtime.cri_runtime import CriRuntime

REQUEST_S = 120.0  # a kubelet's runtimeRequestTimeout


def connect_runtime(
    socket: str, *, owner: str, host_ip: str, logs: Path, guard: KubeletLock, deadline_s: float = REQUEST_S
) -> "CriRuntime":
    """Pods are labelled with `owner`; pods of other owners are neither seen nor touched. Raises CriError where gRPC is
    not installed."""
    try:
        (grpc,) = rpc.load("grpc")
        from agent.cri.client import Client  # behind the load: the messages need a package that comes with it
        from agent.kubelet.runtime.cri_runtime import CriRuntime
        from agent.kubelet.runtime.cri_writer import CriWriter
    except ImportError as e:
        raise CriError("connect", socket, Trouble.NO_PACKAGES, e) from None
    writer = CriWriter(Client(grpc, socket, deadline_s=deadline_s), owner=owner)
    return CriRuntime(writer, host_ip=host_ip, logs=logs, guard=guard)
