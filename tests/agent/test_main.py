"""The command itself, in this process: signals at odd moments, and what a user sees when the start ends."""

import io
import json
import logging
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent import __main__ as command
from agent.checks.catalogue import KINDS
from agent.modes import once
from component.lifecycle import StartFailed

POD = "mode: pod\nlisten: {address: 127.0.0.1, port: 1}\nchecks: [{name: cni, cni: {}}]\n"


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    root, hook = logging.getLogger(), threading.excepthook
    kept, level = list(root.handlers), root.level
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)
    root.handlers[:], threading.excepthook = kept, hook
    root.setLevel(level)
    logging.captureWarnings(capture=False)


class Service:
    name = "service"

    def __init__(self, journal: list[str], number: int | None = None, failure: Exception | None = None) -> None:
        self._journal = journal
        self._number = number
        self._failure = failure

    def start(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._number is not None:
            os.kill(os.getpid(), self._number)
        self._journal.append("start")

    def stop(self) -> None:
        self._journal.append("stop")

    def healthy(self, now: float) -> bool:  # noqa: ARG002
        return True


def run(tmp_path: Path, text: str = POD, *arguments: str) -> int:
    file = tmp_path / "agent.yaml"
    file.write_text(text)
    return command.main(["--config", str(file), *arguments])


@pytest.mark.parametrize(("number", "expected"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)], ids=["SIGTERM", "Ctrl-C"])
def test_a_signal_during_the_start_ends_it_after_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, expected: int
) -> None:
    journal: list[str] = []
    monkeypatch.setattr(command, "build", lambda _settings: [Service(journal, number), Service(journal)])
    assert expected == run(tmp_path)
    assert journal == ["start", "start", "stop", "stop"]


def test_a_signal_before_there_is_anything_ends_it_cleanly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Process 1 of a container loses a signal that comes before its handler is there."""
    load, journal = command.settings.load, []

    def interrupted(path: str) -> object:
        assert signal.getsignal(signal.SIGTERM) not in (signal.SIG_DFL, signal.SIG_IGN)
        os.kill(os.getpid(), signal.SIGTERM)
        return load(path)

    monkeypatch.setattr(command.settings, "load", interrupted)
    monkeypatch.setattr(command, "build", lambda _settings: [Service(journal)])
    assert run(tmp_path) == 0
    assert journal == [], "nothing was started"


def test_a_signal_while_credentials_are_waited_for_ends_it_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a kubeconfig's plugin that hangs for half a minute."""
    release, signalled = threading.Event(), []

    def hang(_settings: object) -> list[Service]:
        signalled.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGTERM)
        release.wait(60)
        return []

    monkeypatch.setattr(command, "build", hang)
    assert run(tmp_path) == 0
    assert time.monotonic() - signalled[0] <= 2
    release.set()


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        pytest.param(
            StartFailed("kubelet.rootDir is not usable: [Errno 28] No space left on device:\n'/run/x'; give a folder"),
            "kubelet.rootDir is not usable: [Errno 28] No space left on device: '/run/x'; give a folder",
            id="a full disk",
        ),
        pytest.param(
            RuntimeError("can't start new thread"),
            "can't start new thread: raise the limit of processes (pids), or configure fewer checks",
            id="no more threads",
        ),
        pytest.param(
            OSError(24, "Too many open files"), "[Errno 24] Too many open files", id="no more file descriptors"
        ),
    ],
)
def test_a_start_that_fails_is_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    failure: Exception,
    expected: str,
) -> None:
    monkeypatch.setattr(command, "build", lambda _settings: [Service([], failure=failure)])
    assert run(tmp_path) == 1
    assert capsys.readouterr().err == f"readygate-agent: {expected}\n"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(POD + "condition: {publish: true, podName: p, podNamespace: n, podUID: u}\n", id="mode pod"),
        pytest.param(
            "mode: kubelet\nkubelet: {nodeName: n, podCIDR: 127.20.1.0/24, rootDir: /run/x}\n", id="mode kubelet"
        ),
    ],
)
def test_no_service_account_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert run(tmp_path, text) == 2
    expected = "readygate-agent: not inside a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set; "
    assert capsys.readouterr().err == f"{expected}name a kubeconfig file (kubernetes.kubeconfig)\n"


