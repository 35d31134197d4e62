"""The grpc handler against real servers, and against peers that speak something else: the rows G."""

import socket
import sys
import threading
import time
from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent.cri import rpc
from agent.probe.grpc import grpc_check
from agent.probe.result import HandlerError, HandlerResult, Outcome
from agent.processes.command import run_command
from tools.differential.scripted import Script, Scripted
from tools.kit.waiting import wait_for, wait_until

# As the agent loads them: else children of a test die before they are executed, now and then.
grpc, health_pb2, health_pb2_grpc = rpc.load("grpc", "grpc_health.v1.health_pb2", "grpc_health.v1.health_pb2_grpc")
FAILURE = HandlerResult.FAILURE
SERVING = Outcome(HandlerResult.SUCCESS, "service healthy")
RPC = "error: health rpc probe failed: rpc error: code"


class Health(health_pb2_grpc.HealthServicer):
    """Answers as the name of the service says: a number is a status, `CODE:text` an error, `late` none in time."""

    def __init__(self) -> None:
        self.agents: list[str] = []
        self.release = threading.Event()

    def Check(self, request, context):  # noqa: N802 - grpc's name
        self.agents.append(dict(context.invocation_metadata())["user-agent"])
        code, _, text = request.service.partition(":")
        if code == "late":
            self.release.wait(20)
        elif text:
            context.abort(grpc.StatusCode[code], text)
        return health_pb2.HealthCheckResponse(status=int(code) if code.isdecimal() else 1)


@contextmanager
def serving(health: object | None, address: str = "127.0.0.1:0") -> Iterator[int]:
    server = grpc.server(futures.ThreadPoolExecutor(4))
    if health is not None:
        health_pb2_grpc.add_HealthServicer_to_server(health, server)
    port = server.add_insecure_port(address)
    server.start()
    try:
        yield port
    finally:
        server.stop(None).wait(20)


@pytest.fixture(scope="module")
def health() -> Health:
    return Health()


@pytest.fixture(scope="module")
def port(health: Health) -> Iterator[int]:
    with serving(health) as port:
        yield port
        health.release.set()


@pytest.mark.parametrize(
    ("service", "expected"),
    [
        pytest.param("", SERVING, id="G1: serving"),
        pytest.param("db", SERVING, id="G1: a service of that name serves"),
        pytest.param("2", 'service unhealthy (responded with "NOT_SERVING")', id="G2: not serving"),
        pytest.param("3", 'service unhealthy (responded with "SERVICE_UNKNOWN")', id="G2: a service nobody knows"),
        pytest.param("0", 'service unhealthy (responded with "UNKNOWN")', id="G2: unknown"),
        pytest.param("77", 'service unhealthy (responded with "77")', id="G2: a status that has no name"),
        pytest.param("NOT_FOUND:no such", f"{RPC} = NotFound desc = no such", id="G3: not found"),
        pytest.param("CANCELLED:gone", f"{RPC} = Canceled desc = gone", id="G3: cancelled, which Go writes shorter"),
        pytest.param("UNAVAILABLE:later", f"{RPC} = Unavailable desc = later", id="G3: unavailable"),
        pytest.param(
            "UNIMPLEMENTED:no",
            "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): no",
            id="G4: says that it has no health",
        ),
    ],
)
def test_what_a_server_says(port: int, service: str, expected: Outcome | str) -> None:
    outcome = expected if isinstance(expected, Outcome) else Outcome(FAILURE, expected)
    assert outcome == grpc_check("127.0.0.1", port, service, 20)


def test_g4_a_server_without_the_health_service() -> None:
    with serving(None) as port:
        outcome = grpc_check("127.0.0.1", port, "", 20)
    expected = "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): "
    assert (FAILURE, True) == (outcome.result, outcome.output.startswith(expected))


def test_g5_an_answer_that_is_late(port: int) -> None:
    assert Outcome(FAILURE, "timeout: health rpc did not complete within 1s") == grpc_check("", port, "late", 1)


