"""The port, and who has it: root takes it, and is nobody special from then on."""

import errno
import os
import socket

import pytest

from extender.process import foreground
from extender.process.foreground import StartError, become, listen

USER = 69376


@pytest.fixture
def process(monkeypatch):
    """What is done to this process, in order; nothing of it is done."""
    done = []
    monkeypatch.setattr(os, "getresuid", lambda: (0, 0, 0))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    for name in ("setgroups", "setresgid", "setresuid"):
        monkeypatch.setattr(os, name, lambda *values, name=name: done.append((name, *values)))

    class Libc:
        def __init__(self, _name):
            self.prctl = lambda *values: done.append(("prctl", *values))

    monkeypatch.setattr(foreground.ctypes, "CDLL", Libc)
    return done


def test_root_gives_up_its_groups_then_its_group_then_itself(process):
    """The other way round it could not give up the rest. Then its own /proc is its own again."""
    become(USER)
    assert [
        ("setgroups", []),
        ("setresgid", USER, USER, USER),
        ("setresuid", USER, USER, USER),
        ("prctl", foreground.PR_SET_DUMPABLE, 1, 0, 0, 0),
    ] == process


def test_who_is_that_user_already_stays_so(process, monkeypatch):
    monkeypatch.setattr(os, "getresuid", lambda: (USER, USER, USER))
    become(USER)
    assert [] == process


def test_who_cannot_become_it_does_not_serve(process, monkeypatch):  # noqa: ARG001
    def refuse(_groups):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "setgroups", refuse)
    with pytest.raises(StartError) as caught:
        become(USER)
    assert str(caught.value) == (
        "user 0 cannot become user 69376: Operation not permitted; "
        "start as root with the capabilities SETUID and SETGID, or leave listen.user out"
    )


def test_a_port_below_1024_says_what_it_takes(monkeypatch):
    def refuse(*_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(socket.socket, "bind", refuse)
    with pytest.raises(StartError, match=r"port 337: Permission denied; change .* capability NET_BIND_SERVICE"):
        listen("127.0.0.1", 337)


@pytest.mark.parametrize("shared", [True, False])
def test_a_port_is_shared_only_where_both_want_it(shared):
    first = listen("127.0.0.1", 0, shared=True)
    port = first.getsockname()[1]
    first.listen()
    with first:
        if shared:
            listen("127.0.0.1", port, shared=True).close()
        else:
            with pytest.raises(StartError, match="Address already in use"):
                listen("127.0.0.1", port)
