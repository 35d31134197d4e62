"""What of the capacity pods may not have: node_container_manager_linux.go of pkg/kubelet/cm."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import pytest

from agent.kubelet.node.facts import node_status
from agent.kubelet.node.pressure import thresholds_of
from agent.kubelet.node.reserved import reservation
from agent.wire.model import NodeStatus
from tests.agent.kubelet.node.test_facts import FACTS, NOW

CAPACITY = {"cpu": "4", "memory": "1000", "pods": "110", "ephemeral-storage": "2000", "example.com/gpu": "2"}


@pytest.mark.parametrize(
    ("system", "kube", "hard", "expected"),
    [
        pytest.param({}, {}, {}, {}, id="nothing"),
        pytest.param({"cpu": "500m"}, {"cpu": "0.25"}, {}, {"cpu": Fraction(3, 4)}, id="both are added"),
        pytest.param({}, {"memory": "100"}, {"memory.available": "10%"}, {"memory": 200}, id="a part of the memory"),
        pytest.param({}, {}, {"memory.available": "33.3%"}, {"memory": 333}, id="of a part the whole number below"),
        pytest.param({}, {}, {"nodefs.available": "5%"}, {"ephemeral-storage": 100}, id="a part of the storage"),
        pytest.param(
            {},
            {},
            {"imagefs.available": "5%", "pid.available": "9", "nodefs.inodesFree": "5"},
            {},
            id="others: nothing",
        ),
        pytest.param({"cpu": "4"}, {}, {}, {"cpu": 4}, id="all of it"),
    ],
)
def test_n96_what_is_reserved(
    system: Mapping[str, str], kube: Mapping[str, str], hard: Mapping[str, str], expected: Mapping[str, Fraction]
) -> None:
    assert expected == reservation(CAPACITY, (system, kube), thresholds_of(hard, {}, {}, {}))


def test_n96_a_soft_threshold_reserves_nothing() -> None:
    soft = {"memory.available": "10%"}
    assert reservation(CAPACITY, (), thresholds_of({}, soft, {"memory.available": "1m"}, {})) == {}


def test_n97_more_than_there_is_cannot_be_reserved() -> None:
    text = 'Resource "cpu" has a reservation of 4500m but capacity of 4. Expected capacity >= reservation.'
    with pytest.raises(ValueError, match=f"^invalid Node Allocatable configuration. {text}$"):
        reservation(CAPACITY, ({"cpu": "4"}, {"cpu": "500m", "memory": "1000"}), ())


def test_n98_what_is_reserved_is_not_allocatable_and_huge_pages_come_after_it() -> None:
    reserved = {"cpu": Fraction(1, 2), "memory": Fraction(2**30)}
    capacity = {**FACTS.capacity, "hugepages-2Mi": "1Gi"}
    made = node_status(replace(FACTS, capacity=capacity, reserved=reserved), NodeStatus(), [], NOW)
    assert ({"cpu": "3500m", "memory": str(6 * 2**30)}, capacity) == (
        {name: made.allocatable[name] for name in ("cpu", "memory")},
        made.capacity,
    )


def test_n98_a_capacity_that_shrank_below_what_is_reserved_leaves_nothing() -> None:
    facts = replace(FACTS, reserved={"ephemeral-storage": Fraction(11 * 2**30)})
    assert node_status(facts, NodeStatus(), [], NOW).allocatable["ephemeral-storage"] == "0"
