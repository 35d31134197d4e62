"""Rows LH: what hooks do, with real threads, sockets and commands. As pkg/kubelet/lifecycle/handlers.go, v1.36.3."""

import contextlib
import queue
import socket
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import pytest

from agent.kubelet.pods.hooks import Hook, Hooks
from agent.kubelet.runtime.process import ProcessRuntime
from agent.processes.command import Completed, ExecTimeout, RuntimeUnavailable
from agent.wire.model import Container, ExecAction, HttpGetAction, LifecycleHook, SleepAction
from tests.agent.kubelet.status.builders import make_pod
from tests.agent.probe.http_target import Target
from tools.kit.waiting import wait_until

POD = make_pod("c")
WHERE = 'for Container "c" in Pod "pod-1_default(uid-1)" failed'


class Stage:
    """Hooks whose commands end as the test says: with a Completed, or with an exception that is raised."""

    def __init__(self, ends: object = None) -> None:
        self.ends = ends
        self.over: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.told: list[tuple[str, str]] = []
        self.asked: list[object] = []
        self.hooks = Hooks(self.execute, self.over.put, lambda event: self.told.append((event.reason, event.message)))

    def execute(self, container_id: str, command: Sequence[str], timeout_s: float) -> Completed:
        self.asked.append((container_id, tuple(command), timeout_s))
        if isinstance(self.ends, Exception):
            raise self.ends
        assert isinstance(self.ends, Completed)
        return self.ends

    def start(self, action: object, *, ip: str = "127.0.0.1", limit_s: float = 20.0) -> Hook:
        return self.hooks.start(POD, Container("c"), "test://1", LifecycleHook(action), ip=ip, limit_s=limit_s)

    def run(self, action: object, **fields: object) -> str | None:
        hook = self.start(action, **fields)
        assert ("uid-1", True) == (self.over.get(timeout=20), hook.over)
        return hook.error


COMMAND = ExecAction(("do", "it"))


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        pytest.param(Completed(0, b"fine", b""), None, id="LH13 exit 0"),
        pytest.param(
            Completed(3, b'a "b"', b"c"),
            f'Exec lifecycle hook ([do it]) {WHERE} - error: command \'do it\' exited with 3: c, message: "a \\"b\\"c"',
            id="LH13 exit 3 with output",
        ),
        pytest.param(
            Completed(3, b"\x01\xff\xc3\xa4", b""),
            f"Exec lifecycle hook ([do it]) {WHERE} - error: command 'do it' exited with 3: , message: \"\\x01\\xffä\"",
            id="LH13 output that is no text, quoted as Go does",
        ),
        pytest.param(
            RuntimeUnavailable("container test://1 does not run"),
            f'Exec lifecycle hook ([do it]) {WHERE} - error: container test://1 does not run, message: ""',
            id="LH13 it could not be run",
        ),
        pytest.param(
            ExecTimeout(("do", "it"), 20),
            f"Exec lifecycle hook ([do it]) {WHERE} - error: "
            'command timed out: "do it" timed out after 20s, message: ""',
            id="LH13 it took too long",
        ),
        pytest.param(ValueError("a bug"), "ValueError: a bug", id="a mistake of ours fails the hook and nothing else"),
    ],
)
def test_commands(ends: object, expected: str | None) -> None:
    stage = Stage(ends)
    assert expected == stage.run(COMMAND)
    assert [("test://1", ("do", "it"), 20.0)] == stage.asked


def request(port: int, **fields: object) -> HttpGetAction:
    return HttpGetAction(port, "/ready", **fields)


@pytest.mark.parametrize("status", [200, 404, 500], ids=lambda status: f"LH14 any answer will do: {status}")
def test_requests(status: int) -> None:
    with Target(lambda call: call.reply(status, b"ok")) as target:
        assert Stage().run(request(target.port)) is None
    assert ("/ready", "kube-lifecycle/1.36") == (target.calls[0].path, dict(target.calls[0].headers)["User-Agent"])


def test_lh14_no_answer_is_a_failure() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    error = Stage().run(request(port))
    assert error == (
        f'HTTP lifecycle hook (/ready) {WHERE} - error: Get "http://127.0.0.1:{port}/ready": '
        f"dial tcp 127.0.0.1:{port}: connect: connection refused"
    )


