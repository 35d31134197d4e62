"""What a machine lacks is named with the remedy, before anything is built."""

import pytest

from tools.kit import commands
from tools.testbed.shared import binaries, obstacles


@pytest.fixture(autouse=True)
def empty_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "not" / "made" / "yet"))
    monkeypatch.delenv("READYGATE_KUBE_BIN_DIR", raising=False)


def test_a_folder_with_room_enough_is_no_obstacle(tmp_path):
    assert obstacles.too_little(tmp_path, 0.0, "TMPDIR") == ""


def test_a_folder_without_room_is_named_with_the_variable_that_names_another(tmp_path):
    told = obstacles.too_little(tmp_path, 1e9, "TMPDIR")
    assert told.startswith(f"{tmp_path} has ")
    assert "1e+09 are needed: make room or name another place by TMPDIR" in told


def test_a_first_build_needs_room_in_the_cache_folder_also_when_it_is_not_there_yet(monkeypatch, tmp_path):
    monkeypatch.setattr(binaries, "FIRST_BUILD_GIB", 1e9)
    (told,) = obstacles.disk_space()
    assert told.startswith(f"{tmp_path}/not/made/yet/readygate has ")
    assert told.endswith("by XDG_CACHE_HOME")


def test_ready_made_binaries_need_no_room_for_a_build(monkeypatch, tmp_path):
    monkeypatch.setattr(binaries, "FIRST_BUILD_GIB", 1e9)
    monkeypatch.setenv("READYGATE_KUBE_BIN_DIR", str(tmp_path))
    assert obstacles.disk_space() == []


def test_whoever_is_not_root_is_told_so(monkeypatch):
    monkeypatch.setattr(obstacles.os, "geteuid", lambda: 1000)
    assert ["ring 3 needs root, it boots systemd hosts: sudo make test"] == obstacles.of_hosts()


@pytest.mark.parametrize(
    ("log", "words"),
    [
        pytest.param(
            "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError(... Failed to establish "
            "a new connection: [Errno -3] Temporary failure in name resolution')\nERROR: No matching distribution",
            "a download failed: check the network, or the proxy",
            id="pip without a network",
        ),
        pytest.param(
            "go: k8s.io/api@v0.36.3: dial tcp: lookup proxy.example: no such host",
            "a download failed: check the network, or the proxy",
            id="go without a network",
        ),
        pytest.param(
            "write $WORK/b001/_pkg_.a: no space left on device",
            "no space left on device",
            id="a full disk",
        ),
        pytest.param("a\nb\nc\nd\n", "b / c / d", id="else the last lines"),
    ],
)
def test_why_a_build_failed_is_one_line_with_its_remedy(log, words):
    assert words == commands.cause(log)
