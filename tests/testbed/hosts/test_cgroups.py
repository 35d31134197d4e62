"""A set of hosts gets what it needs of the processors, by either version of control groups."""

import pytest

from tests.testbed.hosts import cgroups


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
