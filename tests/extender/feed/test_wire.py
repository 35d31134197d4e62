"""Frames of the feed: what goes in comes out, however it is cut, and what is no feed is refused in one line."""

import math

import pytest

from extender.counts import Counts, RequestResult
from extender.feed import wire
from extender.policy.decision import Decision
from extender.status import CacheStatus, Status

OPEN, CLOSED = Decision(""), Decision("closed", "ns/pod", "evidence", 5.5, 9.0)


def status(**changes):
    counts = Counts()
    counts.count(RequestResult.ANSWERED)
    counts.answered_in(0.0003)
    counts.refuse(["why"])
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
    wire.Said(status()),
    wire.Changes([wire.Row("n1", "", "", "", 1.0), wire.Row("n2", "closed", "ns/p", "e", 2.0)], ["n3"]),
    wire.Complete(),
    wire.Beats({"n1": 3.25}),
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
def test_changes(before, after, told):
    frames = list(wire.changes(before, after))
    assert (set(after), told) == applied(before, frames)
    assert frames[-1] == wire.Complete()


def test_changes_and_beats_come_in_pieces_with_rests_where_nothing_has_changed():
    before = {f"n{number}": OPEN for number in range(1200)}
    after = before | {"n700": CLOSED}
    rows = [None if frame is None else len(frame.rows) for frame in list(wire.changes(before, after))[:-1]]
    assert rows == [None, 1, None, None, None, None]
    assert [500, 500, 200] == [len(frame.beats) for frame in wire.beats(dict.fromkeys(before, 1.0))]
