"""What an extender that starts reads of what another one wrote on a Node: whether it was healthy once."""

import pytest

from extender.cluster import observed
from extender.outlets.node_condition_text import standing_of
from tests.extender.builders import node, node_json, seen
from tests.extender.outlets.gate_states import closed, gate, gates, opened

OURS = "readygate.dev/NodeHealthy"


def told_good(status: str, reason: str, *, of: str = OURS) -> bool:
    value = node_json("n1")
    value["status"]["conditions"] = [{"type": of, "status": status, "reason": reason}]
    return observed.observed_node(seen(observed.Node, value), 0.0).told_good


@pytest.mark.parametrize(
    ("decision", "expected"),
    [
        pytest.param(opened(), True, id="open"),
        pytest.param(closed("not ready"), True, id="closed after it was good"),
        pytest.param(closed("lost"), True, id="lost, the same"),
        pytest.param(closed("missing", new=True), False, id="new"),
        pytest.param(closed("lost", new=True), False, id="new, and lost before it was good"),
        pytest.param(closed("held", held_by="hold"), False, id="held closed: that tells nothing of its health"),
        pytest.param(opened("missing", held_by="exempt"), False, id="open by an order: neither does that"),
        pytest.param(opened("not ready", held_by="cap"), False, id="held open: to be sure, nor does that"),
    ],
)
def test_what_is_written_tells_whether_it_was_healthy_once(decision, expected) -> None:
    standing = standing_of(gates(gate("a", n1=decision)), "n1")
    assert expected == told_good(standing.status, standing.reason)


def test_nobody_elses_condition_tells() -> None:
    assert [False, False] == [
        told_good("True", "Healthy", of="Ready"),
        observed.observed_node(node("n1"), 0.0).told_good,
    ]
