"""What is told of containers and sandboxes that change (rows PL1-PL5)."""

import pytest

from agent.kubelet.pleg.events import EventType, events_between, pod_events
from tests.agent.kubelet.pleg.builders import PHASES, made

STARTED, DIED, REMOVED, CHANGED = EventType.STARTED, EventType.DIED, EventType.REMOVED, EventType.CHANGED
NONE = "-"


@pytest.mark.parametrize(
    ("before", "to_running", "to_exited", "to_unknown", "to_nothing"),
    [
        pytest.param("r", (), (DIED,), (CHANGED,), (DIED, REMOVED), id="PL1 running"),
        pytest.param("x", (STARTED,), (), (CHANGED,), (REMOVED,), id="PL2 exited"),
        pytest.param("u", (STARTED,), (DIED,), (), (DIED, REMOVED), id="PL3 unknown"),
        pytest.param("c", (STARTED,), (DIED,), (), (DIED, REMOVED), id="PL3 created is unknown"),
        pytest.param(NONE, (STARTED,), (DIED,), (CHANGED,), (), id="PL4 not there"),
    ],
)
def test_pl1_pl2_pl3_pl4_what_is_told_of_a_container(before, to_running, to_exited, to_unknown, to_nothing):
    told = {after: events_between(PHASES.get(before), PHASES.get(after)) for after in ("r", "x", "u", "c", NONE)}
    expected = {"r": to_running, "x": to_exited, "u": to_unknown, "c": to_unknown, NONE: to_nothing}
    assert expected == told


def test_pl5_sandboxes_are_told_of_as_containers():
    told = pod_events("p", made("p", "c1=r s1=S"), made("p", "c1=r s1=s s2=S"))
    assert [(DIED, "s1"), (STARTED, "s2")] == [(event.type, event.container_id) for event in told]


def test_pl5_of_two_with_one_id_the_container_counts_not_the_sandbox():
    assert [] == pod_events("p", made("p", "a=r"), made("p", "a=s a=r"))


def test_a_pod_that_is_the_same_is_told_of_nothing():
    assert [] == pod_events("p", made("p", "c1=r c2=x s1=S"), made("p", "c1=r c2=x s1=S"))
    assert [] == pod_events("p", None, None)
