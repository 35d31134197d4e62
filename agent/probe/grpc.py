"""The grpc handler, as pkg/probe/grpc: one call of grpc.health.v1.Health/Check over a connection of its own.

The packages for it are loaded by the first probe: an agent without such probes neither needs nor loads them.
"""

import threading
from types import ModuleType
from typing import Any

from agent.cri import rpc
from agent.probe.result import HandlerError, HandlerResult, Outcome
from agent.probe.targets import USER_AGENT, is_address, join_host_port
from agent.processes.command import go_duration

OPTIONS = (
    ("grpc.enable_http_proxy", 0),
    ("grpc.primary_user_agent", USER_AGENT),
    ("grpc.use_local_subchannel_pool", 1),  # else two probes of one address share a connection
)
RPC_FAILED = "error: health rpc probe failed: rpc error: code"
NO_ANSWER = "cardinality violation: received no response message from non-server-streaming RPC"
NO_MESSAGE = "grpc: failed to unmarshal the received message: proto: cannot parse invalid wire-format data"
CHECK = "/grpc.health.v1.Health/Check"
STATE_WITHIN_S = 1.0  # the state is there at once; nobody waits for ever if it is not


def grpc_check(host: str, port: int, service: str, timeout_s: float) -> Outcome:
    """One probe; every error is a failure. An empty host is this machine. Raises HandlerError where the packages for
    it are not installed."""
    grpc, messages, protobuf = _packages()
    where = join_host_port(host, port)
    received: list[bytes] = []

    def take(message: bytes) -> bytes:
        received.append(message)
        return message

    failed = None
    with grpc.insecure_channel(_target(host, port), options=OPTIONS) as channel:
        try:
            asked = messages.HealthCheckRequest(service=service).SerializeToString()
            channel.unary_unary(CHECK, response_deserializer=take)(asked, timeout=timeout_s, wait_for_ready=True)
        except grpc.RpcError as e:
            connected = e.code() is not grpc.StatusCode.DEADLINE_EXCEEDED or _is_connected(grpc, channel)
            failed = Outcome(HandlerResult.FAILURE, _why(grpc, e, where, timeout_s, connected=connected))
    try:
        # Read here, not by the library: that writes a traceback where it cannot.
        answer = messages.HealthCheckResponse.FromString(received[0]) if received else None
    except protobuf.DecodeError:  # whatever the server says behind it
        return Outcome(HandlerResult.FAILURE, f"{RPC_FAILED} = Internal desc = {NO_MESSAGE}")
    if failed is not None:
        return failed
    if answer is None:  # the call has ended well, and nothing came
        return Outcome(HandlerResult.FAILURE, f"{RPC_FAILED} = Internal desc = {NO_ANSWER}")
    if answer.status == messages.HealthCheckResponse.SERVING:
        return Outcome(HandlerResult.SUCCESS, "service healthy")
    return Outcome(HandlerResult.FAILURE, f'service unhealthy (responded with "{_status(messages, answer.status)}")')


def _packages() -> tuple[ModuleType, ...]:
    try:
        return rpc.load("grpc", "grpc_health.v1.health_pb2", "google.protobuf.message")
    except ImportError as e:
        raise HandlerError(
            f"grpc probes need the package {e.name}: install readygate[grpc]", HandlerResult.UNKNOWN
        ) from e


def _target(host: str, port: int) -> str:
    """As the library names it; never looked up by a scheme that the text of a pod's status could choose."""
    if not is_address(host):
        return f"dns:///{join_host_port(host or 'localhost', port)}"
    return f"{'ipv6' if ':' in host else 'ipv4'}:{join_host_port(host.replace('%', '%25'), port)}"


def _is_connected(grpc: ModuleType, channel: Any) -> bool:  # noqa: ANN401 - the module is known at run time only
    """Whether the call had a connection when its time was over."""
    states: list[object] = []
    told = threading.Event()

    def take(state: object) -> None:
        states.append(state)
        told.set()

    channel.subscribe(take, try_to_connect=False)
    told.wait(STATE_WITHIN_S)
    channel.unsubscribe(take)
    return states[:1] == [grpc.ChannelConnectivity.READY]


def _why(grpc: ModuleType, error: Any, where: str, timeout_s: float, *, connected: bool) -> str:  # noqa: ANN401
    code, words = error.code(), error.details()
    if not connected:
        return (
            f'timeout: failed to connect service "{where}" within {go_duration(timeout_s)}: context deadline exceeded'
        )
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return f"timeout: health rpc did not complete within {go_duration(timeout_s)}"
    if code is grpc.StatusCode.UNIMPLEMENTED:
        return f"error: this server does not implement the grpc health protocol (grpc.health.v1.Health): {words}"
    return f"{RPC_FAILED} = {_go_code(code.name)} desc = {words}"


def _go_code(name: str) -> str:
    """NOT_FOUND -> NotFound, as google.golang.org/grpc/codes writes it."""
    return "Canceled" if name == "CANCELLED" else "".join(word.capitalize() for word in name.split("_"))


def _status(messages: ModuleType, number: int) -> str:
    names: dict[int, str] = {value: name for name, value in messages.HealthCheckResponse.ServingStatus.items()}
    return names.get(number, str(number))
