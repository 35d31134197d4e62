"""The sockets in the folder (row PM2)."""

import os
import socket
from pathlib import Path

import pytest

from agent.kubelet.plugins import sockets
from agent.kubelet.plugins.sockets import sockets


def listen(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


def test_pm2_sockets_are_found_in_folders_too_and_what_begins_with_a_dot_is_not(tmp_path: Path) -> None:
    for name in ("b.sock", "deep/er/a.sock", ".hidden.sock", ".hidden/c.sock"):
        listen(tmp_path / name)
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "b.sock")
    (tmp_path / "loop").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    assert ["b.sock", "deep/er/a.sock"] == [str(Path(path).relative_to(tmp_path)) for path in sockets(tmp_path)]


def test_pm4_a_socket_that_was_made_again_is_another_one(tmp_path: Path) -> None:
    path = tmp_path / "a.sock"
    listen(path)
    before = sockets(tmp_path)
    assert before == sockets(tmp_path)
    path.unlink()
    listen(path)
    assert before != sockets(tmp_path)


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        sockets(tmp_path / "none")


def test_pm18_not_more_than_so_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "MOST", 3)
    for n in range(5):
        listen(tmp_path / f"{n}.sock")
    assert 3 == len(sockets(tmp_path))
