"""The machine's limits while sets of hosts are up: raised by the first, put back by the last."""

from pathlib import Path

import pytest

from tools.testbed.hosts.limits import Limits

INSTANCES, WATCHES = "fs/inotify/max_user_instances", "fs/inotify/max_user_watches"
LOW = {INSTANCES: 128, WATCHES: 8192}
RAISED = {INSTANCES: 1024, WATCHES: 262144}


@pytest.fixture
def sysctl(tmp_path) -> Path:
    folder = tmp_path / "sys"
    (folder / "fs" / "inotify").mkdir(parents=True)
    for name, value in LOW.items():
        (folder / name).write_text(f"{value}\n")
    return folder


@pytest.fixture
def runs(tmp_path) -> Path:
    folder = tmp_path / "testbed"
    folder.mkdir()
    return folder


def present(sysctl: Path) -> dict[str, int]:
    return {name: int((sysctl / name).read_text()) for name in LOW}


@pytest.mark.parametrize("first", ["hosts", "second"])
def test_they_stay_raised_until_the_last_set_has_ended(runs, sysctl, first):
    """Each set is a process of its own."""
    last = {"hosts": "second", "second": "hosts"}[first]
    for name in ("hosts", "second"):
        Limits(runs, sysctl).raise_for(name)
    Limits(runs, sysctl).put_back_for(first)
    assert RAISED == present(sysctl)
    Limits(runs, sysctl).put_back_for(last)
    assert LOW == present(sysctl)
    assert [] == list(runs.iterdir())


def test_of_one_that_was_ended_while_it_wrote_them_down_nothing_is_left(runs, sysctl, monkeypatch):
    def ended(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", ended)
        with pytest.raises(KeyboardInterrupt):
            Limits(runs, sysctl).raise_for("hosts")
    assert 1 == len(list(runs.iterdir()))
    Limits(runs, sysctl).put_back_for("hosts")
    assert (LOW, []) == (present(sysctl), list(runs.iterdir()))


def test_what_a_crashed_run_has_raised_the_next_one_of_its_name_puts_back(runs, sysctl):
    Limits(runs, sysctl).raise_for("hosts")  # and is killed
    Limits(runs, sysctl).put_back_for("hosts")  # before each start
    Limits(runs, sysctl).raise_for("hosts")
    Limits(runs, sysctl).put_back_for("hosts")
    assert LOW == present(sysctl)


def test_a_limit_that_is_high_already_and_one_that_somebody_else_has_set_are_let_be(runs, sysctl):
    (sysctl / WATCHES).write_text("1000000")
    Limits(runs, sysctl).raise_for("hosts")
    (sysctl / INSTANCES).write_text("4096")
    Limits(runs, sysctl).put_back_for("hosts")
    assert {INSTANCES: 4096, WATCHES: 1000000} == present(sysctl)


def test_a_set_that_ends_without_having_started_changes_nothing(runs, sysctl):
    Limits(runs, sysctl).raise_for("hosts")
    Limits(runs, sysctl).put_back_for("second")
    assert RAISED == present(sysctl)


def test_a_file_that_was_cut_is_as_none(runs, sysctl):
    (runs / "limits.json").write_text('{"before": {')
    Limits(runs, sysctl).raise_for("hosts")
    Limits(runs, sysctl).put_back_for("hosts")
    assert LOW == present(sysctl)
