"""Opens the socket of a container runtime for reading; loads gRPC."""

from agent.cri import rpc
from agent.cri.base import CONTAINERD_SOCKET, CriError, Reader, Trouble


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
