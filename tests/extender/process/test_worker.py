"""What our worker changes in gunicorn's: one write an answer, and a thread that stays with its connection a moment."""

import socket
from collections import deque
from types import SimpleNamespace

import pytest
from gunicorn.config import Config
from gunicorn.http.errors import NoMoreData
from gunicorn.workers import gthread

from extender.process import worker


class Wire:
    """A socket that remembers what was written, write by write."""

    def __init__(self):
        self.writes = []

    def sendall(self, data):
        self.writes.append(bytes(data))


def answer(headers, *pieces):
    """The writes of one answer."""
    wire = Wire()
    request = SimpleNamespace(version=(1, 1), method="POST", should_close=lambda: False, _expected_100_continue=False)
    response = worker.Response(request, wire, SimpleNamespace(is_ssl=False, sendfile=False))
    response.start_response("200 OK", headers)
    for piece in pieces:
        response.write(piece)
    response.close()
    return wire.writes


def test_header_and_body_leave_in_one_write():
    (write,) = answer([("Content-Length", "2")], b"{}")
    assert (write[:15], write[-6:]) == (b"HTTP/1.1 200 OK", b"\r\n\r\n{}")


def test_an_answer_without_a_body_is_its_header():
    (write,) = answer([("Content-Length", "0")])
    assert write[-4:] == b"\r\n\r\n"


def test_the_second_piece_of_a_body_comes_without_a_header():
    first, second = answer([("Content-Length", "4")], b"ab", b"cd")
    assert (first[-6:], second) == (b"\r\n\r\nab", b"cd")


def test_a_chunked_answer_is_framed_as_upstream_does():
    writes = answer([], b"ab", b"cd")
    assert b"".join(writes).partition(b"\r\n\r\n")[2] == b"2\r\nab\r\n2\r\ncd\r\n0\r\n\r\n"


@pytest.fixture
def pair():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def stays(sock, *, buffered=b"", lingering=0, waiting=0):
    """Whether the thread sees more to do on its connection."""
    one = worker.Worker.__new__(worker.Worker)
    one.tpool = SimpleNamespace(_work_queue=SimpleNamespace(qsize=lambda: waiting))
    one._lingering = lingering
    unreader = SimpleNamespace(buf=SimpleNamespace(getvalue=lambda: buffered))
    more = one._more_comes(SimpleNamespace(sock=sock, parser=SimpleNamespace(unreader=unreader)))
    assert one._lingering == lingering
    return more


def test_the_thread_takes_a_request_that_comes_while_it_stays(pair):
    pair[1].send(b"POST")
    assert stays(pair[0])


def test_the_thread_goes_when_nothing_comes(pair):
    assert not stays(pair[0])


def test_bytes_already_read_are_a_request(pair):
    assert stays(pair[0], buffered=b"POST")


def test_no_more_threads_stay_than_others_can_spare(pair):
    pair[1].send(b"POST")
    assert not stays(pair[0], lingering=worker.LINGERING_MAX)


def test_a_thread_goes_where_others_wait(pair):
    pair[1].send(b"POST")
    assert not stays(pair[0], waiting=1)


def test_a_header_that_does_not_come_is_a_client_that_has_gone(pair, monkeypatch):
    monkeypatch.setattr(worker, "HEAD_LIMIT_S", 0.02)
    unreader = worker.Unreader(pair[0])
    unreader.begin_head()
    with pytest.raises(NoMoreData):
        unreader.read()


@pytest.mark.parametrize("limit", ["SILENCE_LIMIT_S", "BODY_LIMIT_S"])
def test_a_body_that_does_not_come_is_told_so(pair, monkeypatch, limit):
    monkeypatch.setattr(worker, limit, 0.02)
    unreader = worker.Unreader(pair[0])
    unreader.begin_body()
    with pytest.raises(TimeoutError):
        unreader.read()


def test_a_body_that_trickles_ends_at_the_limit_of_the_whole(pair, monkeypatch):
    times = iter(range(100))
    monkeypatch.setattr(worker.time, "monotonic", lambda: float(next(times)))
    unreader = worker.Unreader(pair[0])
    unreader.begin_body()  # at 0
    for _ in range(int(worker.BODY_LIMIT_S) - 1):
        pair[1].send(b"x")
        assert unreader.read() == b"x"
    with pytest.raises(TimeoutError):
        unreader.read()


def answered(pair, application, *, read=True):
    """What a whole connection gets for one request, and what was logged."""
    config = Config()
    one = worker.Worker.__new__(worker.Worker)
    logged = []
    one.alive, one.wsgi, one.cfg, one.keepalived_conns, one.max_keepalived = True, application, config, deque(), 10
    one.tpool = SimpleNamespace(_work_queue=SimpleNamespace(qsize=lambda: 0))
    one.log = SimpleNamespace(debug=lambda *_: None, exception=lambda *a: logged.append(a), access=lambda *_: None)
    conn = gthread.TConn(config, pair[0], ("127.0.0.1", 1), ("127.0.0.1", 2))
    pair[1].sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    pair[1].shutdown(socket.SHUT_WR)
    keep = one.handle(conn)
    pair[1].settimeout(1)
    return keep, pair[1].recv(65536) if read else b"", logged


def breaks_off_after(piece):
    def application(_environ, start_response):
        start_response("200 OK", [("Content-Length", "4")])
        if piece:
            yield piece
        raise ValueError("a fault of ours")

    return application


def test_an_answer_that_breaks_off_is_not_followed_by_a_second_header(pair):
    keep, answer, logged = answered(pair, breaks_off_after(b"ab"))
    assert (keep, answer[-6:], len(logged)) == (False, b"\r\n\r\nab", 1)


def test_an_answer_that_failed_before_its_first_byte_is_a_500(pair):
    keep, answer, logged = answered(pair, breaks_off_after(b""))
    assert (keep, answer[:12], len(logged)) == (False, b"HTTP/1.1 500", 1)


def test_a_client_that_does_not_read_frees_the_thread_without_a_word(pair, monkeypatch):
    monkeypatch.setattr(worker, "ANSWER_LIMIT_S", 0.05)

    def application(_environ, start_response):
        start_response("200 OK", [("Content-Length", "50000000")])
        return (b"x" * 50_000_000,)

    keep, _, logged = answered(pair, application, read=False)
    assert (keep, logged) == (False, [])


def test_closing_waits_for_the_client_but_not_for_ever(pair, monkeypatch):
    monkeypatch.setattr(worker, "CLOSE_LIMIT_S", 0.05)
    pair[1].sendall(b"more")
    worker.close_politely(pair[0])
    assert (pair[1].recv(10), pair[0].recv(10)) == (b"", b"")
