"""Frames of the feed: what goes in comes out, however it is cut, and what is no feed is refused in one line."""

import math

import msgspec
import pytest
from msgspec.structs import replace

from extender.config.settings import parse
from extender.feed import wire
from extender.feed.status import CacheStatus, Status
from extender.policy.decision import CapState, Decision, GateState, HeldBy, Storm
from extender.policy.layered_map import LayeredMap
from extender.policy.orders import parse_orders
from extender.policy.snapshot import Snapshot
from extender.verbs.counts import Counts, RequestResult
from extender.why.entries import Cause, Dropped, Event, Forgotten, Named, PodRecord, Reset, Tally

OPEN, CLOSED = Decision(""), Decision("closed", "ns/pod", "evidence", 5.5, 9.0)
HELD = Decision("", "ns/pod", "e", 5.5, verdict="closed", held_by=HeldBy.CAP, until=9.5, note="30% are closed")


def status(**changes):
    counts = Counts()
    counts.count(RequestResult.ANSWERED)
    counts.answered_in(0.0003)
    counts.refuse({"why": 1})
    fields = {
        "at_monotonic": 7.0,
        "sync": "OK",
        "stopping": False,
        "stuck": ["kick"],
        "caches": {"pods": CacheStatus(True, 1.5, {"relists": 2}), "nodes": CacheStatus(False, math.inf, {})},
        "required": ["pods", "nodes"],
        "counts": counts,
        "kicks": {"Patched": 3},
    }
    return Status(**fields | changes)


FRAMES = [
    wire.Hello(wire.PROTOCOL, 42),
    wire.Ruled.of(parse("gates: [{name: gpu, cap: 20%, damping: off}]")),
    wire.Said(status()),
    wire.Ordered.of(parse_orders({"a": '{"order": "hold", "scope": {"node": "n1"}}', "b": "rubbish"})),
    wire.Changes("health", [wire.Row.of("n1", OPEN), wire.Row.of("n2", CLOSED), wire.Row.of("n4", HELD)], ["n3"]),
    wire.Complete(
        [
            wire.Gate("health", True, "gate", CapState(3, 1, 2), (Storm("closed", "R", 7, "dns", 1.0),)),
            wire.Gate("cni", False, "preferNot", CapState(), ()),
        ],
        7,
    ),
    wire.Beats({"n1": 3.25}),
    wire.Remembered([Reset(1.0), Named(0, ["n1"]), Cause(0, "base", "r", False), PodRecord("ns", "p", "u", 1.0, 2.0)]),
    wire.Remembered(
        [Event(1, 1.0, "closed"), Tally("base", True, 1.0, recent={7: 2}), Dropped(3), Forgotten(["ns/p"])]
    ),
]


@pytest.mark.parametrize("cut", [1, 2, 3, 7, 64, 10_000])
def test_frames_come_out_as_they_went_in_however_the_bytes_are_cut(cut):
    data = b"".join(map(wire.write, FRAMES))
    reader = wire.Reader()
    found = [frame for at in range(0, len(data), cut) for frame in reader.feed(data[at : at + cut])]
    assert found == FRAMES


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(b"HTTP/1.1 400 Bad Request\r\n", "a frame of 1213486160 bytes", id="a web server"),
        pytest.param(b"\0\0\0\1\xc1", "of another release", id="no MessagePack"),
        pytest.param(b"\0\0\0\2\x91\xa0", "of another release", id="a frame that is not ours"),
        pytest.param(b"\0\0\0\4\x93\xa5hello"[:8] + b"\0", "of another release", id="a frame cut short"),
    ],
)
def test_what_is_no_feed_is_refused(data, expected):
    with pytest.raises(wire.FeedError, match=expected) as caught:
        wire.Reader().feed(data)
    assert "\n" not in str(caught.value)


