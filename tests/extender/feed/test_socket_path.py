"""Whose the path of the feed is: it is taken over from the dead and from a sibling, and from nobody else."""

import os
import socket
import stat
import subprocess
import sys

import pytest

from extender.feed import socket_path
from extender.feed.socket_path import SocketPath
from extender.feed.wire import FeedError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "feed" / "socket"


@pytest.fixture
def claimed(path):
    found = SocketPath(path)
    found.claim()
    yield found
    found.close()


@pytest.mark.usefixtures("claimed")
def test_the_folder_and_the_socket_are_the_owners_alone(path):
    assert (0o700, 0o600) == (stat.S_IMODE(path.parent.stat().st_mode), stat.S_IMODE(path.stat().st_mode))
    assert socket_path.served_by(path) == os.getpid()
    assert [path] == list(path.parent.iterdir())


def test_the_path_may_be_longer_than_the_kernel_takes(tmp_path):
    path = tmp_path.joinpath(*["folder-with-a-long-name"] * 6) / "socket"
    path.parent.parent.mkdir(parents=True)
    claimed = SocketPath(path)
    claimed.claim()
    assert (len(str(path)) > 107, socket_path.served_by(path)) == (True, os.getpid())
    claimed.close()


def test_what_a_dead_process_left_is_replaced(path):
    SocketPath(path).claim().close()
    assert socket_path.served_by(path) is None
    second = SocketPath(path)
    second.claim()
    assert socket_path.served_by(path) == os.getpid()
    second.close()


def test_a_sibling_is_replaced_and_the_path_leads_somewhere_all_the_time(claimed, path):
    """As the worker of a reload does with the one before it."""
    second = SocketPath(path)
    second.claim()
    assert (claimed.ours(), second.ours()) == (True, True)  # one has it, the other knows it in good hands
    claimed.close()
    assert (second.ours(), socket_path.served_by(path)) == (True, os.getpid())
    second.close()
    assert not claimed.ours()


SERVE = """
import socket, sys, time
s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(); print("there", flush=True); sys.stdin.read()
"""


def test_one_that_a_stranger_serves_is_left_alone(path):
    path.parent.mkdir(mode=0o700)
    shell = [
        "sh",
        "-c",
        '"$0" -c "$1" "$2"; exit 0',
        sys.executable,
        SERVE,
        str(path),
    ]  # no child of ours: a grandchild
    with subprocess.Popen(shell, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as stranger:
        stranger.stdout.readline()
        before = path.stat().st_ino
        with pytest.raises(FeedError, match=r"is served by process .*; stop that one or choose another path"):
            SocketPath(path).claim()
        assert path.stat().st_ino == before
        stranger.stdin.close()


def test_a_file_that_is_no_socket_is_left_alone(path):
    path.parent.mkdir(mode=0o700)
    path.write_text("precious")
    with pytest.raises(FeedError, match="is no socket; remove it or choose another path"):
        SocketPath(path).claim()
    assert path.read_text() == "precious"


def test_a_link_to_somebody_elses_file_is_left_alone(path, tmp_path):
    path.parent.mkdir(mode=0o700)
    path.symlink_to(tmp_path / "other")
    with pytest.raises(FeedError, match="is no socket"):
        SocketPath(path).claim()


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        pytest.param(lambda folder: (folder.mkdir(), folder.chmod(0o777)), "others may write to", id="open to all"),
        pytest.param(lambda folder: folder.write_text(""), "make it, or choose another folder", id="no folder"),
        pytest.param(lambda folder: (folder.mkdir(), folder.chmod(0o1777)), "others may write to", id="as /tmp"),
    ],
)
def test_a_folder_that_cannot_be_trusted(path, make, expected):
    make(path.parent)
    with pytest.raises(FeedError, match=expected):
        SocketPath(path).claim()


def test_the_kernel_tells_who_has_connected(claimed, path):
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
        connection, _ = claimed.listener.accept()
        with connection:
            assert socket_path.peer(connection) == (os.getpid(), os.geteuid())


@pytest.mark.parametrize(
    ("own", "uid", "expected"),
    [
        pytest.param(1000, 1000, True, id="our own user"),
        pytest.param(1000, 0, True, id="root"),
        pytest.param(1000, 1001, False, id="another user"),
        pytest.param(0, 1000, False, id="a user, and we are root"),
    ],
)
def test_who_is_trusted(monkeypatch, own, uid, expected):
    monkeypatch.setattr("os.geteuid", lambda: own)
    assert socket_path.trusted(uid) == expected
