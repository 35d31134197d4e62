"""What our worker changes in gunicorn's: one write an answer, and a thread that stays with its connection a moment."""

import socket
from types import SimpleNamespace

import pytest

from extender import worker


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


def stays(sock, *, buffered=b"", lingering=0):
    """Whether the thread sees more to do on its connection."""
    one = worker.Worker.__new__(worker.Worker)
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
