"""What two snapshots, one after the other, say has happened."""

from extender.policy.decision import CapState, Decision, GateState, HeldBy, Storm
from extender.policy.orders import Kind, Order, Orders
from extender.policy.snapshot import NOTHING, Snapshot
from extender.why.events import TEXT_LIMIT, events_between, events_of_orders
from tools.kit.cases import cases

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


@cases(
    "before, after, expected",
    ("it closes", OPEN, BAD, [("closed", "n1", "unhealthy", "dns failed", "", "")]),
    ("it opens", BAD, OPEN, [("opened", "n1", "", "", "", "")]),
    ("it is closed for another reason", BAD, OTHER, [("closed", "n1", "lost", "", "", "")]),
    ("the cap holds it open", OPEN, CAPPED, [("held", "n1", "unhealthy", "dns failed", "cap", "cap of 3")]),
    ("an older one closes", BAD, CAPPED, [("opened", "n1", "unhealthy", "dns failed", "cap", "cap of 3")]),
    ("there is room for it", CAPPED, BAD, [("closed", "n1", "unhealthy", "dns failed", "", "")]),
    ("it heals while it is held open", CAPPED, OPEN, [("released", "n1", "", "", "", "")]),
    ("a damping note is no cause", BAD, DAMPED, [("held", "n1", "unhealthy", "", "damping", DAMPED.note)]),
    ("a hold", OPEN, HOLD, [("closed", "n1", "held by an operator", "", "hold", "hold by ana: RMA")]),
    ("nobody expects a health pod there any more", OPEN, AWAY, []),
    ("a new node that is open", None, OPEN, []),
    ("a new node that is closed", None, BAD, [("closed", "n1", "unhealthy", "dns failed", "", "")]),
    ("it is no more", BAD, None, []),
)
def test_of_a_node(before, after, expected):
    assert expected == told(snapshot(before), snapshot(after))


def test_of_a_first_snapshot_only_what_is_closed_is_told():
    assert [] == told(NOTHING, snapshot(OPEN))
    assert [("closed", "n1")] == [row[:2] for row in told(NOTHING, snapshot(BAD))]


TWO_OPEN, AT_ONCE = "2 held open: 3 of 3 may be closed and are", "nodes closed at once for one cause, held open"
STORM, LARGER = Storm("unhealthy", "dns", 9), Storm("unhealthy", "dns", 12)


@cases(
    "before, after, expected",
    ("it is armed", {"armed": False}, {"armed": True}, [("order", "armed")]),
    ("it is put in shadow", {"armed": True}, {"armed": False}, [("order", "in shadow")]),
    ("the cap begins to hold nodes open", {"cap": CapState(3, 3, 0)}, {"cap": CapState(3, 3, 2)}, [("cap", TWO_OPEN)]),
    ("it holds more", {"cap": CapState(3, 3, 2)}, {"cap": CapState(3, 3, 4)}, []),
    ("a storm", {}, {"storms": (Storm("unhealthy", "dns", 9, "10.96.0.10 timed out"),)}, [("storm", f"9 {AT_ONCE}")]),
    ("a second storm", {"storms": (STORM,)}, {"storms": (LARGER, Storm("lost", "", 5))}, [("storm", f"5 {AT_ONCE}")]),
    ("it is over", {"storms": (STORM,)}, {}, [("stormEnded", "calm again")]),
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


POOL = {"kind": Kind.EXEMPT, "pool": "web", "node": ""}
FAULTS = ("a: is rubbish", "b: no order")


@cases(
    "before, after, expected",
    ("it is given", Orders(), Orders((order(),)), ["hold rma by ana: RMA 4711"]),
    ("it has ended", Orders((order(),)), Orders(), ["hold rma has ended by ana: RMA 4711"]),
    ("it is replaced", Orders((order(),)), Orders((order(**POOL),)), ["exempt rma of pool web by ana: RMA 4711"]),
    ("an invalid entry", Orders(faults=FAULTS[:1]), Orders(faults=FAULTS), ["ignored: b: no order"]),
    ("nothing has changed", Orders((order(),)), Orders((order(),)), []),
)
def test_of_orders(before, after, expected):
    assert expected == [event.note for event in events_of_orders(before, after, at=5.0)]
