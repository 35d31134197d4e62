"""The frame of the faults: what is said, what is run, what is taken back."""

import subprocess

import pytest

from tests.faults.__main__ import main, run
from tests.faults.fault import Fault
from tests.faults.registry import FAULTS

FAULT = Fault("disk", "filesystem", "breaks", ("one", "two"), ("three",))


@pytest.mark.parametrize(("heal", "expected"), [(False, ["one", "two"]), (True, ["three"])], ids=["injected", "healed"])
def test_each_command_is_said_and_run(capsys: pytest.CaptureFixture[str], heal: bool, expected: list[str]) -> None:
    lines: list[str] = []
    run(FAULT, lines.append, heal=heal, host="worker-1")
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


def test_without_words_it_is_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert len(FAULTS) == len(capsys.readouterr().out.splitlines())


@pytest.mark.parametrize("fault", FAULTS.values(), ids=list(FAULTS))
def test_each_line_is_of_a_shell_and_each_fault_can_be_healed(fault: Fault) -> None:
    assert fault.inject
    assert fault.heal
    for line in (*fault.inject, *fault.heal):
        done = subprocess.run(["sh", "-n", "-c", line], capture_output=True, text=True, check=False)
        assert (0, "") == (done.returncode, done.stderr), line
