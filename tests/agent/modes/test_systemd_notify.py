"""What systemd hears: by a socket as its own, and services that progress or do not."""

import math
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent.checks.health import node_health, status_line
from agent.checks.state import CheckState, CheckStatus, Severity
from agent.modes import systemd_notify
from tools.kit.clock import Clock
from tools.kit.waiting import wait_for


@dataclass
class Service:
    name: str
    progresses: bool = True

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def healthy(self, monotonic: float) -> bool:  # noqa: ARG002
        return self.progresses


class Systemd:
    """Its end of the socket."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(self.path)
        self._socket.settimeout(0.0)

    def heard(self) -> list[str]:
        try:
            return self._socket.recv(4096).decode().splitlines()
        except BlockingIOError:
            return []

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[Systemd]:
    made = Systemd(tmp_path / "notify")
    yield made
    made.close()


@dataclass
class Told:
    text: str = "starting: dns"


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def engine() -> Service:
    return Service("engine")


@pytest.fixture
def clock() -> Clock:
    return Clock(100.0)


@pytest.fixture
def notifier(systemd: Systemd, told: Told, engine: Service, clock: Clock) -> systemd_notify.SystemdNotifier:
    services = (Service("server"), engine)
    return systemd_notify.SystemdNotifier(systemd.path, 30.0, services, lambda: told.text, monotonic=clock)


def test_it_says_ready_once_alive_three_times_a_limit_and_the_status_when_it_changes(systemd, notifier, told, clock):
    story = [
        (0.0, "starting: dns", ["READY=1", "STATUS=starting: dns", "WATCHDOG=1"]),
        (1.0, "starting: dns", []),
        (2.0, "healthy: all checks passed (1)", ["STATUS=healthy: all checks passed (1)"]),
        (9.0, "healthy: all checks passed (1)", []),
        (10.0, "healthy: all checks passed (1)", ["WATCHDOG=1"]),
        (19.0, "not healthy: a\nb", ["STATUS=not healthy: a b"]),
        (20.0, "not healthy: a\nb", ["WATCHDOG=1"]),
    ]
    for after_s, text, expected in story:
        told.text = text
        clock.time = 100.0 + after_s
        notifier._turn()
        assert expected == systemd.heard()


def test_a_part_that_does_not_progress_is_named_and_no_sign_of_life_is_given(systemd, notifier, engine, clock):
    notifier._turn()
    systemd.heard()
    engine.progresses = False
    clock.time += 15
    notifier._turn()
    assert ["STATUS=does not progress: engine"] == systemd.heard()
    engine.progresses = True
    notifier._turn()
    assert ["STATUS=starting: dns", "WATCHDOG=1"] == systemd.heard()


def test_what_systemd_did_not_take_is_said_again(tmp_path, told, engine, clock):
    path = tmp_path / "later"
    notifier = systemd_notify.SystemdNotifier(str(path), 30.0, (engine,), lambda: told.text, monotonic=clock)
    notifier._turn()  # nobody is there: no error, and nothing counts as said
    systemd = Systemd(path)
    notifier._turn()
    assert ["READY=1", "STATUS=starting: dns", "WATCHDOG=1"] == systemd.heard()
    systemd.close()


def test_one_that_is_stopped_says_so(systemd, told, engine):
    notifier = systemd_notify.SystemdNotifier(systemd.path, math.inf, (engine,), lambda: told.text)
    notifier.start()
    heard: list[str] = []
    assert wait_for(lambda: heard.extend(systemd.heard()) or "READY=1" in heard, timeout_s=20)
    assert "WATCHDOG=1" not in heard, "nobody asked for it"
    notifier.stop()
    assert ["STOPPING=1"] == systemd.heard()


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        pytest.param({}, None, id="started by somebody else"),
        pytest.param({"NOTIFY_SOCKET": "/run/systemd/notify"}, math.inf, id="without a watchdog"),
        pytest.param({"NOTIFY_SOCKET": "@abstract", "WATCHDOG_USEC": "30000000"}, 30.0, id="with one"),
        pytest.param({"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "0"}, math.inf, id="a limit of nothing"),
        pytest.param({"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "soon"}, math.inf, id="no number"),
    ],
)
def test_by_whom_it_was_started_says_the_environment(environ, expected):
    made = systemd_notify.notifiers(environ, [], lambda: "")
    assert (0 if expected is None else 1) == len(made)
    assert expected is None or expected == systemd_notify.watchdog_s(environ)


def status(state: CheckState) -> CheckStatus:
    return CheckStatus("cni", Severity.GATE, since=0.0, state=state, output="no file")


@pytest.mark.parametrize(
    ("state", "begin"),
    [(CheckState.PASSED, "healthy: "), (CheckState.STARTING, "starting: "), (CheckState.FAILED, "not healthy: cni")],
)
def test_the_status_begins_with_the_word_that_an_installation_waits_for(state, begin):
    assert status_line(node_health([status(state)])).startswith(begin)
