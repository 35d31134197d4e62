"""A server that takes no connection for a while, as one whose host is away: packets are dropped, nothing is refused."""

import gc
import socket
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from kube import errors
from kube.auth import Connection
from kube.client import Client
from tools.fakes.anonymous import Anonymous


@pytest.fixture
def full():
    """A listener whose backlog is full, so that the kernel drops who comes, and what makes room again."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        listener.settimeout(20)
        fill = stack.enter_context(socket.create_connection(listener.getsockname(), timeout=5))
        with suppress(TimeoutError):
            for _ in range(3):
                stack.enter_context(socket.create_connection(listener.getsockname(), timeout=0.3))
        fill.close()
        yield listener


def client_of(listener):
    return Client(Connection(f"http://127.0.0.1:{listener.getsockname()[1]}", None, Anonymous()), user_agent="t")


def open_files():
    return sorted(one.name for one in Path("/proc/self/fd").iterdir())


def answer(listener):
    """Takes all that come, and answers who says something."""
    with suppress(OSError):
        while True:
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(2)
                with suppress(OSError):
                    if connection.recv(65536):
                        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")


def test_a_connection_is_made_within_two_seconds_of_the_return_though_it_was_begun_long_before(full):
    """Its own packets leave after seven seconds, and after eleven (Linux 6.5) or fifteen."""
    client, took = client_of(full), []

    def ask():
        client.get("/", deadline_s=20)
        took.append(time.monotonic())

    asking = threading.Thread(target=ask)
    began = time.monotonic()
    asking.start()
    time.sleep(7.4)
    back = time.monotonic()
    threading.Thread(target=answer, args=[full], daemon=True).start()
    asking.join(10)
    assert (True, True) == (back - began > 7.1, took[0] - back < 2.5)
    client.close()


def tries(listener):
    """The local ports of all that wait for it, as the kernel has them (SYN_SENT)."""
    wanted = f":{listener.getsockname()[1]:04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {row[1] for row in rows if row[2].endswith(wanted) and row[3] == "02"}


def test_however_long_nothing_answers_two_connections_wait_at_most_and_the_first_stays(full, monkeypatch):
    """Each has a second descriptor, by which it is cut. Two at most, so a thread that waits has four, not thirty."""
    monkeypatch.setattr("kube.dial.AGAIN_S", 0.1)
    gc.collect()  # what earlier tests left, and has files
    client, before, others = client_of(full), len(open_files()), tries(full)

    def ask():
        with pytest.raises(errors.Unreachable):
            client.get("/", deadline_s=60)

    asking = threading.Thread(target=ask)
    asking.start()
    files, waiting, ends = set(), [], time.monotonic() + 50
    while len(frozenset().union(*waiting)) <= 5 and time.monotonic() < ends:
        files.add(len(open_files()) - before)
        waiting.append(tries(full) - others)
        time.sleep(0.01)
    client.close()
    asking.join(60)
    waiting = [one for one in waiting if one]
    assert (4, 2) == (max(files), max(map(len, waiting)))
    assert 1 == len(frozenset.intersection(*map(frozenset, waiting)))
    assert 5 < len(frozenset.union(*map(frozenset, waiting)))


def test_a_client_that_is_closed_waits_for_none_of_its_connections(full):
    client, ended = client_of(full), []

    def ask():
        with pytest.raises(errors.Unreachable):
            client.get("/", deadline_s=20)
        ended.append(time.monotonic())

    asking = threading.Thread(target=ask)
    asking.start()
    time.sleep(2.5)  # there are two by now
    closed = time.monotonic()
    client.close()
    asking.join(20)
    assert ended[0] - closed < 10  # its deadline is 17 s away


def test_the_deadline_holds_for_all_of_them_together_and_none_stays_open(full):
    client, began, before = client_of(full), time.monotonic(), open_files()
    gc.disable()
    try:
        with pytest.raises(errors.DeadlineExceeded) as found:
            client.get("/", deadline_s=2.5)
        assert (False, True, before) == (found.value.sent, time.monotonic() - began < 4.0, open_files())
    finally:
        gc.enable()
    client.close()
