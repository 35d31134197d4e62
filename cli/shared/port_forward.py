"""Forwards a port of a pod through the API server and the pod's kubelet, with the user's own rights.

The process in the pod may listen on loopback of its host. No port is opened on this machine. One connection is one
WebSocket to `pods/NAME/portforward` with the subprotocol v4.channel.k8s.io. The first byte of a message is the number
of its channel: 0 carries the bytes of the connection, 1 the text of an error. Each channel begins with two bytes that
hold the port. Mirrors handleWebSocketStreams of k8s.io/cri-streaming/pkg/streaming/portforward. RFC 6455 is left to the
package websocket-client.

The API server authorizes the request as `get` on pods/portforward. From Kubernetes 1.35 on it also demands `create`
(its feature gate AuthorizePodWebsocketUpgradeCreatePermission).
"""

import selectors
import socket
import ssl
import threading
import time
from contextlib import suppress

import msgspec
from urllib3.exceptions import HTTPError
from websocket import ABNF, WebSocket, WebSocketBadStatusException, WebSocketException, WebSocketTimeoutException

from cli.shared.errors import api_problem
from component.text import one_line
from kube import errors, paths
from kube.auth import Connection
from kube.errors import KubeError
from kube.objects import UNREADABLE
from kube.transport import Transport

PROTOCOL = "v4.channel.k8s.io"
DATA, ERROR = 0, 1  # channels
PORT_BYTES = 2  # at the beginning of each channel
RIGHTS = "get and, from Kubernetes 1.35 on, create on pods/portforward"
STALLED_S = 30.0  # a connection ends if a side takes no bytes, or leaves a message unfinished, for this long
GOODBYE_S = 1.0
LEAST_TIMEOUT_S = 0.001  # 0 would mean "do not block"
BLOCK_BYTES = 2**16
COMPLAINT_LIMIT_BYTES = 1024


class ForwardError(Exception):
    """The pod's port cannot be reached. One line with cause and remedy."""


class _Status(msgspec.Struct):
    """metav1.Status, as far as an error needs it."""

    reason: str = ""
    message: str = ""


class PortForward:
    """Opens connections to one port of one pod. Thread-safe."""

    def __init__(self, there: Connection, namespace: str, pod: str, port: int, *, host: str, user_agent: str) -> None:
        """there: the API server. host: the pod's node. Raises CredentialsInvalid; sends nothing."""
        self.pod = pod
        self.host = host
        self._port = port
        self._there = there
        self._user_agent = user_agent
        self._transport = Transport(there, pool_size=1)
        path = f"{paths.pod_port_forward(namespace, pod)}?ports={port}"
        self._url = f"ws{there.server.removeprefix('http').rstrip('/')}{path}"
        self._last: Relay | None = None

    @property
    def complaint(self) -> str:
        """Why the kubelet ended the last connection of dial(); "" without a reason."""
        return "" if self._last is None else self._last.complaint

    def explain(self, complaint: str) -> str:
        """Explains the kubelet's complaint in one line with cause and remedy."""
        if "refused" in complaint:
            return f"nothing listens at port {self._port} of {self.pod}: it is starting or has failed; see its log"
        return f"the kubelet of {self.host} cannot reach port {self._port} of {self.pod}: {one_line(complaint, 200)}"

    def dial(self, timeout_s: float) -> socket.socket:
        """Opens a connection to the port. A thread relays its bytes until a side closes it. Raises as open()."""
        relay = self._last = Relay(self.open(timeout_s))
        near, far = socket.socketpair()

        def carry() -> None:
            with far:
                relay.run(far)

        threading.Thread(target=carry, name="port-forward", daemon=True).start()
        return near

    def open(self, timeout_s: float) -> WebSocket:
        """Opens a WebSocket for a Relay. Raises ForwardError, CredentialsInvalid."""
        ends = time.monotonic() + timeout_s
        try:
            try:
                return self._upgrade(ends)
            except errors.Unauthorized:
                self._there.credentials.refresh()
                if self._there.tls is not None:
                    self._there.tls.refresh()
                return self._upgrade(ends)
        except KubeError as e:
            raise ForwardError(self._problem(e)) from e

    def _upgrade(self, ends: float) -> WebSocket:
        """ends: by time.monotonic(). Raises KubeError, CredentialsInvalid."""
        timeout_s = max(ends - time.monotonic(), LEAST_TIMEOUT_S)
        headers = {"User-Agent": self._user_agent, **self._there.credentials.headers(time.monotonic())}
        connection = self._transport.own_connection(timeout_s=timeout_s)
        web = WebSocket(enable_multithread=False)
        try:
            connection.connect()
            sock, lifeline = connection.sock, connection.lifeline
            assert lifeline is not None  # noqa: S101 - connect() made it, or an error
            # The library's timeout is that of one system call. This timer ends the handshake as a whole.
            alarm = threading.Timer(max(ends - time.monotonic(), 0.0), lifeline.cut)
            alarm.daemon = True
            alarm.start()
            try:
                web.connect(  # type: ignore[no-untyped-call]
                    self._url,
                    socket=sock,
                    timeout=timeout_s,
                    header=headers,
                    subprotocols=[PROTOCOL],
                    suppress_origin=True,
                    redirect_limit=0,
                )
            finally:
                alarm.cancel()
        except (HTTPError, WebSocketException, OSError, ValueError) as e:
            connection.close()
            raise self._no_upgrade(e, late=time.monotonic() >= ends) from e
        connection.sock = None  # the WebSocket's from here on; a second descriptor would keep it open after its end
        connection.close()
        return web

    def _no_upgrade(self, error: Exception, *, late: bool) -> KubeError:
        path = self._transport.prefix
        if isinstance(error, WebSocketBadStatusException) and error.status_code:
            body = error.resp_body or b""
            try:
                status = msgspec.json.decode(body, type=_Status)
            except UNREADABLE:  # the kubelet's plain text, or a proxy's page
                status = _Status(message=body[:512].decode("utf-8", "replace"))
            return errors.from_status(path=path, status=error.status_code, reason=status.reason, message=status.message)
        if isinstance(error, HTTPError):  # no connection to the API server
            cause = _system_error(error) or "no connection in time"
            return errors.Unreachable(path=path, message=f"{self._there.server}: {cause}")
        if late or isinstance(error, TimeoutError | WebSocketTimeoutException):
            return errors.DeadlineExceeded(path=path)
        if isinstance(error, OSError):
            return errors.Unreachable(path=path, message=f"{self._there.server}: {_system_error(error) or error}")
        return errors.MalformedReply(path=path, message=f"no WebSocket: {error}")

    def _problem(self, error: KubeError) -> str:
        what = f"forward port {self._port} of {self.pod}"
        if isinstance(error, errors.Forbidden):
            # Without `create` the API server ends the sentence before the reason: 'pods "e-1" is forbidden:'.
            return f"you may not {what}: {error.message.rstrip(': ')}; the rights needed are {RIGHTS}"
        if isinstance(error, errors.NotFound):
            return f"{self.pod} was just deleted; try again"
        if isinstance(error, errors.DeadlineExceeded):
            return self._no_kubelet("no answer in time")
        if isinstance(error, errors.ServerError) and "dialing backend" in error.message:
            return self._no_kubelet(error.message)
        return api_problem(error, what)

    def _no_kubelet(self, cause: str) -> str:
        return (
            f"the kubelet of {self.host} does not answer the API server, so {self.pod} cannot be reached: "
            f"{one_line(cause, 160)}; check that kubelet, and that the API server may connect to it (port 10250)"
        )


