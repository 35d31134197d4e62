"""The loop over loopback sockets, with routes of its own: what a bug of ours, or a lack of descriptors, may cost."""

import errno
import select
import socket
import time
from contextlib import ExitStack

import pytest

from extender.serve import limits
from extender.serve.client import Client
from extender.serve.http import Heads
from extender.serve.loop import FROZEN_S, THAW_S, Loop
from tests.extender.serve.serving import GET, Routes, asked, connected, serving
from tools.kit.clock import Clock


def test_a_bug_of_ours_is_one_answer_and_one_line(caplog):
    with serving() as listener, connected(listener) as sock:
        for _ in range(3):
            assert b" 500 " in asked(sock, b"/bug")
        assert asked(sock, b"/good").endswith(b"/good")
    assert ["a request failed"] == [record.message for record in caplog.records if record.exc_info]


@pytest.mark.parametrize(
    "target",
    [
        pytest.param(b"/counted", id="sent in one piece"),
        pytest.param(b"/counted" + b"x" * 60_000, id="asked and answered in several"),
    ],
)
def test_whoever_asks_does_not_wait_until_the_answer_is_counted_and_remembered(target):
    routes = Routes()
    with serving(routes) as listener, connected(listener) as sock:
        for _ in range(2):
            sock.sendall(GET % target)
            answer = b""
            while not answer.endswith(target):
                answer += sock.recv(2**17)
            routes.received.set()
    assert 2 == len(routes.counted)
    assert all(took_s >= 0.0 for took_s in routes.counted)


def test_a_bug_of_ours_in_the_count_costs_no_answer_and_no_connection(caplog):
    with serving() as listener, connected(listener) as sock:
        for _ in range(3):
            assert asked(sock, b"/miscounted").endswith(b"/miscounted")
    assert ["an answer was not counted"] == [record.message for record in caplog.records if record.exc_info]


def test_a_bug_of_ours_beside_an_answer_ends_that_connection_only():
    with serving() as listener, connected(listener) as bad, connected(listener) as good:
        bad.sendall(b"POST /bug HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999\r\n\r\n")
        assert b"" == bad.recv(100)
        assert asked(good, b"/good").endswith(b"/good")


@pytest.mark.parametrize("cause", [errno.EMFILE, errno.ENFILE, errno.ENOBUFS])
def test_without_descriptors_the_one_waited_for_longest_gives_its_own(cause):
    with serving() as listener, connected(listener) as first, connected(listener) as second:
        for sock in (first, second):
            assert asked(sock, b"/good").endswith(b"/good")
        listener.failures.append(cause)
        with connected(listener) as third:
            assert asked(third, b"/good").endswith(b"/good")
            assert b"" == first.recv(1)
            assert asked(second, b"/good").endswith(b"/good")


@pytest.mark.parametrize("clients", [0, 3], ids=["nobody has one to give", "others have some to give"])
def test_without_descriptors_for_long_it_neither_spins_nor_closes_one_after_the_other(clients):
    """A connection that waits to be taken shows at each look."""
    with serving() as listener, ExitStack() as stack:
        socks = [stack.enter_context(connected(listener)) for _ in range(clients)]
        for sock in socks:
            assert asked(sock, b"/good").endswith(b"/good")
        listener.failures.extend([errno.EMFILE] * 100_000)
        with connected(listener) as new:
            time.sleep(0.5)
            looks = 100_000 - len(listener.failures)
            listener.failures.clear()
            assert asked(new, b"/good").endswith(b"/good")
        assert 1 <= looks <= 2 * (0.5 / limits.NO_DESCRIPTORS_S + 2)  # to take it, then to refuse it
        still = sum(select.select([sock], [], [], 0)[0] == [] for sock in socks)
        assert max(0, clients - 1) <= still


def test_a_lack_of_descriptors_does_not_outlast_the_end():
    with serving() as listener:
        listener.failures.extend([errno.EMFILE] * 100_000)
        connected(listener).close()
        time.sleep(0.05)


class SlowHandshake:
    """A stream whose handshake is one byte, and dear to us."""

    took_s = 0.02
    counted = 0  # of all of them

    def __init__(self):
        self.ready, self.done, self.may_ask = False, False, True

    def receive(self, data):
        if self.ready:
            return bytes(data)
        time.sleep(self.took_s)
        type(self).counted += 1
        self.ready = True
        return bytes(data[1:])

    def send(self, plain):
        return plain

    def pending(self):
        return b""

    def ended(self):
        return b""


MOST_S = 0.25  # of handshakes, before one whose own is done has its answer
SIGNATURE_S = 0.003  # and what else a handshake takes of us, on a slow machine


