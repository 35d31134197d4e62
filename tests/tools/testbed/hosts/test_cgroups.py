"""A set of hosts gets what it needs of the processors, by either version of control groups."""

import time

import pytest

from tools.testbed.hosts import cgroups


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("cpu.shares", 8, id="v1, of 1024"),
        pytest.param("cpu.weight", 8, id="v2, of 100"),
    ],
)
def test_the_group_of_a_set_weighs_as_eight(tmp_path, monkeypatch, name, expected):
    usual = {"cpu.shares": 1024, "cpu.weight": 100}[name]
    set_of_hosts = tmp_path / "readygate-1"
    host = set_of_hosts / "worker-1"
    host.mkdir(parents=True)
    for folder in (set_of_hosts, host):
        (folder / name).write_text(str(usual))
    (tmp_path / "cgroup.controllers").touch()
    monkeypatch.setattr(cgroups, "_ROOT", tmp_path)
    cgroups.make("readygate-1/worker-1", tmp_path / "bind")
    assert (expected * usual, usual) == tuple(int((folder / name).read_text()) for folder in (set_of_hosts, host))


def test_a_group_that_the_kernel_lets_go_only_later_is_removed_then(tmp_path, monkeypatch):
    group = tmp_path / "readygate-1" / "worker-1"
    group.mkdir(parents=True)
    (dying := group / "one that was killed").touch()  # rmdir fails as long as it is there
    waits = []

    def wait(seconds):
        waits.append(seconds)
        if len(waits) == 3:
            dying.unlink()

    monkeypatch.setattr(time, "sleep", wait)
    cgroups.end([group])
    assert (3, False) == (len(waits), group.parent.exists())
