"""A watch that is cut at any byte: every event is applied once, none is lost, and half an event does nothing."""

import io
import itertools
import json
import math
import socket
import time
from collections.abc import Sequence
from contextlib import closing, suppress

import pytest

from kube.client import Dated
from kube.listing import ListerWatcher
from kube.reflector import Reflector
from kube.stream import WatchStream
from kube.transport import TimedReader
from kube.watching import Next
from tests.kube.in_process import Finished
from tests.scripted.following import Node
from tools.kit.clock import Clock

FIRST_VERSION = 1000
EVENTS = 300
TYPES = ("ADDED", "MODIFIED", "DELETED", "BOOKMARK")


def line(number: int) -> bytes:
    """Names of several bytes a letter, so that a cut falls into one."""
    event_type = TYPES[number % 4]
    meta = {"resourceVersion": str(FIRST_VERSION + number)}
    if event_type != "BOOKMARK":
        meta["name"] = f"ñöde-{number}-😀"
    event = {"type": event_type, "object": {"kind": "Node", "metadata": meta}}
    return json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def framed(number: int) -> bytes:
    return b"%x\r\n%b\r\n" % (len(line(number)), line(number))


RECORDING = [framed(number) for number in range(1, EVENTS + 1)]


class Connection:
    """Its answer's body is these bytes, which arrive in blocks of this size; then it is cut."""

    lifeline = None
    chunked = True
    length = None

    def __init__(self, body: bytes, block_bytes: int) -> None:
        self.answer = self.fp = self
        self.reader = self
        self.dry = False
        self.patience_s = self.deadline = math.inf
        self._body = io.BytesIO(body)
        self._block_bytes = block_bytes

    def read1(self, _: int) -> bytes:
        return self._body.read(self._block_bytes)

    def take_rest(self, blocks: list[bytes], _: int) -> bool:
        while block := self.read1(0):
            blocks.append(block)
        return not self.dry

    def isclosed(self) -> bool:
        return False

    def close(self) -> None:
        return


class Server:
    """Answers each watch with the events after its version; `cuts`: after how many bytes each of them ends."""

    def __init__(self, *, block_bytes: int = 65536) -> None:
        self.cuts: list[int] = []
        self.last = EVENTS
        self.block_bytes = block_bytes

    def branch(self) -> "Server":
        return self

    def close(self) -> None:
        return

    def get_dated(self, *_, **__) -> Dated:
        return Dated(b'{"kind":"NodeList","metadata":{"resourceVersion":"1000"},"items":[]}', None)

    def watch(self, path: str, *, query: dict, silence_limit_s: float) -> WatchStream:
        if not self.cuts:
            raise Finished
        following = RECORDING[int(query["resourceVersion"]) - FIRST_VERSION : self.last]
        connection = Connection(b"".join(following)[: self.cuts.pop(0)], self.block_bytes)
        return WatchStream(connection, connection, path, silence_limit_s)


class History:
    """What the store was given, in order."""

    def __init__(self) -> None:
        self.given: list[str] = []

    def replace(self, _: Sequence[Node]) -> None:
        return

    def upsert(self, item: Node) -> None:
        self.given.append(item.metadata.resource_version)

    remove = upsert


def expected(first: int, last: int) -> list[str]:
    return [str(FIRST_VERSION + number) for number in range(first, last + 1) if TYPES[number % 4] != "BOOKMARK"]


def reflector_of(server: Server, history: History) -> Reflector:
    return Reflector(
        ListerWatcher(server, "/nodes", Node), history, name="nodes", rest_s=0.0, monotonic=Clock(), random=lambda: 0.0
    )


def follow(reflector: Reflector) -> None:
    with suppress(Finished):
        while True:
            reflector._loop.turn()


def test_a_cut_at_any_byte_of_a_recording_loses_none_and_repeats_none() -> None:
    server, history = Server(), History()
    reflector = reflector_of(server, history)
    reflector._kind = "Node"
    cuts = 0
    for number in range(1, EVENTS):
        server.last = number + 1
        for cut in range(len(RECORDING[number - 1]) + 1):
            history.given.clear()
            reflector._next, reflector._resource_version = Next.WATCH, str(FIRST_VERSION + number - 1)
            # A watch with nothing in it is a failure by itself (LW8): what follows is a list, which would hide a loss.
            server.cuts = [cut, 10**9]
            for _ in range(2):
                reflector._loop.turn()
                reflector._next = Next.WATCH
            assert expected(number, number + 1) == history.given, (number, cut)
            cuts += 1
    assert cuts > 25_000


@pytest.mark.parametrize("block_bytes", [1, 2, 7, 1000])
def test_blocks_of_any_size_make_the_same_events(block_bytes):
    server, history = Server(block_bytes=block_bytes), History()
    reflector = reflector_of(server, history)
    server.cuts = [10**9]
    follow(reflector)
    assert expected(1, EVENTS) == history.given


def test_two_cuts_in_one_event():
    server, history = Server(), History()
    reflector = reflector_of(server, history)
    first = len(RECORDING[0])
    for one, two in itertools.product(range(0, first, 7), repeat=2):
        history.given.clear()
        reflector._kind, reflector._next, reflector._resource_version = "Node", Next.WATCH, str(FIRST_VERSION)
        server.last, server.cuts = 1, [one, two, 10**9]
        for _ in range(3):
            reflector._loop.turn()
            reflector._next = Next.WATCH
        assert expected(1, 1) == history.given


class Trickle(Connection):
    """Nothing more is there after every second block."""

    reads = 0

    def read1(self, size: int) -> bytes:
        self.reads += 1
        self.dry = self.reads % 3 == 0
        return b"" if self.dry else super().read1(size)


@pytest.mark.parametrize(
    ("connection", "expected"),
    [
        pytest.param(Connection, 0, id="of more than is taken at once is taken without a rest"),
        pytest.param(Trickle, 25, id="that comes in pieces is rested after each"),
    ],
)
def test_a_flood(connection, expected, monkeypatch):
    lines = [b"x" * 65530] * 50
    body = b"".join(b"%x\r\n%b\n\r\n" % (len(one) + 1, one) for one in lines)
    given = connection(body, 65536)
    stream = WatchStream(given, given, "/", silence_limit_s=1e9)
    rests = []
    monkeypatch.setattr(stream._closed, "wait", rests.append)
    taken = [one for batch in stream.batches(rest_s=9.0) for one in batch]
    assert (lines, [9.0] * expected) == (taken, rests)


def test_who_reads_without_patience_gets_nothing_yet_and_no_error():
    """Of an answer with a length, of which a part has come."""
    ours, theirs = socket.socketpair()
    with ours, theirs, closing(TimedReader(ours, time.monotonic() + 60, None)) as reader:
        reader.patience_s, buffer = 0.0, bytearray(8)
        assert (None, True) == (reader.readinto(buffer), reader.dry)
        theirs.sendall(b"part")
        assert (4, b"part") == (reader.readinto(buffer), bytes(buffer[:4]))
