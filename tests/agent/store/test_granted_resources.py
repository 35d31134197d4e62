"""What pods were granted outlives the agent: a file that is whole, or ignored with one line."""

import errno
import logging
import zlib
from pathlib import Path

import msgspec
import pytest

from agent.store.granted_resources import GrantedResources

ONE = (("a", "requests", "cpu", "1"), ("a", "limits", "memory", "1Gi"))
TWO = (("b", "requests", "cpu", "2"),)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "root" / "granted_resources.json"


def kept(path: Path, *uids: str) -> list[object]:
    """As the next agent finds it."""
    file = GrantedResources(path)
    return [file.of(uid) for uid in uids]


def test_what_was_granted_is_there_after_a_restart_until_the_pod_is_gone(path: Path) -> None:
    file = GrantedResources(path)
    file.grant("one", ONE)
    file.grant("two", TWO)
    assert [ONE, TWO, None] == kept(path, "one", "two", "three")
    file.keep({"two", "three"})
    assert [None, TWO] == kept(path, "one", "two")
    assert ["granted_resources.json"] == [left.name for left in path.parent.iterdir()]


def test_a_pod_that_asks_for_nothing_was_granted_nothing(path: Path) -> None:
    GrantedResources(path).grant("one", ())
    assert [()] == kept(path, "one")


def test_it_is_not_written_where_nothing_has_changed(path: Path) -> None:
    file = GrantedResources(path)
    file.keep({"one"})
    assert not path.exists()
    file.grant("one", ONE)
    written = path.stat().st_ino
    file.grant("one", ONE)
    file.keep({"one", "two"})
    assert written == path.stat().st_ino


def document(version: object = 1, data: str = '{"one":[]}', checksum: int | None = None) -> bytes:
    found = zlib.crc32(data.encode()) if checksum is None else checksum
    return msgspec.json.encode({"version": version, "checksum": found, "data": data})


@pytest.mark.parametrize(
    ("found", "why"),
    [
        pytest.param(b"", "does not parse: Input data was truncated", id="empty, as after a crash of the file system"),
        pytest.param(document()[:-4], "does not parse: Input data was truncated", id="half of it"),
        pytest.param(b"\xff\xfe", "does not parse: ", id="no JSON"),
        pytest.param(document(version=2), "is of version 2, ours is 1", id="of a newer agent"),
        pytest.param(b'{"data":"x","checksum":1}', "does not parse: ", id="a kubelet's own"),
        pytest.param(document(checksum=1), "is damaged: its checksum is another", id="a bit has changed"),
        pytest.param(document(data='{"one":[["a"]]}'), "does not parse: ", id="of another form"),
    ],
)
def test_what_cannot_be_used_is_ignored_with_one_line(
    path: Path, found: bytes, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    path.parent.mkdir()
    path.write_bytes(found)
    assert [None] == kept(path, "one")
    (line,) = caplog.records
    assert (logging.WARNING, "what pods were granted is not known") == (line.levelno, line.message)
    assert line.error.startswith(why)
    GrantedResources(path).grant("one", ONE)
    assert [ONE] == kept(path, "one")


def test_a_folder_in_its_place_is_told_once_and_costs_the_memory_only(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path.mkdir(parents=True)
    file = GrantedResources(path)
    file.grant("one", ONE)
    file.keep({"one"})
    assert ONE == file.of("one")
    said = ["what pods were granted is not known", "what pods were granted is not kept"]
    assert said == [line.message for line in caplog.records]
    path.rmdir()
    file.keep({"one"})
    assert [ONE] == kept(path, "one")


def test_a_full_disk_leaves_the_file_before(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = GrantedResources(path)
    file.grant("one", ONE)

    def full(_fd: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr("os.fsync", full)
        file.grant("two", TWO)
    assert [ONE, None] == kept(path, "one", "two")
    assert [path.name] == [left.name for left in path.parent.iterdir()]
    file.keep({"one", "two"})
    assert [ONE, TWO] == kept(path, "one", "two")
