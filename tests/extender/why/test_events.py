"""What two snapshots, one after the other, say has happened."""

import pytest

from extender.policy.decision import CapState, Decision, GateState, HeldBy, Storm
from extender.policy.orders import Kind, Order, Orders
from extender.policy.snapshot import NOTHING, Snapshot
from extender.why.events import TEXT_LIMIT, events_between, events_of_orders

OPEN = Decision("")
BAD = Decision("unhealthy", "ns/pod", "dns failed", verdict="unhealthy")
CAPPED = Decision("", evidence="dns failed", verdict="unhealthy", held_by=HeldBy.CAP, note="cap of 3")
DAMPED = Decision("unhealthy", evidence="a disk is slow", held_by=HeldBy.DAMPING, note="flapped 3 times")
HOLD = Decision("held by an operator", held_by=HeldBy.HOLD, note="hold by ana: RMA")
AWAY = Decision("", held_by=HeldBy.NOT_GATED, note="its DaemonSet does not run there")
OTHER = Decision("lost", verdict="lost")


def snapshot(decision, **more):
    decisions = {} if decision is None else {"n1": decision}
    return Snapshot({"base": GateState("base", decisions, **more)}, frozenset(decisions))


def told(before, after):
    events = events_between(before, after, at=5.0)
    return [(one.kind, one.node, one.reason, one.evidence, one.held_by, one.note) for one in events]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(OPEN, BAD, [("closed", "n1", "unhealthy", "dns failed", "", "")], id="it closes"),
        pytest.param(BAD, OPEN, [("opened", "n1", "", "", "", "")], id="it opens"),
        pytest.param(BAD, OTHER, [("closed", "n1", "lost", "", "", "")], id="it is closed for another reason"),
        pytest.param(
            OPEN, CAPPED, [("held", "n1", "unhealthy", "dns failed", "cap", "cap of 3")], id="the cap holds it open"
        ),
        pytest.param(
            BAD,
            CAPPED,
            [("opened", "n1", "unhealthy", "dns failed", "cap", "cap of 3")],
            id="an older one closes",
        ),
        pytest.param(CAPPED, BAD, [("closed", "n1", "unhealthy", "dns failed", "", "")], id="there is room for it"),
        pytest.param(CAPPED, OPEN, [("released", "n1", "", "", "", "")], id="it heals while it is held open"),
        pytest.param(
            BAD,
            DAMPED,
            [("held", "n1", "unhealthy", "", "damping", "flapped 3 times")],
            id="damped: what is said beside that it is well is no cause",
        ),
        pytest.param(
            OPEN,
            HOLD,
            [("closed", "n1", "held by an operator", "", "hold", "hold by ana: RMA")],
            id="a hold",
        ),
        pytest.param(OPEN, AWAY, [], id="nobody expects a health pod there any more"),
        pytest.param(None, OPEN, [], id="a new node that is open"),
        pytest.param(None, BAD, [("closed", "n1", "unhealthy", "dns failed", "", "")], id="a new node that is closed"),
        pytest.param(BAD, None, [], id="it is no more"),
    ],
)
def test_of_a_node(before, after, expected):
    assert expected == told(snapshot(before), snapshot(after))


def test_of_a_first_snapshot_only_what_is_closed_is_told():
    assert [] == told(NOTHING, snapshot(OPEN))
    assert [("closed", "n1")] == [row[:2] for row in told(NOTHING, snapshot(BAD))]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param({"armed": False}, {"armed": True}, [("order", "armed")], id="it is armed"),
        pytest.param({"armed": True}, {"armed": False}, [("order", "in shadow")], id="it is put in shadow"),
        pytest.param(
            {"cap": CapState(3, 3, 0)},
            {"cap": CapState(3, 3, 2)},
            [("cap", "2 held open: 3 of 3 may be closed and are")],
            id="the cap begins to hold nodes open",
        ),
        pytest.param({"cap": CapState(3, 3, 2)}, {"cap": CapState(3, 3, 4)}, [], id="it holds more"),
        pytest.param(
            {},
            {"storms": (Storm("unhealthy", "dns", 9, "10.96.0.10 timed out"),)},
            [("storm", "9 nodes closed at once for one cause, held open")],
            id="a storm",
        ),
        pytest.param(
            {"storms": (Storm("unhealthy", "dns", 9),)},
            {"storms": (Storm("unhealthy", "dns", 12), Storm("lost", "", 5))},
            [("storm", "5 nodes closed at once for one cause, held open")],
            id="a second one, for another cause",
        ),
        pytest.param({"storms": (Storm("unhealthy", "dns", 9),)}, {}, [("stormEnded", "calm again")], id="it is over"),
    ],
)
def test_of_a_gate(before, after, expected):
    assert expected == [(row[0], row[5]) for row in told(snapshot(OPEN, **before), snapshot(OPEN, **after))]


def test_what_a_node_says_of_itself_is_one_line_and_cut():
    hostile = Decision("unhealthy", evidence="x\r\n\x1b[31m" + "y" * 9999, verdict="unhealthy")
    ((*_, evidence, _, _),) = told(snapshot(OPEN), snapshot(hostile))
    assert (TEXT_LIMIT, "x [31my") == (len(evidence), evidence[:7])


def order(name="rma", **changes):
    fields = {"kind": Kind.HOLD, "gate": "", "pool": "", "node": "n1", "author": "ana", "reason": "RMA 4711"}
    return Order(name, **fields | changes, created=1.0, expires=9.0)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(Orders(), Orders((order(),)), ["hold rma by ana: RMA 4711"], id="it is given"),
        pytest.param(Orders((order(),)), Orders(), ["hold rma has ended by ana: RMA 4711"], id="it has ended"),
        pytest.param(
            Orders((order(),)),
            Orders((order(kind=Kind.EXEMPT, pool="web", node=""),)),
            ["exempt rma of pool web by ana: RMA 4711"],
            id="it is another one",
        ),
        pytest.param(
            Orders(faults=("a: is rubbish",)),
            Orders(faults=("a: is rubbish", "b: no order")),
            ["ignored: b: no order"],
            id="an entry is wrong",
        ),
        pytest.param(Orders((order(),)), Orders((order(),)), [], id="nothing has changed"),
    ],
)
def test_of_orders(before, after, expected):
    assert expected == [event.note for event in events_of_orders(before, after, at=5.0)]
