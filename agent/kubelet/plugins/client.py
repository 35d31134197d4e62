"""Asks plugins, over gRPC on their sockets."""

import threading
import time
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any

from google.protobuf.message import DecodeError

from agent.cri import rpc
from agent.cri.base import Trouble
from agent.cri.socket_errors import trouble_with
from agent.kubelet.plugins.api_pb2 import InfoRequest, RegistrationStatus
from agent.kubelet.plugins.api_pb2 import PluginInfo as Message
from agent.kubelet.plugins.base import PluginError, PluginInfo

_SERVICE = "/pluginregistration.Registration"
MOST_BYTES = 2**20
LOOK_AGAIN_S = 0.1


class Client:
    """One plugin's socket; connects when it is first asked."""

    def __init__(self, socket: str) -> None:
        """Raises PluginError where gRPC is not installed."""
        self._socket = socket
        self._grpc = _packages()
        self._channel = rpc.channel(self._grpc, socket, most_bytes=MOST_BYTES)
        self._closed = threading.Event()

    def connect(self, within_s: float) -> None:
        """Waits until somebody accepts. Not asked of the library: its thread that looks at a channel dies with a
        traceback where that is closed meanwhile."""
        ends = time.monotonic() + within_s
        while (trouble := trouble_with(self._socket)) is not None:
            left_s = ends - time.monotonic()
            if left_s <= 0:
                raise PluginError(trouble, within_s=within_s)
            if self._closed.wait(min(LOOK_AGAIN_S, left_s)):
                raise PluginError(Trouble.WENT_AWAY, "closed")

    def info(self, within_s: float) -> PluginInfo:
        return self.said(self.asked(within_s), within_s)

    def asked(self, within_s: float) -> Any:  # noqa: ANN401 - the library's future
        """GetInfo, not waited for."""
        call = self._channel.unary_unary(f"{_SERVICE}/GetInfo")
        try:
            return call.future(InfoRequest().SerializeToString(), timeout=within_s)
        except ValueError as e:
            raise PluginError(Trouble.WENT_AWAY, e) from None  # closed, by us

    def said(self, answer: Any, within_s: float) -> PluginInfo:  # noqa: ANN401 - as above
        """What came of `asked`. Raises PluginError."""
        try:
            message = Message.FromString(answer.result())
        except self._grpc.RpcError as e:
            raise self._error(e, within_s) from None
        except self._grpc.FutureCancelledError as e:
            raise PluginError(Trouble.WENT_AWAY, e) from None
        except DecodeError as e:
            raise PluginError(Trouble.GARBAGE, e) from None
        return PluginInfo(message.type, message.name, message.endpoint, tuple(message.supported_versions))

    def notify(self, error: str, within_s: float) -> None:
        status = RegistrationStatus(plugin_registered=not error, error=error)
        try:
            self._channel.unary_unary(f"{_SERVICE}/NotifyRegistrationStatus")(
                status.SerializeToString(), timeout=within_s
            )
        except self._grpc.RpcError as e:
            raise self._error(e, within_s) from None
        except ValueError as e:
            raise PluginError(Trouble.WENT_AWAY, e) from None  # closed, by us

    def close(self) -> None:
        self._closed.set()
        self._channel.close()

    def _error(self, error: Any, within_s: float) -> PluginError:  # noqa: ANN401 - known at run time only
        codes = self._grpc.StatusCode
        said = "" if error.code() is codes.DEADLINE_EXCEEDED else error.details() or ""
        trouble = {
            codes.UNIMPLEMENTED: Trouble.NOT_OFFERED,
            codes.DEADLINE_EXCEEDED: Trouble.HANGS,
            codes.UNAVAILABLE: Trouble.WENT_AWAY,
            codes.CANCELLED: Trouble.WENT_AWAY,
        }.get(error.code(), Trouble.REFUSED)
        if trouble is Trouble.NOT_OFFERED:
            return PluginError(trouble, said)
        seen = trouble_with(self._socket)
        return (
            PluginError(seen, within_s=within_s) if seen is not None else PluginError(trouble, said, within_s=within_s)
        )


def ask_all(sockets: Iterable[str], within_s: float) -> Mapping[str, PluginInfo | PluginError]:
    """What each plugin says, all asked at once: those that hang take `within_s` together. Raises PluginError where gRPC
    is not installed."""
    clients = {socket: Client(socket) for socket in sockets}
    try:
        asked = {socket: client.asked(within_s) for socket, client in clients.items()}
        return {socket: _outcome(clients[socket], answer, within_s) for socket, answer in asked.items()}
    finally:
        for client in clients.values():
            client.close()


def _outcome(client: Client, answer: Any, within_s: float) -> PluginInfo | PluginError:  # noqa: ANN401 - as above
    try:
        return client.said(answer, within_s)
    except PluginError as e:
        return e


def _packages() -> ModuleType:
    try:
        (grpc,) = rpc.load("grpc")
    except ImportError as e:
        raise PluginError(Trouble.NO_PACKAGES, e) from None
    return grpc
