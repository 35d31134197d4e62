"""Where the logs of a run are: every run has its own, and the last one is found without knowing its number."""

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