def handshakes_s(count, took_s):
    """How much of so many there is before an answer to one who asks among them. Each turn looks at a part of those that
    are ready, and does what fits into a slice, and one more."""
    return 2 * (count // limits.EVENTS_MAX + 1) * (limits.SLICE_S + took_s)


def test_as_many_handshakes_as_there_are_connections_take_a_quarter_of_a_second_from_nobody_at_most():
    assert handshakes_s(limits.CONNECTIONS_MAX, SIGNATURE_S) <= MOST_S


@pytest.mark.parametrize(
    ("count", "took_s"),
    [
        pytest.param(60, 0.02, id="each longer than a slice"),
        pytest.param(64, 0.002, id="two to a slice"),
        pytest.param(120, 0.002, id="as many as there may be"),
    ],
)
def test_a_crowd_of_handshakes_holds_up_nobody_whose_own_is_done(count, took_s):
    class Stream(SlowHandshake):
        pass

    Stream.took_s = took_s
    with serving(stream=Stream) as listener, ExitStack() as stack:
        kept = stack.enter_context(connected(listener))
        kept.sendall(b"x")
        assert asked(kept, b"/before").endswith(b"/before")
        crowd = [stack.enter_context(connected(listener)) for _ in range(count)]
        time.sleep(0.1)
        for sock in crowd:
            sock.send(b"x")
        before = Stream.counted
        assert asked(kept, b"/beside").endswith(b"/beside")
        assert (Stream.counted - before) * took_s <= handshakes_s(count, took_s)
        for sock in crowd:
            assert asked(sock, b"/after").endswith(b"/after")


def test_whoever_comes_is_not_taken_as_long_as_handshakes_wait():
    """So that nobody loses a place before its handshake was looked at."""

    class Stream(SlowHandshake):
        pass

    with serving(stream=Stream, connections_max=20) as listener, ExitStack() as stack:
        crowd = []
        for _ in range(60):
            crowd.append(stack.enter_context(connected(listener)))
            crowd[-1].send(b"x" + GET % b"/good")
        answers = [_received(sock) for sock in crowd]
    assert 60 == len([answer for answer in answers if answer.endswith(b"/good")])


def _received(sock):
    try:
        return sock.recv(1000)
    except ConnectionError:
        return b""


def test_beyond_the_places_there_are_the_oldest_goes():
    with serving(connections_max=2) as listener, connected(listener) as first, connected(listener) as second:
        for sock in (first, second):
            assert asked(sock, b"/good").endswith(b"/good")
        with connected(listener) as third:
            assert asked(third, b"/good").endswith(b"/good")
            assert b"" == first.recv(1)


def test_beyond_the_bytes_there_may_be_the_oldest_goes():
    half = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 90000\r\n\r\n" + b"x" * 60_000
    with serving(held_max_bytes=100_000) as listener, connected(listener) as first, connected(listener) as second:
        first.sendall(half)
        assert asked(second, b"/good").endswith(b"/good")
        second.sendall(half)
        assert b"" == first.recv(1)
        second.sendall(b"x" * 30_000)
        assert second.recv(100).startswith(b"HTTP/1.1 200 OK")


def test_what_has_not_ended_when_we_stop_is_cut_and_what_was_asked_is_answered():
    with serving() as listener, connected(listener) as half, connected(listener) as kept:
        half.sendall(b"GET /")
        assert b"Connection: close" not in asked(kept, b"/good")
    assert (b"", b"") == (half.recv(1) if half.fileno() >= 0 else b"", b"")
    with pytest.raises(ConnectionRefusedError):
        connected(listener)


def test_a_half_closed_client_gets_its_answer():
    with serving() as listener, connected(listener) as sock:
        sock.sendall(GET % b"/good")
        sock.shutdown(socket.SHUT_WR)
        assert sock.recv(1000).endswith(b"/good")
        assert b"" == sock.recv(1)


def test_frozen_for_seconds_it_lets_the_cluster_be_heard_of_before_it_answers():
    """Its threads were frozen too: what piled up is read while it sleeps, and once is enough."""
    heard = []
    frozen = Clock()
    with (
        serving(monotonic=lambda: time.monotonic() + frozen.time, sleep=heard.append) as listener,
        connected(listener) as sock,
    ):
        asked(sock, b"/before")
        assert [] == heard
        for frozen_s, expected in ((0.5, []), (FROZEN_S + 0.5, [THAW_S]), (0.5, [THAW_S])):
            frozen.time += frozen_s
            asked(sock, b"/after")
            assert expected == heard


@pytest.mark.parametrize(
    ("crowd", "expected"),
    [
        pytest.param(10, "old", id="before a crowd"),
        pytest.param(limits.FEW, "first of them", id="after the few that came before it"),
    ],
)
def test_who_has_been_answered_for_longest_is_answered(crowd, expected):
    """All of them ask alike, and much."""
    loop = Loop(Routes(), chores=lambda monotonic: monotonic + 1.0)
    with ExitStack() as stack:
        clients = []
        for _ in range(crowd + 1):
            one, other = socket.socketpair()
            stack.callback(other.close)
            stack.callback(one.close)
            clients.append(Client(one, None, 0.0, Heads()))
        loop._clients = {client.fd: client for client in clients}
        old, *others = clients
        old.verdicts = 1
        for client in (*others, old):
            loop._queue(client, 0.0)
        assert {"old": old, "first of them": others[0]}[expected] is loop._turns.take()
    loop._epoll.close()
