"""tools.kit.cache has a folder completely or not at all, and forgets unused folders."""

import os
import shutil
import time
from pathlib import Path

import pytest

from tools.kit.cache import KEY_LENGTH, UNUSED_S, cached, forget_older
from tools.kit.commands import BuildError


def test_the_folder_of_a_failed_build_is_not_used(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def fails(folder):
        (folder / "half").touch()
        raise BuildError("cause")

    with pytest.raises(BuildError):
        cached("thing", "k", fails, print)
    whole = cached("thing", "k", lambda folder: (folder / "whole").touch(), print)
    assert [path.name for path in whole.iterdir()] == ["whole"]


def test_the_next_build_removes_what_a_killed_build_left(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for kind in ("thing", "thing-other"):
        (tmp_path / "readygate" / f"{kind}-{'0' * KEY_LENGTH}.part").mkdir(parents=True)
    cached("thing", "1" * KEY_LENGTH, lambda folder: (folder / "whole").touch(), print)
    found = [path.name for path in (tmp_path / "readygate").iterdir() if path.is_dir()]
    assert sorted(found) == [f"thing-{'1' * KEY_LENGTH}", f"thing-other-{'0' * KEY_LENGTH}.part"]


def made(kind: str, *ages_s: float) -> list[str]:
    """Creates cached folders that were last used `ages_s` ago. Returns their names."""
    names = []
    for number, age_s in enumerate(ages_s):
        folder = cached(kind, f"{number:0{KEY_LENGTH}x}", lambda folder: (folder / "whole").touch(), print)
        os.utime(folder, (time.time() - age_s,) * 2)
        names.append(folder.name)
    return names


@pytest.mark.parametrize(
    ("ages_s", "stay"),
    [
        pytest.param([4 * UNUSED_S, 3 * UNUSED_S, 2 * UNUSED_S], [1, 2], id="the two that were used last"),
        pytest.param([4 * UNUSED_S, 1.0, 2.0, 3.0], [1, 2, 3], id="one that another run may read from just now, too"),
        pytest.param([4 * UNUSED_S], [0], id="all, where there are no more than that"),
    ],
)
def test_forget_older_keeps_the_last_used_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ages_s: list[float], stay: list[int]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    names = made("image", *ages_s)
    others = made("image-layer", 9 * UNUSED_S)
    forget_older("image", kept=2)
    left = {path.name for path in (tmp_path / "readygate").iterdir() if path.is_dir()}
    assert {names[number] for number in stay} | set(others) == left


def test_a_folder_that_is_used_again_counts_as_recent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    names = made("image", *[9 * UNUSED_S] * 3)
    again = cached("image", "0" * KEY_LENGTH, pytest.fail, print)
    forget_older("image", kept=1)
    assert [names[0]] == [path.name for path in (tmp_path / "readygate").iterdir() if path.is_dir()] == [again.name]


def test_a_folder_that_another_run_removes_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs that waited for the same image both call forget_older(); one of them failed."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    names = made("image", *[9 * UNUSED_S] * 3)
    stat = Path.stat

    def gone(path: Path, **more: bool) -> os.stat_result:
        if path.name == names[0]:
            raise FileNotFoundError(path)
        return stat(path, **more)

    monkeypatch.setattr(Path, "stat", gone)
    forget_older("image", kept=2)


def test_a_killed_removal_leaves_no_incomplete_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    names = made("image", *[9 * UNUSED_S] * 2)
    with monkeypatch.context() as killed:
        killed.setattr(shutil, "rmtree", lambda *_, **__: None)
        forget_older("image", kept=1)
    assert not (tmp_path / "readygate" / names[0]).exists()
    forget_older("image", kept=1)
    assert [names[1]] == [path.name for path in (tmp_path / "readygate").iterdir() if path.is_dir()]
