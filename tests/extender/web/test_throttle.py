"""Dear answers are made and sent in pieces, with rests between them."""

import msgspec
import pytest

from extender.policy.decision import Decision
from extender.web.api import NODES_OF_A_PIECE, SHOWN_FOR, Api
from extender.web.page_budget import PageBudget
from extender.web.throttle import PIECE_BYTES, Throttle
from tests.extender.web.showing import WALL
from tests.extender.web.test_app import Shown


class Body:
    """As Flask gives one."""

    def __init__(self, *pieces):
        self.pieces, self.closed = pieces, False

    def __iter__(self):
        return iter(self.pieces)

    def close(self):
        self.closed = True


@pytest.mark.parametrize(
    ("body", "sizes"),
    [
        pytest.param([], [], id="none"),
        pytest.param([b"x"], [1], id="a short one as it is"),
        pytest.param([b"x" * PIECE_BYTES], [PIECE_BYTES], id="a piece as it is"),
        pytest.param([b"xy" * PIECE_BYTES + b"z"], [PIECE_BYTES, PIECE_BYTES, 1], id="a long one in pieces"),
        pytest.param([b"x", b"yz"], [1, 2], id="pieces as they are"),
    ],
)
def test_a_body_is_sent_in_pieces_with_a_rest_before_each_but_the_first(monkeypatch, body, sizes):
    spent, waited = [0.0], []
    monkeypatch.setattr("extender.web.throttle.time.sleep", waited.append)
    monkeypatch.setattr("extender.web.throttle.time.monotonic", lambda: 0.0)
    monkeypatch.setattr("extender.web.throttle.time.thread_time", lambda: spent[0])
    given, pieces = Body(*body), []
    sent = Throttle(PageBudget(saved_s=0.0, share=0.01)).in_pieces(given)
    for piece in sent:
        pieces.append(piece)
        spent[0] += 0.001
    sent.close()
    assert (sizes, b"".join(body), True) == ([len(piece) for piece in pieces], b"".join(pieces), given.closed)
    assert [pytest.approx(0.1)] * (len(sizes) - 1) == waited


def test_a_body_of_which_nothing_was_sent_is_closed():
    given = Body(b"x")
    Throttle().in_pieces(given).close()
    assert given.closed


def showing(count):
    shown = Shown()
    shown.decide({"n1": None, "n2": None} | {f"node-{number}": Decision("") for number in range(count)})
    return shown


@pytest.mark.parametrize(
    ("count", "expected"), [(0, 0), (1, 0), (NODES_OF_A_PIECE, 0), (NODES_OF_A_PIECE + 1, 1), (450, 4)]
)
def test_what_is_made_in_pieces_with_rests_between_them_is_what_is_made_at_once(count, expected):
    shown, rests = showing(count), []
    api = Api(shown, wall=lambda: WALL, rest=lambda: rests.append(1))
    assert b"".join(api.all_nodes()) == msgspec.json.encode(api.nodes("", None))
    assert expected == len(rests)


@pytest.mark.parametrize(
    ("took_s", "after_s", "times"),
    [
        pytest.param(0.001, 0.9, 1, id="for a second, however little it costs"),
        pytest.param(0.001, 1.0, 2, id="made anew after it"),
        pytest.param(0.05, 0.05 * SHOWN_FOR - 0.1, 1, id="longer where it costs much"),
        pytest.param(0.05, 0.05 * SHOWN_FOR, 2, id="made anew after that"),
    ],
)
def test_how_long_all_nodes_are_shown_as_they_were(monkeypatch, took_s, after_s, times):
    shown, spent = showing(NODES_OF_A_PIECE + 1), [0.0]
    monkeypatch.setattr("extender.web.api.time.thread_time", lambda: spent[0])
    made = []

    def rest():
        spent[0] += took_s
        made.append(1)

    api = Api(shown, rest=rest)
    api.all_nodes()
    shown.monotonic.time += after_s
    api.all_nodes()
    assert times == len(made)