def test_g6_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    expected = f'timeout: failed to connect service "127.0.0.1:{port}" within 1s: context deadline exceeded'
    assert Outcome(FAILURE, expected) == grpc_check("127.0.0.1", port, "", 1)


@pytest.mark.parametrize(
    "says",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", id="HTTP/1.1"),
        pytest.param(b"\x00" * 4096, id="zeros"),
        pytest.param(b"\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x05", id="half of its settings"),
    ],
)
def test_g7_a_peer_that_speaks_no_grpc_costs_the_timeout_and_is_a_failure(says: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        taken: list[socket.socket] = []

        def take() -> None:
            while True:
                try:
                    client, _ = listener.accept()
                    client.sendall(says)
                except OSError:
                    return
                taken.append(client)

        threading.Thread(target=take, daemon=True).start()
        begun = time.monotonic()
        outcome = grpc_check("127.0.0.1", listener.getsockname()[1], "", 0.5)
        assert (FAILURE, True) == (outcome.result, time.monotonic() - begun < 10)
        listener.shutdown(socket.SHUT_RDWR)
    for client in taken:
        client.close()


@pytest.mark.parametrize("wrong", [-1, 0, 65_536])
def test_a_port_that_cannot_be_is_a_failure(wrong: int) -> None:
    assert FAILURE == grpc_check("127.0.0.1", wrong, "", 0.3).result


def test_t4_the_empty_host_is_this_machine_and_an_ipv6_address_one_too(health: Health) -> None:
    with serving(health, "[::]:0") as port:
        assert [SERVING] * 3 == [grpc_check(host, port, "", 20) for host in ("", "::1", "127.0.0.1")]


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


def headers(flags: int, *fields: tuple[bytes, bytes]) -> bytes:
    said = b"".join(b"\0" + bytes((len(n),)) + n + bytes((len(v),)) + v for n, v in fields)
    return frame(1, flags, 1, said)


SETTINGS = frame(4, 0, 0, b"")
ANSWERS, OK = ((b":status", b"200"), (b"content-type", b"application/grpc")), (b"grpc-status", b"0")


def test_g8_an_answer_without_a_message_is_a_failure() -> None:
    """The call ended with OK and nothing else, which the library gives as None."""
    server = Scripted()
    server.script = Script(SETTINGS, headers(5, *ANSWERS, OK))
    why = "cardinality violation: received no response message from non-server-streaming RPC"
    assert Outcome(FAILURE, f"{RPC} = Internal desc = {why}") == grpc_check("127.0.0.1", server.port, "", 20)


@pytest.mark.parametrize(
    "ended",
    [
        pytest.param(headers(5, OK), id="and the call ends well"),
        pytest.param(headers(5, (b"grpc-status", b"5")), id="and the server says an error behind it"),
    ],
)
def test_g10_a_message_that_is_none_is_a_failure_and_leaves_no_traceback(
    ended: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    server = Scripted()
    message = frame(0, 0, 1, b"\0" + (8).to_bytes(4, "big") + b"\xff" * 8)
    server.script = Script(SETTINGS, headers(4, *ANSWERS) + message + ended)
    why = "grpc: failed to unmarshal the received message: proto: cannot parse invalid wire-format data"
    assert Outcome(FAILURE, f"{RPC} = Internal desc = {why}") == grpc_check("127.0.0.1", server.port, "", 20)
    assert [] == [record.getMessage() for record in caplog.records]


MESSAGE = frame(0, 0, 1, b"\0" + (2).to_bytes(4, "big") + b"\x08\x01")  # serving
UNAVAILABLE = (b":status", b"503"), ANSWERS[1]


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        pytest.param(
            headers(4, *UNAVAILABLE) + MESSAGE + headers(5, OK), f"{RPC} = ", id="G9 another status with gRPC's type"
        ),
        pytest.param(
            headers(4, *ANSWERS) + MESSAGE * 2 + headers(5, OK),
            "timeout: health rpc did not complete within 1s",
            id="G9 two messages",
        ),
        pytest.param(
            headers(4, *ANSWERS) + MESSAGE + frame(3, 0, 1, b"\0\0\0\2"), f"{RPC} = ", id="G9 a stream cut short"
        ),
    ],
)
def test_an_answer_that_is_no_grpc_is_a_failure_in_the_librarys_words(reply: bytes, expected: str) -> None:
    server = Scripted()
    server.script = Script(SETTINGS, reply)
    outcome = grpc_check("127.0.0.1", server.port, "", 1 if expected.startswith("timeout") else 20)
    assert (FAILURE, True) == (outcome.result, outcome.output.startswith(expected)), outcome


