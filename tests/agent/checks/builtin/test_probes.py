"""The checks exec, httpGet and tcpSocket: what one run of each finds."""

import subprocess

import msgspec
import pytest

from agent import settings
from agent.checks.builtin import exec as exec_check
from agent.checks.catalogue import check_spec
from agent.checks.state import CheckState, Finding
from agent.processes import single
from agent.processes.command import OUTPUT_LIMIT_BYTES, Completed, ExecTimeout
from tests.agent.probe.http_target import Target


def found(**check: object) -> Finding:
    return check_spec(msgspec.convert({"name": "x", **check}, settings.Check)).run()


@pytest.mark.parametrize(
    ("command", "state", "output"),
    [
        pytest.param(["sh", "-c", "echo fine"], CheckState.PASSED, "fine\n", id="exit 0"),
        pytest.param(["sh", "-c", "echo bad >&2; exit 3"], CheckState.FAILED, "exit code 3: bad\n", id="exit 3"),
        pytest.param(["sh", "-c", "kill -9 $$"], CheckState.FAILED, "signal 9", id="ended by a signal"),
        pytest.param(
            ["/no/such"], CheckState.UNKNOWN, 'exec: "/no/such": executable file not found', id="could not run"
        ),
        pytest.param(["sh", "-c", "echo so far; sleep 9"], CheckState.HUNG, "killed after 1 s; so far", id="hung"),
    ],
)
def test_a_command(command: list[str], state: CheckState, output: str) -> None:
    assert Finding(state, output) == found(exec={"command": command})


def test_a_command_that_cannot_be_killed_is_not_started_beside_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one in uninterruptible sleep: SIGKILL has not ended it when the run is over."""
    stuck = subprocess.Popen(["sleep", "60"])
    started: list[tuple[str, ...]] = []

    def run(command: tuple[str, ...], *, timeout_s: float, output_limit_bytes: int, sweep: bool) -> Completed:
        assert output_limit_bytes == OUTPUT_LIMIT_BYTES
        assert sweep, "what it detaches dies with it"
        started.append(command)
        if len(started) == 1:
            raise ExecTimeout(command, timeout_s, leftover=stuck)
        return Completed(0, b"", b"")

    monkeypatch.setattr(single, "run_command", run)
    check = exec_check.Check(exec_check.Settings(("touch", "/nfs")), 1.0)
    try:
        assert Finding(CheckState.HUNG, "killed after 1 s") == check()
        assert Finding(CheckState.HUNG, f"process {stuck.pid} cannot be killed") == check()
        assert 1 == len(started)
    finally:
        stuck.kill()
        stuck.wait()
    assert Finding(CheckState.PASSED) == check()


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param(200, Finding(CheckState.PASSED, "body"), id="200"),
        pytest.param(503, Finding(CheckState.FAILED, "HTTP probe failed with statuscode: 503"), id="503"),
    ],
)
def test_a_status(status: int, expected: Finding) -> None:
    with Target(lambda call: call.reply(status, b"body")) as target:
        assert expected == found(httpGet={"port": target.port, "httpHeaders": [{"name": "A", "value": "b"}]})
    assert target.calls[0].header("A") == "b"


def test_a_body_that_breaks_off_fails_the_check() -> None:
    with Target(lambda call: call.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx")) as target:
        assert Finding(CheckState.FAILED, "unexpected EOF") == found(httpGet={"port": target.port})


def test_tcp_socket_and_a_host_that_cannot_be() -> None:
    with Target(lambda _call: None) as target:
        assert Finding(CheckState.PASSED) == found(tcpSocket={"port": target.port})
    assert found(httpGet={"port": 80, "host": "a b"}).state is CheckState.UNKNOWN