def _system_error(error: BaseException) -> str:
    """The operating system's text in the error or its causes, "" without one; urllib3's own texts name objects."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
        cause = cause.__cause__ or cause.__context__
    return ""


class Relay:
    """Relays the bytes of one connection between its WebSocket and a local socket."""

    def __init__(self, web: WebSocket) -> None:
        self._web = web
        self._port_bytes = {DATA: PORT_BYTES, ERROR: PORT_BYTES}  # that have not arrived yet
        self.complaint = ""  # the kubelet's error text, complete once run() has returned
        self.received = False  # whether the pod has sent anything

    def run(self, local: socket.socket) -> None:
        """Relays until a side ends or stalls, then closes the WebSocket."""
        with suppress(OSError, ValueError, WebSocketException):
            try:
                self._carry(local)
            finally:
                self._close()

    def _carry(self, local: socket.socket) -> None:
        remote = self._web.sock
        assert remote is not None  # noqa: S101 - open() connected it
        local.settimeout(STALLED_S)
        self._web.settimeout(STALLED_S)
        with selectors.DefaultSelector() as ready:
            ready.register(remote, selectors.EVENT_READ)
            ready.register(local, selectors.EVENT_READ)
            while True:
                # Bytes that TLS has already decrypted do not make the socket readable.
                has_more = isinstance(remote, ssl.SSLSocket) and remote.pending() > 0
                sides = {key.fileobj for key, _ in ready.select(0.0 if has_more else None)}
                if (has_more or remote in sides) and not self._deliver(local):
                    return
                if local in sides:
                    block = local.recv(BLOCK_BYTES)
                    if not block:
                        return
                    self._web.send_binary(bytes([DATA]) + block)

    def _deliver(self, local: socket.socket) -> bool:
        """Delivers one message of the kubelet. Returns whether more may come."""
        opcode, message = self._web.recv_data(control_frame=True)
        if opcode == ABNF.OPCODE_CLOSE:
            return False
        if opcode != ABNF.OPCODE_BINARY or not message or message[0] not in self._port_bytes:
            return True
        channel = message[0]
        skipped = min(self._port_bytes[channel], len(message) - 1)
        self._port_bytes[channel] -= skipped
        payload = message[1 + skipped :]
        if channel == ERROR:
            more = payload[: COMPLAINT_LIMIT_BYTES - len(self.complaint)]
            self.complaint += more.decode("utf-8", "replace")
        elif payload:
            self.received = True
            local.sendall(payload)
        return True

    def _close(self) -> None:
        with suppress(OSError, ValueError, WebSocketException):
            self._web.settimeout(GOODBYE_S)
            self._web.send_close()
        self._web.shutdown()  # type: ignore[no-untyped-call]
