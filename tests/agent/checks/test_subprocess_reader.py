"""A look at files in a child process: what comes back, and what does not."""

import subprocess
import time
from pathlib import Path

import pytest

from agent.checks import file_contents, subprocess_reader
from agent.checks.file_contents import names_in, owners_in, read_files
from agent.checks.state import CheckState, Finding
from agent.checks.subprocess_reader import Elsewhere, NoAnswerError, Patience
from agent.processes.single import python_command
from tools.kit.clock import Clock

PATIENT_S = 60.0


def test_what_it_says_comes_back(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    assert ["a"] == Elsewhere(names_in, str(tmp_path), where="x")(PATIENT_S)


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("import agent.checks.file_contents", id="at files, names, owners"),
        pytest.param(
            "import os; from agent.checks.executables import looked;"
            "looked('auto', os.path.dirname(sys.argv[1]), ('/',), None, False)",
            id="at networks, written in JSON",
        ),
    ],
)
def test_a_look_imports_little_for_it_pays_for_it_each_time(script: str, tmp_path: Path) -> None:
    """Each of these costs a new process about as much as its own start."""
    network = tmp_path / "10-net.conflist"
    network.write_text('{"name": "n", "plugins": [{"type": "bridge", "mtu": 1500, "ipMasq": true}]}\n')
    script = f"import sys; sys.path.insert(0, {str(subprocess_reader.ROOT)!r}); {script}; print(*sys.modules)"
    done = subprocess.run(python_command(script, str(network)), capture_output=True, text=True, check=True)
    costly = {"asyncio", "collections", "dataclasses", "enum", "json", "msgspec", "pathlib", "re", "typing"}
    assert set() == costly & set(done.stdout.split())


def test_its_error_is_ours(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.touch()
    with pytest.raises(NotADirectoryError) as raised:
        Elsewhere(names_in, str(file), where="x")(PATIENT_S)
    assert (str(file), "Not a directory") == (raised.value.filename, raised.value.strerror)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        pytest.param("raise ValueError('so')", "ValueError: so", id="it breaks"),
        pytest.param("raise SystemExit(3)", "the child process ended with 3", id="it ends without a word"),
        pytest.param(
            "import marshal, sys\nsys.stdout.buffer.write(marshal.dumps({'said': ['a', 'b']})[:-4])",
            "the child process ended with 0",
            id="its answer is cut",
        ),
        pytest.param("print('no answer at all')", "the child process ended with 0", id="its answer is none"),
        pytest.param(
            "import marshal, sys\nsys.stdout.buffer.write(marshal.dumps(7))",
            "the child process ended with 0",
            id="its answer is another thing",
        ),
    ],
)
def test_without_an_answer(script: str, expected: str, monkeypatch) -> None:
    assert Finding(CheckState.UNKNOWN, f"cannot look at x: {expected}") == without_answer(
        script, PATIENT_S, monkeypatch
    )


def test_one_that_hangs_is_ended(monkeypatch) -> None:
    assert Finding(CheckState.HUNG, "x: no end after 0.5 s") == without_answer(
        "import time\ntime.sleep(60)", 0.5, monkeypatch
    )


def without_answer(script: str, within_s: float, monkeypatch: pytest.MonkeyPatch) -> Finding:
    monkeypatch.setattr(subprocess_reader, "SCRIPT", script)
    with pytest.raises(NoAnswerError) as raised:
        Elsewhere(names_in, "/", where="x")(within_s)
    return raised.value.finding


def test_all_of_a_run_has_one_deadline() -> None:
    clock = Clock(5.0)
    patience = Patience(2.0, clock)
    left = [patience.left_s()]
    for _ in range(2):
        clock.time += 1.5
        left.append(patience.left_s())
    assert [2.0, 0.5, 0.0] == left


def test_files_and_what_could_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xff\n")
    (tmp_path / "b").mkdir()
    expected = [["a", "\xff\n", "", ""], ["b", "", "", "b is a folder"], ["none", "", "", ""]]
    assert expected == read_files(str(tmp_path), ["a", "b", "none"])
    expected = [["b/c/d", "", f"cannot read {tmp_path / 'a/c'}: Not a directory", ""]]
    assert expected[0][2] == read_files(str(tmp_path), ["a/c"])[0][2]


def test_owners(tmp_path: Path) -> None:
    (tmp_path / "192.0.2.1").write_text("sandbox\r\neth0")
    (tmp_path / "lock").touch()
    (tmp_path / "link").symlink_to("192.0.2.1")
    [[name, changed, owner]] = owners_in(str(tmp_path))
    assert ("192.0.2.1", "sandbox") == (name, owner)
    assert abs(time.time() - changed) < PATIENT_S
    assert [] == owners_in(str(tmp_path / "none"))


def test_what_is_called_there_needs_the_standard_library_alone() -> None:
    done = Elsewhere(file_contents.names_in, "/proc/self/task", where="x")
    assert done(PATIENT_S), "a thread, in a process without our packages"
