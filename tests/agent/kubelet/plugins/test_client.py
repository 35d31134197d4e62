"""Asking plugins over gRPC: those that hang, are gone, speak otherwise (rows PM11, PM18)."""

import contextlib
import os
import socket
import threading
import time
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path

import pytest

from agent.cri.base import Trouble
from agent.cri.rpc import load
from agent.kubelet.plugins.api_pb2 import PluginInfo as Message
from agent.kubelet.plugins.api_pb2 import RegistrationStatus, RegistrationStatusResponse
from agent.kubelet.plugins.base import PluginError, PluginInfo
from agent.kubelet.plugins.client import Client, ask_all

grpc = load("grpc")[0]
SAID = Message(type="CSIPlugin", name="x", endpoint="/csi.sock", supported_versions=["1.0.0"])
INFO = PluginInfo("CSIPlugin", "x", "/csi.sock", ("1.0.0",))


class Server:
    def __init__(self, path: Path) -> None:
        self.answer = SAID.SerializeToString()
        self.notified: list[RegistrationStatus] = []
        self.server = grpc.server(futures.ThreadPoolExecutor(4))
        methods = {
            "GetInfo": grpc.unary_unary_rpc_method_handler(lambda _request, _context: self.answer),
            "NotifyRegistrationStatus": grpc.unary_unary_rpc_method_handler(self.notify),
        }
        handler = grpc.method_handlers_generic_handler("pluginregistration.Registration", methods)
        self.server.add_generic_rpc_handlers((handler,))
        self.server.add_insecure_port(f"unix:{path}")
        self.server.start()

    def notify(self, request: bytes, _context: object) -> bytes:
        self.notified.append(RegistrationStatus.FromString(request))
        return RegistrationStatusResponse().SerializeToString()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path / "p.sock")
    yield made
    made.server.stop(0).wait(10)


def trouble(error: object) -> Trouble:
    assert isinstance(error, PluginError)
    return error.trouble


def test_pm11_a_plugin_says_who_it_is_and_is_told(server: Server, tmp_path: Path) -> None:
    plugin = Client(str(tmp_path / "p.sock"))
    plugin.connect(60.0)
    assert INFO == plugin.info(60.0)
    plugin.notify("", 60.0)
    plugin.notify("no", 60.0)
    plugin.close()
    assert [(True, ""), (False, "no")] == [(s.plugin_registered, s.error) for s in server.notified]
    for ask in (lambda: plugin.notify("", 60.0), lambda: plugin.info(60.0)):
        with pytest.raises(PluginError, match="went away"):
            ask()


def test_a_socket_whose_name_is_no_text_is_asked_as_any_other(server: Server, tmp_path: Path) -> None:
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/\xff %2f.sock")
    (tmp_path / "p.sock").rename(odd)
    assert {odd: INFO} == ask_all([odd], 60.0), server


def test_closing_one_that_connects_ends_it_and_no_thread_dies(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    died: list[object] = []
    monkeypatch.setattr(threading, "excepthook", died.append)
    paths = [str(tmp_path / "p.sock"), str(tmp_path / "none.sock")]
    for number in range(100):
        plugin = Client(paths[number % 2])
        threading.Timer(0.001 * (number % 5), plugin.close).start()
        with contextlib.suppress(PluginError):
            plugin.connect(60.0)
        plugin.close()
    assert [] == [str(failure) for failure in died], server


@pytest.mark.usefixtures("server")
def test_pm18_those_that_hang_keep_no_other_waiting(tmp_path: Path) -> None:
    """All at once: ten that hang take the time of one."""
    held = []
    for n in range(10):
        one = socket.socket(socket.AF_UNIX)
        one.bind(str(tmp_path / f"hangs-{n}.sock"))
        one.listen()
        held.append(one)
    left = tmp_path / "left.sock"
    with socket.socket(socket.AF_UNIX) as gone:
        gone.bind(str(left))
    began = time.monotonic()
    answers = ask_all([str(path) for path in sorted(tmp_path.glob("*.sock"))], 3.0)
    took_s = time.monotonic() - began
    for one in held:
        one.close()
    assert INFO == answers[str(tmp_path / "p.sock")]
    assert Trouble.NOBODY_LISTENS == trouble(answers[str(left)])
    assert {Trouble.HANGS} == {trouble(answers[str(tmp_path / f"hangs-{n}.sock")]) for n in range(10)}
    assert took_s < 20, "not one after the other"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [pytest.param(b"\xff" * 64, Trouble.GARBAGE, id="of no message"), pytest.param(b"", None, id="an empty one")],
)
def test_an_answer_of_another_kind(server: Server, tmp_path: Path, answer: bytes, expected: Trouble | None) -> None:
    server.answer = answer
    found = ask_all([str(tmp_path / "p.sock")], 60.0)[str(tmp_path / "p.sock")]
    assert found == PluginInfo("", "") if expected is None else trouble(found) is expected


def test_pm11_a_socket_that_is_not_there_is_gone(tmp_path: Path) -> None:
    path = str(tmp_path / "none.sock")
    assert Trouble.NO_SOCKET == trouble(ask_all([path], 60.0)[path])
    with pytest.raises(PluginError, match="the socket is gone"):
        Client(path).connect(0.2)
