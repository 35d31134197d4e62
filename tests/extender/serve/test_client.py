"""A connection and its socket: until when a client whose connection begins with a handshake is waited for."""

import socket

import pytest

from extender.serve import limits
from extender.serve.client import Client
from extender.serve.connection import Stage
from extender.serve.http import Heads
from tools.kit.cases import cases

BEGAN, LATER, LAST = 100.0, 102.0, 104.0
HANDSHAKE_BYTES = 5
BY_HANDSHAKE = BEGAN + limits.HEAD_LIMIT_S


class Handshake:
    """A stream that is ready after some bytes and passes on what comes then."""

    done = False

    def __init__(self, *, may_ask=True):
        self.may_ask = may_ask
        self._left = HANDSHAKE_BYTES

    @property
    def ready(self):
        return self._left == 0

    def receive(self, data):
        taken = min(self._left, len(data))
        self._left -= taken
        return bytes(data[taken:])

    def pending(self):
        return b""


@cases(
    "stream, pieces, expected",
    ("nothing of a handshake", Handshake, {}, BY_HANDSHAKE),
    ("half of it", Handshake, {LATER: b"he"}, BY_HANDSHAKE),
    ("bytes that drip", Handshake, {BEGAN: b"h", LATER: b"e", LAST: b"l"}, BY_HANDSHAKE),
    ("all of it: it may rest", Handshake, {LATER: b"he", LAST: b"llo"}, LAST + limits.IDLE_LIMIT_S),
    ("and a part of a head", Handshake, {LATER: b"helloPO"}, LATER + limits.HEAD_LIMIT_S),
    ("a part of a head, later", Handshake, {LATER: b"hello", LAST: b"PO"}, LAST + limits.HEAD_LIMIT_S),
    ("one that drips", Handshake, {BEGAN: b"hello", LATER: b"P", LAST: b"O"}, LATER + limits.HEAD_LIMIT_S),
    ("no handshake is wanted", lambda: None, {}, BEGAN + limits.IDLE_LIMIT_S),
)
def test_until_when_a_handshake_is_waited_for(stream, pieces, expected):
    ours, theirs = socket.socketpair()
    with theirs:
        client = Client(ours, stream(), BEGAN, Heads())
        for monotonic, piece in pieces.items():
            theirs.sendall(piece)
            assert client.receive_some(memoryview(bytearray(100)), monotonic)
        client.close()
    assert expected == client.deadline


HEAD = b"POST /filter HTTP/1.1\r\nHost: h\r\n"


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        pytest.param(b"Content-Length: 5000\r\n\r\n", 403, id="a head"),
        pytest.param(b"Content-Length: 5000\r\nExpect: 100-continue\r\n\r\n", 403, id="a head that expects"),
        pytest.param(b"Transfer-Encoding: chunked\r\n\r\n400\r\n{", 403, id="the begin of a chunk"),
        pytest.param(b"Content-Length: 5000\r\n\r\n" + b"x" * 4000, 403, id="most of a body"),
        pytest.param(b"Content-Length: 99000000\r\n\r\n", 413, id="a body above the limit"),
        pytest.param(b"Content-Length: 5", None, id="half a head"),
    ],
)
def test_body_of_a_client_that_may_not_ask_is_refused_at_its_head_and_not_held(rest, expected):
    stream = Handshake(may_ask=False)
    one, other = socket.socketpair()
    with one, other:
        client = Client(one, stream, BEGAN, Heads())
        other.sendall(b"x" * HANDSHAKE_BYTES + HEAD + rest)
        assert client.receive_some(memoryview(bytearray(65536)), LATER)
        if expected is None:
            assert (Stage.HEAD, False) == (client.stage, client.asked)
            return
        assert (Stage.ASKED, False, 0) == (client.stage, client.expects, client.reader.body_bytes)
        assert not client.reader._pieces
        assert expected == client.next().status