ONCE = """mode: pod
checks:
- {{name: a, exec: {{command: [{command}]}}, timeoutSeconds: 60}}
- {{name: b, exec: {{command: ['true']}}, successThreshold: 3, initialDelaySeconds: 60}}
"""


@pytest.mark.parametrize(("command", "expected", "word"), [("'true'", 0, "passed"), ("'false'", 1, "failed")])
def test_once_says_what_each_check_finds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, expected: int, word: str
) -> None:
    assert expected == run(tmp_path, ONCE.format(command=command), "--once")
    _, a, b, node = capsys.readouterr().out.splitlines()
    assert (["a", "exec", word], ["b", "exec", "passed"]) == (a.split()[:3], b.split()[:3])
    assert node.startswith("node: healthy" if expected == 0 else "node: not healthy")


def test_once_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, ONCE.format(command="'false'"), "--once", "-o", "json") == 1
    document = json.loads(capsys.readouterr().out)
    assert [("a", "failed"), ("b", "passed")] == [(check["name"], check["state"]) for check in document["checks"]]
    assert all(check["seconds"] > 0 for check in document["checks"])


def test_once_at_a_terminal_that_has_not_all_letters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with LC_ALL=en_US.ISO-8859-1: what a check says is any text."""
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="iso-8859-1"))
    code = run(tmp_path, ONCE.format(command="printf, 'costs 5 €'"), "--once")
    assert (0, True) == (code, b"costs 5 ?" in written.getvalue())


@pytest.mark.parametrize(("end", "expected"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["Ctrl-C", "SIGTERM"])
def test_a_signal_ends_once(tmp_path: Path, end: signal.Signals, expected: int) -> None:
    timer = threading.Timer(0.5, os.kill, (os.getpid(), end))
    timer.start()
    assert expected == run(tmp_path, ONCE.format(command="sleep, '60'"), "--once")


def test_where_a_check_takes_long_a_terminal_is_told_which(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(once, "TOLD_AFTER_S", 0.1)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert run(tmp_path, ONCE.format(command="sleep, '0.6'"), "--once") == 0
    told = capsys.readouterr().err
    # The other check ends sooner or later on a busy machine.
    assert re.match(r"\rwaiting for a(, b)?: 0 s\x1b\[K", told)
    assert told.endswith("\r\x1b[K")


def test_its_help_has_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["--help"])
    told = capsys.readouterr().out.partition("exit codes:\n")[2]
    assert ["0", "1", "2", "130", "143"] == [line.split()[0] for line in told.splitlines()]


@pytest.mark.parametrize("name", ["a", "cni"], ids=["a check of the settings", "a kind"])
def test_explain(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert run(tmp_path, ONCE.format(command="'true'"), "--explain", name) == 0
    assert capsys.readouterr().out.startswith(f"{name}")


@pytest.mark.parametrize(
    ("text", "arguments", "expected"),
    [
        pytest.param(
            POD, ["--explain", "x"], f"there is no check x, allowed: cni, {', '.join(KINDS)}", id="no such check"
        ),
        pytest.param(
            "mode: kubelet\nkubelet: {nodeName: n, podCIDR: 127.20.1.0/24, rootDir: /run/x}\n",
            ["--once"],
            "mode kubelet has no checks, allowed: with mode: pod or node",
            id="a mode without checks",
        ),
        pytest.param(
            "mode: node\nnode: {name: n, server: 'https://192.0.2.1:6443'}\n",
            ["--once"],
            "mode node has no checks, allowed: with checks, or a profile, in the file",
            id="a mode that may have some",
        ),
    ],
)
def test_what_cannot_be_shown_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, arguments: list[str], expected: str
) -> None:
    assert run(tmp_path, text, *arguments) == 2
    error = capsys.readouterr().err
    assert expected in error
    assert error.count("\n") == 1
