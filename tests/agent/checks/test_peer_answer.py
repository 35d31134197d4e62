"""What agents ask one another over HTTP, and what they answer."""

import pytest

from agent.checks.peer_answer import (
    LATELY_S,
    PADDING_LIMIT_BYTES,
    VISITORS_LIMIT,
    Board,
    answer_of,
    header_of,
    request_for,
    whole,
)
from agent.checks.peer_verdict import Answer
from tools.kit.cases import cases
from tools.kit.clock import Clock


def test_a_request_has_the_name_of_who_asks_and_fills_a_packet() -> None:
    request = request_for("10.0.0.1:9375", "node-1", 1448)
    assert (header_of(request, "x-readygate-node"), len(request) > 1448) == ("node-1", True)


def test_a_request_without_padding_fits_into_the_smallest_packet() -> None:
    assert len(request_for("[fd00::1]:9375", "node-1", 0)) < 256


def test_padding_is_bounded() -> None:
    assert len(request_for("10.0.0.1", "node-1", 10**6)) < PADDING_LIMIT_BYTES + 256


def test_an_answer_is_as_long_as_the_request_and_counts_who_came() -> None:
    board = Board(Clock(100.0))
    board.answer = Answer("node-2", "passed", ("node-1",), api=True)
    body = board.page(request_for("h", "node-1", 1448))
    found = answer_of(body.encode())
    assert found is not None
    assert (found.node, found.verdict, found.visitors, found.received > 1448, len(body) > 1448) == (
        "node-2",
        "passed",
        1,
        True,
        True,
    )


def test_visits_are_forgotten_after_a_minute() -> None:
    clock = Clock(100.0)
    board = Board(clock)
    board.page(request_for("h", "node-1", 0))
    clock.time += LATELY_S + 1
    request = request_for("h", "node-2", 0)
    assert answer_of(board.page(request).encode()) == Answer(visitors=1, received=len(request))


def test_names_of_strangers_take_bounded_memory() -> None:
    board = Board(Clock())
    for number in range(10 * VISITORS_LIMIT):
        board.page(request_for("h", f"node-{number}", 0))
    assert len(board.visitors(0.0)) == VISITORS_LIMIT


@cases(
    "reply, expected",
    ("a whole one", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", b"{}"),
    ("half of the body", b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}", None),
    ("half of the head", b"HTTP/1.1 200 OK\r\nContent-Le", None),
    ("no length", b"HTTP/1.1 200 OK\r\n\r\n{}", None),
)
def test_a_reply_is_read_when_it_is_whole(reply: bytes, expected: bytes | None) -> None:
    assert whole(reply) == expected


@pytest.mark.parametrize("body", [b"", b"not found", b"[]", b'{"node": 1}', b"\xff", b"[" * 100_000])
def test_what_is_no_answer_is_none(body: bytes) -> None:
    assert answer_of(body) is None


def test_tries_are_counted_by_leg_family_and_result() -> None:
    board = Board(Clock())
    board.tried("peer", "IPv4", "reached", 0.002)
    board.tried("peer", "IPv4", "silent", None)
    assert {tuple(key): count for key, count in board.counts().items()} == {
        ("peer", "IPv4", "reached"): 1,
        ("peer", "IPv4", "silent"): 1,
    }
    assert list(board.seconds()) == [("peer", "IPv4")]
