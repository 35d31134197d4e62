"""Where a run has its logs and its data: each run has its own logs, and the last ones are found without its number."""

import os
import shutil
from pathlib import Path

import pytest

from tools.testbed.shared import runs
from tools.testbed.shared.runs import Run


@pytest.fixture(autouse=True)
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("READYGATE_TESTBED_DIR", str(tmp_path / "testbed"))
    monkeypatch.setattr(runs, "LOGS", tmp_path / "logs")
    return tmp_path / "logs"


def begun(*, lasting: bool = False) -> Run:
    run = Run("tests", lasting=lasting)
    run.begin()
    return run


def test_two_runs_of_one_name_do_not_share_their_logs():
    first = begun()
    (first.logs / "etcd.log").write_text("the first one's")
    second = begun()
    assert first.logs != second.logs
    assert (first.logs / "etcd.log").read_text() == "the first one's"


def test_the_logs_of_the_last_run_are_found_under_latest(logs: Path):
    begun().finish()
    last = begun()
    assert last.logs.samefile(logs / "tests" / "latest")


def test_the_logs_outlive_the_run():
    run = begun()
    run.finish()
    assert run.logs.exists()
    assert not run.folder.exists()


def test_whoever_finds_a_lasting_run_finds_its_logs():
    run = begun(lasting=True)
    assert run.logs == Run("tests", lasting=True).logs


def test_a_lasting_run_that_begins_again_has_new_logs():
    first = begun(lasting=True).logs
    second = begun(lasting=True).logs
    assert first != second


def test_old_logs_go_but_never_those_of_a_run_that_is_still_there():
    there, ended = begun(), begun()
    ended.finish()
    for _ in range(10):
        begun().finish()
    assert there.logs.exists()
    assert not ended.logs.exists()


def test_runs_of_one_name_that_begin_at_the_same_time_forget_the_same_logs(monkeypatch: pytest.MonkeyPatch):
    for _ in range(12):
        begun().finish()
    read_text = Path.read_text

    def gone_meanwhile(path: Path, *arguments: object, **options: object) -> str:
        if path.name == "run":
            shutil.rmtree(path.parent)  # by the other one
        return read_text(path, *arguments, **options)

    monkeypatch.setattr(Path, "read_text", gone_meanwhile)
    begun()


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in the place of the machine's memory, which has enough of it."""
    folder = tmp_path / "memory"
    folder.mkdir()
    monkeypatch.setattr(runs, "_MEMORY", folder)
    monkeypatch.setattr(runs, "_MEMORY_BYTES", 0)
    return folder


def test_data_in_memory_go_with_their_run(memory: Path):
    run = begun()
    (run.volatile() / "data").write_text("x")
    assert run.volatile() == run.folder, "it is given once"
    assert 1 == len(list(memory.glob("*/data")))
    run.finish()
    assert [] == list(memory.iterdir())


def test_data_in_memory_of_a_run_whose_folder_is_gone_are_removed_by_the_next(memory: Path):
    killed, there = begun(), begun()
    left, kept = killed.volatile(), there.volatile()
    shutil.rmtree(killed.folder)
    begun()
    assert [kept] == list(memory.iterdir())
    assert not left.exists()


def test_a_folder_in_memory_that_is_just_being_made_is_left_alone(memory: Path):
    new = memory / f"{runs._MEMORY_PREFIX}new"
    new.mkdir()
    begun()
    assert new.exists()
    os.utime(new, (0, 0))
    begun()
    assert not new.exists()


@pytest.mark.parametrize("lacks", ["memory", "the place"])
def test_without_memory_to_spare_data_are_on_disk(memory: Path, monkeypatch: pytest.MonkeyPatch, lacks: str):
    if lacks == "memory":
        monkeypatch.setattr(runs, "_available_bytes", lambda: -1)
    else:
        memory.rmdir()
    run = begun()
    assert run.folder == run.volatile()
