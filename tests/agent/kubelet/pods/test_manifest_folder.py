"""Rows SP10 to SP16: which static pods there are by the files of a folder."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.kubelet.pods.manifest_folder import GONE_S, Folder
from agent.kubelet.pods.manifest_watch import ManifestFiles
from agent.wire.manifest import MOST_BYTES
from agent.wire.model import Pod
from tests.agent.wire.manifests import as_bytes, manifest
from tools.kit.clock import Clock
from tools.kit.waiting import wait_until

A, B = as_bytes(manifest("a")), as_bytes(manifest("b"))
NEWER = as_bytes(manifest("a", hostNetwork=True))


def names(folder: Folder) -> list[str]:
    return sorted(one.pod.name for one in folder.pods())


@pytest.fixture
def folder() -> Folder:
    folder = Folder("n")
    folder.scanned({"/a": A, "/b": B}, "t", 0.0)
    return folder


def test_sp10_a_pod_for_each_file(folder: Folder) -> None:
    assert (["a-n", "b-n"], True) == (names(folder), folder.known)
    folder.scanned({"/b": B}, "t", 1.0)
    assert ["b-n"] == names(folder)


def test_sp10_what_has_not_changed_is_the_same_pod_as_before(folder: Folder) -> None:
    before = folder.pods()
    folder.scanned({"/a": A, "/b": B}, "later", 1.0)
    assert before == folder.pods()


def test_sp11_a_broken_file_keeps_its_last_good_version(folder: Folder) -> None:  # CM55, in either profile
    before = folder.pods()
    for number, content in enumerate((b"kind: [", "Permission denied", b"", b"kind: [")):
        folder.scanned({"/a": content, "/b": B}, "t", 100.0 * number)
        assert before == folder.pods()
        assert ["/a"] == list(folder.errors())
    folder.scanned({"/a": NEWER, "/b": B}, "t", 900.0)
    assert ({}, True) == (folder.errors(), before[0].pod.uid != folder.pods()[0].pod.uid)


def test_sp11_a_file_that_was_never_good_has_no_pod() -> None:
    folder = Folder("n")
    folder.scanned({"/a": b"kind: [", "/b": B}, "t", 0.0)
    assert ["b-n"] == names(folder)


def test_sp11_a_broken_file_that_goes_takes_its_pod_along(folder: Folder) -> None:
    folder.scanned({"/a": b"kind: [", "/b": B}, "t", 1.0)
    folder.scanned({"/b": B}, "t", 2.0)
    assert ["b-n"] == names(folder)


def test_sp12_a_folder_that_vanishes_ends_its_pods_when_it_has_been_gone_for_a_scan(folder: Folder) -> None:
    folder.scanned(None, "t", 100.0)
    folder.scanned(None, "t", 100.0 + GONE_S - 1)
    assert ["a-n", "b-n"] == names(folder)
    folder.scanned(None, "t", 100.0 + GONE_S)
    assert ([], True) == (names(folder), folder.known)


def test_sp12_a_folder_that_is_back_has_ended_nothing(folder: Folder) -> None:
    before = folder.pods()
    folder.scanned(None, "t", 100.0)
    folder.scanned({"/a": A, "/b": B}, "t", 110.0)
    folder.scanned(None, "t", 100.0 + GONE_S)
    assert before == folder.pods()


def test_sp12_an_empty_folder_ends_its_pods_at_once(folder: Folder) -> None:
    folder.scanned({}, "t", 1.0)
    assert [] == names(folder)


def test_sp13_at_the_start_a_folder_that_is_not_there_says_nothing_for_a_scan() -> None:
    """What runs in a container runtime from before shall not end because a mount comes late."""
    folder = Folder("n")
    folder.scanned(None, "t", 100.0)
    assert not folder.known
    folder.scanned(None, "t", 100.0 + GONE_S)
    assert folder.known


def test_sp14_of_two_files_with_one_pod_name_the_last_counts(folder: Folder) -> None:
    """A backup beside a manifest: kube.yaml.bak comes after kube.yaml."""
    folder.scanned({"/a.bak": NEWER, "/a": A}, "t", 1.0)
    (one,) = folder.pods()
    assert one.pod.host_network
    assert {"/a": "has the pod default/a-n, as /a.bak has, which counts"} == folder.errors()
    folder.scanned({"/a": A}, "t", 2.0)
    assert ({}, False) == (folder.errors(), folder.pods()[0].pod.host_network)


# On a real file system.


class Table:
    def __init__(self) -> None:
        self.names: list[str] = []

    def replace_static(self, pods: list[Pod]) -> None:
        self.names = sorted(pod.name for pod in pods)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder = tmp_path / "manifests"
    folder.mkdir()
    return folder


@pytest.fixture
def table() -> Table:
    return Table()


def scanned(path: Path, table: Table) -> ManifestFiles:
    files = ManifestFiles(path, "n", table, wall=Clock(0.0), monotonic=Clock(0.0))
    files.scan()
    return files


def test_sp15_which_files_are_read(path: Path, table: Table) -> None:
    (path / "a.yaml").write_bytes(A)
    (path / ".hidden").write_bytes(B)
    (path / "folder").mkdir()
    os.mkfifo(path / "fifo")
    (path / "dangling").symlink_to("nowhere")
    (path / "huge").write_bytes(b" " * (MOST_BYTES + 1))
    (path / "..data").mkdir()
    (path / "..data" / "c").write_bytes(as_bytes(manifest("c")))
    (path / "c").symlink_to("..data/c")  # as a mounted ConfigMap has its files
    files = scanned(path, table)
    assert ["a-n", "c-n"] == table.names
    assert {"folder", "fifo", "dangling", "huge"} == {Path(name).name for name in files.errors}


def test_sp15_the_path_may_be_one_file(path: Path, table: Table) -> None:
    (path / "a.yaml").write_bytes(A)
    scanned(path / "a.yaml", table)
    assert ["a-n"] == table.names


def test_sp15_a_broken_file_is_reported_once(path: Path, table: Table, caplog: pytest.LogCaptureFixture) -> None:
    (path / "a.yaml").write_bytes(b"kind: [")
    files = scanned(path, table)
    files.scan()
    (path / "a.yaml").write_bytes(A)
    files.scan()
    texts = [record.getMessage() for record in caplog.records]
    assert [f for f in texts if "not used" in f] == ["manifest of a static pod not used, the last good version counts"]


def test_sp15_a_folder_that_cannot_be_read_changes_nothing(path: Path, table: Table, monkeypatch) -> None:
    (path / "a.yaml").write_bytes(A)
    files = scanned(path, table)

    def denied(_path: Path) -> list[str]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "listdir", denied)
    files.scan()
    assert (["a-n"], True) == (table.names, files.synced)


@pytest.fixture
def running(path: Path, table: Table) -> Iterator[ManifestFiles]:
    files = ManifestFiles(path, "n", table)
    files.start()
    yield files
    files.stop()
    assert "static-pods" not in {thread.name for thread in threading.enumerate()}


@pytest.mark.usefixtures("running")
def test_sp16_the_kernel_reports_changes(path: Path, table: Table) -> None:
    (path / "a.yaml").write_bytes(A)
    wait_until(lambda: table.names == ["a-n"], "the file is read", timeout_s=15)
    (path / "b.yaml").write_bytes(B)
    wait_until(lambda: table.names == ["a-n", "b-n"], "so is the next one", timeout_s=15)
    (path / "a.yaml").unlink()
    wait_until(lambda: table.names == ["b-n"], "the first one is gone", timeout_s=15)


@pytest.mark.usefixtures("running")
def test_sp16_of_a_folder_that_comes_back_too(path: Path, table: Table) -> None:
    path.rename(path.with_name("away"))
    other = path.with_name("other")
    other.mkdir()
    (other / "a.yaml").write_bytes(A)
    other.rename(path)
    wait_until(lambda: table.names == ["a-n"], "the new folder is read", timeout_s=15)
    (path / "b.yaml").write_bytes(B)
    wait_until(lambda: table.names == ["a-n", "b-n"], "its changes are reported", timeout_s=15)
