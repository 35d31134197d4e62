"""Many conversations share one deadline: a silent one keeps nobody waiting."""

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from agent.probe.multiplex import READ, Talk, Wait, connect, is_ours, talk_all
from tools.kit.ports import free_port

LIMIT_S = 0.2
AMPLE_S = 20.0


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def heard(link: socket.socket) -> Talk[str]:
    try:
        yield Wait(link, READ)
    except TimeoutError:
        return "late"
    return link.recv(100).decode()


def test_each_returns_what_it_heard_and_the_silent_one_that_it_was_late(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    silent, _other = socket.socketpair()
    pair[1].send(b"hello")
    with silent, _other:
        assert {"a": "late", "b": "hello"} == talk_all({"a": heard(silent), "b": heard(pair[0])}, LIMIT_S)


def test_a_pause_that_ends_first_is_told(pair: tuple[socket.socket, socket.socket]) -> None:
    def patient() -> Talk[list[bool]]:
        told = [(yield Wait(pair[0], READ, 0.01))]
        pair[1].send(b"x")
        return [*told, (yield Wait(pair[0], READ, AMPLE_S))]

    assert {1: [False, True]} == talk_all({1: patient()}, AMPLE_S)


def test_one_that_waits_for_nothing_and_none_at_all() -> None:
    def at_once() -> Talk[int]:
        return 7
        yield

    assert ({1: 7}, {}) == (talk_all({1: at_once()}, AMPLE_S), talk_all({}, AMPLE_S))


def test_what_one_raises_is_raised_and_the_others_are_closed(pair: tuple[socket.socket, socket.socket]) -> None:
    closed = threading.Event()

    def patient() -> Talk[None]:
        try:
            yield Wait(pair[0], READ)
        finally:
            closed.set()

    def broken() -> Talk[None]:
        yield Wait(pair[1], READ, 0.01)
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        talk_all({1: patient(), 2: broken()}, AMPLE_S)
    assert closed.is_set()


def test_one_that_does_not_end_at_the_deadline_is_a_bug(pair: tuple[socket.socket, socket.socket]) -> None:
    def stubborn() -> Talk[None]:
        while True:
            try:
                yield Wait(pair[0], READ)
            except TimeoutError:
                continue

    with pytest.raises(RuntimeError, match="after its deadline"):
        talk_all({1: stubborn()}, 0.01)


def connected(port: int) -> Talk[str]:
    with socket.socket() as link:
        link.setblocking(False)
        try:
            yield from connect(link, ("127.0.0.1", port))
        except OSError as e:
            return type(e).__name__
        return "connected"


def test_connections() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        talks = {"there": connected(port), "nobody": connected(free_port())}
        assert {"there": "connected", "nobody": "ConnectionRefusedError"} == talk_all(talks, AMPLE_S)


def test_which_address_is_ours() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        link.connect(("192.0.2.1", 9)) if _has_a_way() else link.connect(("127.0.0.1", 9))
        ours = link.getsockname()[0]
    assert [True, False, False, True] == [is_ours(address) for address in (ours, "192.0.2.77", "2001:db8::7", "::1")]


def _has_a_way() -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link, contextlib.suppress(OSError):
        link.connect(("192.0.2.1", 9))
        return True
    return False
