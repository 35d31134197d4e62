"""The kernel tells of what happens in folders, and a check that waits for it looks at once."""

import json
import select
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from agent import settings
from agent.checks.catalogue import check_spec
from agent.checks.engine import CheckEngine
from agent.checks.state import CheckState
from agent.kernel.inotify import FolderWatch
from tools.kit.waiting import wait_until

NETWORK = {"cniVersion": "1.0.0", "name": "net", "plugins": [{"type": "bridge"}]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "cni" / "net.d"
    made.mkdir(parents=True)
    (made / "10-net.conflist").write_text(json.dumps(NETWORK))
    return made


@pytest.fixture
def changes(folder: Path) -> Iterator[FolderWatch]:
    made = FolderWatch([str(folder)])
    assert made.follow()
    yield made
    made.close()


def is_told(changes: FolderWatch) -> bool:
    descriptor = changes.descriptor()
    assert descriptor is not None
    told = bool(select.select([descriptor], [], [], 0)[0])
    changes.taken()
    assert ([], [], []) == select.select([descriptor], [], [], 0)
    return told


def written(folder: Path) -> None:
    (folder / "20-more.conf").write_text("{}")


def replaced(folder: Path) -> None:
    new = folder.parent / "new"
    new.write_text("{}")
    new.rename(folder / "10-net.conflist")


def removed(folder: Path) -> None:
    (folder / "10-net.conflist").unlink()


def moved_away(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))


def read(folder: Path) -> None:
    (folder / "10-net.conflist").read_text()
    list(folder.iterdir())


@pytest.mark.parametrize(
    ("done", "expected"),
    [
        pytest.param(written, True, id="a file is written"),
        pytest.param(replaced, True, id="one is replaced by a rename"),
        pytest.param(removed, True, id="one is removed"),
        pytest.param(lambda folder: (folder / "10-net.conflist").chmod(0o600), True, id="rights are changed"),
        pytest.param(moved_away, True, id="the folder is moved away"),
        pytest.param(read, False, id="it is only read"),
    ],
)
def test_what_is_told(changes: FolderWatch, folder: Path, done: Callable[[Path], None], expected: bool) -> None:
    done(folder)
    assert expected is is_told(changes)


def test_a_folder_that_came_back_is_followed_and_the_one_that_went_is_not(changes: FolderWatch, folder: Path) -> None:
    moved_away(folder)
    assert is_told(changes)
    assert not changes.follow(), "nothing is there"
    folder.mkdir()
    assert is_told(changes), "by its parent"
    assert changes.follow()
    written(folder.with_name("elsewhere"))
    assert not is_told(changes)
    written(folder)
    assert is_told(changes)


def test_again_and_again_costs_no_descriptor_and_no_watch(changes: FolderWatch, folder: Path) -> None:
    for _ in range(50):
        moved_away(folder)
        changes.taken()
        folder.with_name("elsewhere").rename(folder)
        changes.taken()
        changes.follow()
    watches = Path(f"/proc/self/fdinfo/{changes.descriptor()}").read_text().count("inotify wd:")
    assert watches == 2


def test_without_news_of_the_kernels_the_check_has_its_period(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def inotify_init1(self, _flags: int) -> int:
            return -1

    monkeypatch.setattr("agent.kernel.inotify._library", Full)
    changes = FolderWatch([str(folder)])
    assert (False, None) == (changes.follow(), changes.descriptor())
    changes.taken()
    changes.close()


@pytest.fixture
def binaries(tmp_path: Path) -> Path:
    made = tmp_path / "bin"
    made.mkdir()
    for name in ("bridge", "loopback"):
        (made / name).write_text("#!/bin/sh\n")
        (made / name).chmod(0o755)
    return made


@pytest.mark.parametrize("before", [[], ["empty"]], ids=["in one folder", "in the second of two"])
@pytest.mark.parametrize("failures", [1, 3])
@pytest.mark.parametrize("fault", [removed, moved_away, "no plugin"], ids=["a file", "the folder", "a plugin's binary"])
def test_the_check_of_the_cni_sees_at_once_what_goes(
    folder: Path, binaries: Path, fault: Callable[[Path], None] | str, failures: int, before: list[str]
) -> None:
    """With a period of an hour, whether one failure counts or three of them."""
    others = [binaries.parent / name for name in before]
    for other in others:
        other.mkdir()
    given = {"name": "cni", "cni": {"confDir": str(folder), "binDirs": [*map(str, others), str(binaries)]}}
    spec = check_spec(msgspec.convert({**given, "periodSeconds": 3600, "failureThreshold": failures}, settings.Check))
    engine = CheckEngine([spec])
    engine.start()
    try:
        wait_until(lambda: engine.node_health().healthy)
        if callable(fault):
            fault(folder)
        else:
            (binaries / "bridge").unlink()
        wait_until(lambda: [CheckState.FAILED] == [one.state for one in engine.statuses()])
    finally:
        engine.stop()


def test_closed_twice_it_closes_no_descriptor_that_somebody_else_has_meanwhile(folder: Path) -> None:
    changes = FolderWatch([str(folder)])
    assert changes.follow()
    number = changes.descriptor()
    changes.close()
    assert changes.descriptor() is None
    with (folder / "10-net.conflist").open() as other:
        assert other.fileno() == number
        changes.close()
        assert other.read()
