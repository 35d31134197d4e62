"""The manager with plugins that are processes of their own kind: over gRPC, in threads, by the real clock."""

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.kubelet.plugins.handlers import handlers
from agent.kubelet.plugins.manager import PluginManager
from tests.agent.kubelet.plugins.test_client import Server
from tools.kit.waiting import wait_until

PATIENT_S = 90.0


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[PluginManager]:
    made = PluginManager(tmp_path, handlers())
    made.start()
    yield made
    made.stop()


def names(manager: PluginManager) -> list[str]:
    return [info.name for info in manager.registered.values()]


def test_registered_told_gone_and_back_beside_one_that_hangs(manager: PluginManager, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as hangs:
        hangs.bind(str(tmp_path / "hangs.sock"))
        hangs.listen()
        for _ in range(2):  # as a plugin that is restarted
            server = Server(tmp_path / "p.sock")
            try:
                wait_until(lambda at=server: at.notified != [], timeout_s=PATIENT_S)
                assert (True, "") == (server.notified[0].plugin_registered, server.notified[0].error)
                wait_until(lambda: names(manager) == ["x"], timeout_s=PATIENT_S)
            finally:
                server.server.stop(0).wait(10)
            (tmp_path / "p.sock").unlink(missing_ok=True)
            wait_until(lambda: names(manager) == [], timeout_s=PATIENT_S)


def test_a_stop_leaves_no_thread_behind(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as hangs:
        hangs.bind(str(tmp_path / "hangs.sock"))
        hangs.listen()
        manager = PluginManager(tmp_path, handlers())
        manager.start()
        wait_until(lambda: "plugin-hangs.sock" in {t.name for t in threading.enumerate()}, timeout_s=PATIENT_S)
        manager.stop()
        wait_until(lambda: "plugin-hangs.sock" not in {t.name for t in threading.enumerate()}, timeout_s=PATIENT_S)