class Plain:
    """A server without TLS. A context; `heads`: what it was sent, a connection each."""

    def __init__(self, reply: bytes) -> None:
        self._reply = reply
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self.heads: list[bytes] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        self._server.shutdown(socket.SHUT_RDWR)  # ends accept()
        self._thread.join()
        self._server.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                with self._server.accept()[0] as connection:
                    self.heads.append(connection.recv(65536))
                    connection.sendall(self._reply)


def test_lh15_a_server_without_tls_is_asked_again_without_the_password() -> None:
    stage = Stage()
    with Plain(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n") as server:
        port, heads = server.port, server.heads
        action = request(port, scheme="HTTPS", headers=(("Authorization", "secret"), ("X-Own", "kept")))
        assert stage.run(action) is None
    assert (True, True) == (b"X-Own: kept" in heads[1], b"Authorization" not in heads[1])
    text = f"request to HTTPS lifecycle hook 127.0.0.1:{port} got HTTP response, retry with HTTP succeeded"
    assert [("LifecycleHTTPFallback", text)] == stage.told


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(b"HTTX/1.1 200 OK\r\n\r\n", id="nearly"),
        pytest.param(b"220 mail ready\r\n", id="another protocol"),
        pytest.param(b"HTTP", id="it ends before it has said so much"),
    ],
)
def test_lh15_what_answers_in_neither_tls_nor_http_is_not_asked_again(reply: bytes) -> None:
    stage = Stage()
    with Plain(reply) as server:
        error = stage.run(request(server.port, scheme="HTTPS"))
    assert (True, 1, []) == (bool(error), len(server.heads), stage.told)


@pytest.mark.parametrize(
    ("action", "ip", "expected"),
    [
        pytest.param(
            HttpGetAction("web"), "127.0.0.1", 'strconv.Atoi: parsing "web": invalid syntax', id="no such port"
        ),
        pytest.param(HttpGetAction(80), "", "failed to find networking container", id="a pod without an address"),
    ],
)
def test_requests_that_have_nowhere_to_go(action: HttpGetAction, ip: str, expected: str) -> None:
    assert Stage().run(action, ip=ip) == f"HTTP lifecycle hook (/) {WHERE} - error: {expected}"


def test_lh16_a_sleep_ends_by_itself() -> None:
    assert Stage().run(SleepAction(0)) is None


@pytest.mark.parametrize("seconds", [3600, 2**63 - 1])
def test_lh16_a_sleep_that_is_cut_short_has_failed(seconds: int) -> None:
    stage = Stage()
    hook = stage.start(SleepAction(seconds))
    with pytest.raises(queue.Empty):
        stage.over.get(timeout=0.1)
    hook.cancel()
    assert "uid-1" == stage.over.get(timeout=20)
    cut = "container terminated before sleep hook finished"
    assert hook.error == f"Sleep lifecycle hook ({seconds}) {WHERE} - error: {cut}"


def test_lh17_a_hook_without_a_handler_has_failed() -> None:
    assert Stage().run(None) == f"Cannot run handler: invalid handler {WHERE}"


def test_where_no_thread_can_be_started_the_hook_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert Stage().run(COMMAND) == "no thread for it: can't start new thread"


def test_a_command_that_hangs_dies_with_its_container(tmp_path: Path) -> None:
    runtime = ProcessRuntime(tmp_path, "127.21.9.0/24", on_event=lambda _event: None)
    runtime.start()
    try:
        container = Container("c", command=("/bin/sh", "-c", "sleep 600"))
        container_id = runtime.start_container(POD, container, 0)
        over: queue.SimpleQueue[str] = queue.SimpleQueue()
        begun = tmp_path / "begun"
        action = ExecAction(("/bin/sh", "-c", f"touch {begun}; trap '' TERM; sleep 600"))
        hook = Hooks(runtime.exec, over.put).start(
            POD, container, container_id, LifecycleHook(action), ip="", limit_s=float("inf")
        )
        wait_until(begun.exists, "the hook runs")
        runtime.stop_container(container_id, 0.0)
        assert "uid-1" == over.get(timeout=20)
        assert (True, True) == (hook.over, hook.error is not None)
    finally:
        runtime.stop()