def test_it_says_that_it_is_a_probe(port: int, health: Health) -> None:
    grpc_check("127.0.0.1", port, "", 20)
    assert health.agents[-1].startswith("kube-probe/1.36 ")


def test_no_proxy_is_asked(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("grpc_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert SERVING == grpc_check("127.0.0.1", port, "", 20)


def test_many_probes_at_once_share_nothing_and_leave_nothing(port: int) -> None:
    def held() -> tuple[int, int]:
        return threading.active_count(), len(list(Path("/proc/self/fd").iterdir()))

    def probe(number: int) -> Outcome:
        return grpc_check("127.0.0.1", port, str(1 + number % 2), 20)

    together = threading.Barrier(8)
    with futures.ThreadPoolExecutor(8, initializer=lambda: together.wait(20)) as pool:
        [pool.submit(time.sleep, 0) for _ in range(8)]  # all threads of both sides are there before we count
        list(pool.map(probe, range(64)))
        before = held()
        not_serving = Outcome(FAILURE, 'service unhealthy (responded with "NOT_SERVING")')
        assert [SERVING, not_serving] * 32 == list(pool.map(probe, range(64)))
        assert wait_for(lambda: all(now <= then for now, then in zip(held(), before, strict=True)), timeout_s=20)


PROBES_AND_COMMANDS = """
import sys
import threading
from agent.probe.grpc import grpc_check
from agent.processes.command import run_command
over = threading.Event()
def keep_probing():
    while not over.is_set():
        grpc_check("127.0.0.1", int(sys.argv[1]), "", 2)
probes = [threading.Thread(target=keep_probing) for _ in range(2)]
for probe in probes:
    probe.start()
print({run_command(["true"], timeout_s=20).exit_code for _ in range(100)})
over.set()
for probe in probes:
    probe.join()
"""


def test_commands_are_run_beside_probes(port: int) -> None:
    """In a process of its own, for the library reads how it treats forks when it is loaded: by default one command in
    five ended with SIGSEGV or SIGABRT."""
    # Not by a fork: this process serves gRPC, whose handlers of forks killed one child in four before it was executed.
    done = run_command([sys.executable, "-c", PROBES_AND_COMMANDS, str(port)], timeout_s=100)
    assert (0, b"{0}\n") == (done.exit_code, done.stdout), done.stderr


def test_without_its_packages_it_is_an_error_that_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "grpc_health.v1.health_pb2", None)
    rpc._load.cache_clear()
    with pytest.raises(HandlerError) as told:
        grpc_check("127.0.0.1", 1, "", 0.1)
    says = "grpc probes need the package grpc_health.v1.health_pb2: install readygate[grpc]"
    rpc._load.cache_clear()
    assert (says, HandlerResult.UNKNOWN) == (str(told.value), told.value.result)


def test_a_channel_that_is_closed_while_its_state_is_asked_for_leaves_no_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As at the end of a probe that has timed out."""
    died: list[str] = []
    monkeypatch.setattr(threading, "excepthook", lambda failure: died.append(str(failure.exc_value)))
    before = threading.active_count()
    for _ in range(100):
        channel = grpc.insecure_channel("ipv4:127.0.0.1:1")
        channel.subscribe(lambda _state: None)
        channel.close()
    wait_until(lambda: threading.active_count() <= before, timeout_s=60)
    assert [] == died