def applied(before, frames):
    """What one who follows has after these."""
    nodes = set(before)
    told = []
    for frame in frames:
        if isinstance(frame, wire.Changes):
            told += [row.node for row in frame.rows]
            nodes |= {row.node for row in frame.rows}
            nodes -= set(frame.gone)
    return nodes, told


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        pytest.param({}, {"a": OPEN, "b": CLOSED}, ["a", "b"], id="all of the first snapshot"),
        pytest.param({"a": OPEN}, {"a": OPEN}, [], id="nothing if nothing has changed"),
        pytest.param({"a": OPEN, "b": OPEN}, {"a": OPEN, "b": CLOSED}, ["b"], id="what has changed"),
        pytest.param({"a": OPEN, "b": OPEN}, {"b": OPEN}, [], id="what is gone"),
        pytest.param({"a": OPEN}, {"b": OPEN}, ["b"], id="one for another"),
    ],
)
@pytest.mark.parametrize("overlaid", [False, True])
def test_changes(before, after, told, overlaid):
    frames = list(wire.changes(snapshot(before), snapshot(after, over=before if overlaid else None)))
    assert (set(after), told) == applied(before, frames)
    assert frames[-1] == wire.Complete([wire.Gate("health", True, "gate", CapState(), ())])


def snapshot(decisions, over=None):
    """over: what these are changes of, with the same base."""
    if over is not None:
        changes = decisions | dict.fromkeys(over.keys() - decisions.keys())
        decisions = LayeredMap(over).with_changes(changes)
    return Snapshot({"health": GateState("health", decisions)})


def test_changes_and_beats_come_in_pieces_with_rests_where_nothing_has_changed():
    before = {f"n{number}": OPEN for number in range(1200)}
    frames = wire.changes(snapshot(before), snapshot(before | {"n700": CLOSED}))
    rows = [None if frame is None else len(frame.rows) for frame in list(frames)[:-1]]
    assert rows == [None, 1, None]
    assert [500, 500, 200] == [len(frame.beats) for frame in wire.beats(dict.fromkeys(before, 1.0))]


def test_of_thousands_of_nodes_those_are_looked_at_that_may_have_changed():
    before = LayeredMap({f"n{number}": OPEN for number in range(5000)})
    frames = wire.changes(snapshot(before), snapshot(before.with_changes({"n700": CLOSED})))
    assert [[wire.Row.of("n700", CLOSED)]] == [frame.rows for frame in list(frames)[:-1]]


def test_a_gate_without_changes_is_told_in_its_head_only():
    before = GateState("health", {"n1": CLOSED}, {"n1": "closed"}, armed=False)
    after = replace(before, armed=True, cap=CapState(1, 1, 0))
    frames = list(wire.changes(Snapshot({"health": before}), Snapshot({"health": after})))
    assert [wire.Complete([wire.Gate("health", True, "gate", CapState(1, 1, 0), ())])] == frames


def test_each_gate_is_told_by_its_name_and_all_in_their_order():
    states = {name: GateState(name, {"n1": CLOSED}) for name in ("b", "a")}
    *frames, complete = wire.changes(Snapshot(), Snapshot(states))
    assert [("b", "n1"), ("a", "n1")] == [(frame.gate, frame.rows[0].node) for frame in frames]
    assert ["b", "a"] == [gate.name for gate in complete.gates]


@pytest.mark.parametrize("decision", [OPEN, CLOSED, HELD])
def test_a_row_is_the_decision_but_for_when_it_is_made_again(decision):
    told = wire.Row.of("n1", decision).decision()
    assert msgspec.structs.replace(decision, changes_at=None) == told


def test_what_is_remembered_comes_in_pieces_that_are_bounded_by_pods_and_by_names():
    small = [PodRecord("ns", f"p{number}", "u", 1.0, 2.0) for number in range(450)]
    large = [
        PodRecord("ns", f"q{number}", "u", 1.0, 2.0, codes=b"\0" * 65_536, nodes=b"\0" * 262_144) for number in range(3)
    ]
    frames = list(wire.remembered([*small, *large]))
    assert [200, 200, 51, 1, 1] == [len(frame.entries) for frame in frames]
    assert [entry for frame in frames for entry in frame.entries] == [*small, *large]
    assert max(len(wire.write(frame)) for frame in frames) < wire.FRAME_LIMIT_BYTES / 10
