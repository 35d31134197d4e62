"""The frame of the faults: what is said, what is run, what is taken back."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tools.faults.__main__ import main, run
from tools.faults.fault import Fault, alone
from tools.faults.registry import FAULTS
from tools.kit.endings import ENDINGS
from tools.kit.waiting import wait_until
from tools.testbed.hosts.hosts import Hosts

FAULT = Fault("disk", "filesystem", "breaks", ("one", "two"), ("three",), clear=("four",))


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        pytest.param({"heal": False}, ["one", "two"], id="injected"),
        pytest.param({"heal": True}, ["three"], id="healed"),
        pytest.param({"heal": True, "clear": True}, ["three", "four"], id="cleared"),
    ],
)
def test_each_command_is_said_and_run(
    capsys: pytest.CaptureFixture[str], how: dict[str, bool], expected: list[str]
) -> None:
    lines: list[str] = []
    run(FAULT, lines.append, **how, host="worker-1")
    assert expected == lines
    assert "".join(f"worker-1# {line}\n" for line in expected) == capsys.readouterr().out


def test_half_a_fault_is_taken_back() -> None:
    lines: list[str] = []

    def shell(line: str) -> None:
        lines.append(line)
        if line == "two":
            raise OSError(line)

    with pytest.raises(OSError, match="two"):
        run(FAULT, shell, heal=False)
    assert lines == ["one", "two", "three"]


def test_what_heals_comes_after_a_command_that_runs_on_when_who_has_sent_it_is_gone(tmp_path: Path) -> None:
    """As on a host when ssh is ended: what it has begun there goes on."""
    broken, runs = tmp_path / "broken", []

    def shell(line: str) -> None:
        process = subprocess.Popen(["sh", "-c", alone(line)], start_new_session=True)
        runs.append(process)
        if "touch" in line:
            wait_until((tmp_path / "begun").exists, "it has begun", timeout_s=20)
            raise KeyboardInterrupt
        assert process.wait(20) == 0

    touch = f"sleep 60 > /dev/null 2>&1 & echo $! > {tmp_path}/pid; touch {tmp_path}/begun; sleep 1; touch {broken}"
    fault = Fault("it", "filesystem", "breaks", (touch,), (f"rm -f {broken}; kill $(cat {tmp_path}/pid)",))
    with pytest.raises(KeyboardInterrupt):
        run(fault, shell, heal=False)
    assert ([0, 0], False) == ([process.wait(20) for process in runs], broken.exists())


def test_without_words_it_is_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert len(FAULTS) == len(capsys.readouterr().out.splitlines())


def test_for_a_program_the_list_is_json_with_what_is_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-o", "json"]) == 0
    told = json.loads(capsys.readouterr().out)["faults"]
    assert list(FAULTS) == [one["name"] for one in told]
    assert all(one["inject"] and one["heal"] and isinstance(one["settings"], dict) for one in told)


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda end: end.name)
def test_whoever_ends_it_half_way_leaves_no_fault(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, end: signal.Signals
) -> None:
    """Nor whoever does so again while it is taken back."""
    lines: list[str] = []

    class OneHost:
        names = ("worker-1",)

        def ssh(self, _host: str, line: str) -> None:
            lines.append(line)
            if line in (alone("two"), alone("three")):
                os.kill(os.getpid(), end)

    monkeypatch.setitem(FAULTS, FAULT.name, FAULT)
    monkeypatch.setattr(Hosts, "found", OneHost)
    # Whoever runs this in the background has Ctrl-C ignored, which would stay so.
    before = {number: signal.signal(number, signal.SIG_DFL) for number in ENDINGS}
    try:
        code = main([FAULT.name, "worker-1"])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert (130, [alone(line) for line in ("one", "two", "three")]) == (code, lines)
    assert "worker-1# three" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "code", "told"),
    [
        pytest.param(["disk-full"], 2, "a HOST is missing", id="without a host"),
        pytest.param(["disk-ful", "worker-1"], 2, "invalid choice: 'disk-ful'", id="a fault that there is not"),
        pytest.param(["--help"], 0, "exit codes:", id="its exit codes"),
    ],
)
def test_what_is_wrong_is_told(capsys: pytest.CaptureFixture[str], given: list[str], code: int, told: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(given)
    out, err = capsys.readouterr()
    assert (code, True) == (ended.value.code, told in out + err)


@pytest.mark.parametrize("fault", FAULTS.values(), ids=list(FAULTS))
def test_each_line_is_of_a_shell_and_each_fault_can_be_healed(fault: Fault) -> None:
    assert fault.inject
    assert fault.heal
    for line in (*fault.inject, *fault.heal, *fault.clear):
        done = subprocess.run(["sh", "-n", "-c", line], capture_output=True, text=True, check=False)
        assert (0, "") == (done.returncode, done.stderr), line
