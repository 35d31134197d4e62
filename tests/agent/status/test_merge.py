"""The pure half of status_manager_test.go of v1.36.3: rows S21-S24, S67-S83, S88-S90."""

import random
from dataclasses import replace

import pytest

from agent.model import (
    ContainerRunning,
    ContainerStatus,
    ContainerTerminated,
    PodPhase,
    PodStatus,
)
from agent.status import merge
from agent.status.conditions import find_condition
from tests.agent.status.builders import (
    NOW,
    condition,
    exited,
    make_pod,
    make_status,
    running,
    words,
)

POD = make_pod("c1")
READY = (condition("Ready"), condition("ContainersReady"))


def test_s21_the_order_of_containers_does_not_matter():
    statuses = [ContainerStatus(name=f"container{i}") for i in range(10)]
    expected = merge.normalized(POD, make_status(container_statuses=tuple(statuses)))
    for seed in range(10):
        random.Random(seed).shuffle(statuses)
        made = merge.normalized(POD, make_status(container_statuses=tuple(statuses)))
        assert merge.equal_for_kubelet(expected, made)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(
            make_status(conditions=(condition("foreign"),)),
            make_status(conditions=(condition("foreign", "False"),)),
            True,
            id="S22 foreign condition differs",
        ),
        pytest.param(
            make_status(extra={"resourceClaimStatuses": b"[]"}), make_status(), True, id="S22 S91 fields not ours"
        ),
        pytest.param(
            make_status(conditions=(condition("Ready", last_transition_time=NOW, observed_generation=1),)),
            make_status(conditions=(condition("Ready", last_transition_time=NOW + 9, observed_generation=2),)),
            True,
            id="time and generation of a condition do not count",
        ),
        pytest.param(
            make_status(conditions=(condition("Ready"),)),
            make_status(conditions=(condition("Ready", message="m"),)),
            False,
            id="a message counts",
        ),
        pytest.param(
            make_status(conditions=(condition("DisruptionTarget"),)), make_status(), False, id="a shared one counts"
        ),
        pytest.param(
            make_status(conditions=READY),
            make_status(conditions=READY[:1]),
            False,
            id="S89 an owned condition that vanished counts",
        ),
        pytest.param(
            make_status(container_statuses=None), make_status(container_statuses=()), True, id="no list is an empty one"
        ),
        pytest.param(
            make_status(observed_generation=1), make_status(observed_generation=2), False, id="generation of the status"
        ),
        pytest.param(make_status(phase="Running"), make_status(phase=PodPhase.RUNNING), True, id="a phase is its word"),
    ],
)
def test_equality(old, new, expected):
    assert expected is merge.equal_for_kubelet(old, new)


def test_s23_termination_messages_share_twelve_kibibytes():
    containers = [f"container{i:02}" for i in range(48)]
    statuses = tuple(
        replace(exited(name), state=ContainerTerminated(0, message="x" * length))
        for name, length in zip(containers, range(192, 240), strict=True)
    )
    made = merge.normalized(make_pod(*containers), make_status(container_statuses=statuses))
    lengths = [len(s.state.message) for s in made.container_statuses]
    assert min(lengths) >= 192
    assert max(lengths) <= 256
    assert sum(lengths) <= merge.TERMINATION_MESSAGES_BYTES


def test_s90_three_containers_leave_4096_bytes_each():
    status = replace(exited("a"), state=ContainerTerminated(1, message="x" * 5000))
    made = merge.normalized(make_pod("a", "b", "c"), make_status(container_statuses=(status,)))
    assert len(made.container_statuses[0].state.message) == 4096


def test_a_cut_message_stays_text():
    status = replace(exited("a"), state=ContainerTerminated(1, message="ä" * 5000))
    made = merge.normalized(make_pod("a", "b", "c", "d", "e"), make_status(container_statuses=(status,)))
    assert made.container_statuses[0].state.message == "ä" * (12288 // 5 // 2)


def test_s24_all_times_are_whole_seconds():
    ended = ContainerTerminated(0, started_at=NOW + 0.1, finished_at=NOW + 0.2)
    container = ContainerStatus("c1", state=ContainerRunning(NOW + 0.3), last_state=ended)
    whole = ContainerStatus(
        "c1", state=ContainerRunning(NOW), last_state=replace(ended, started_at=NOW, finished_at=NOW)
    )
    status = make_status(
        start_time=NOW + 0.9,
        conditions=(condition("Ready", last_transition_time=NOW + 0.5, last_probe_time=NOW + 0.6),),
        container_statuses=(container,),
        init_container_statuses=(container,),
    )
    expected = make_status(
        start_time=NOW,
        conditions=(condition("Ready", last_transition_time=NOW, last_probe_time=NOW),),
        container_statuses=(whole,),
        init_container_statuses=(whole,),
    )
    assert expected == merge.normalized(POD, status)


def test_init_statuses_follow_the_spec_and_app_statuses_their_names():
    pod = make_pod("z", "a", init=("second", "first"))
    status = make_status(
        container_statuses=(running("z"), running("a")), init_container_statuses=(exited("first"), exited("second"))
    )
    made = merge.normalized(pod, status)
    assert [s.name for s in made.container_statuses] == ["a", "z"]
    assert [s.name for s in made.init_container_statuses] == ["second", "first"]


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        pytest.param([], [], None, id="S67 no condition"),
        pytest.param([condition("Ready")], [], NOW, id="S68 no old one"),
        pytest.param(
            [condition("Ready")], [condition("Ready", "False", last_transition_time=1.0)], NOW, id="S69 changed"
        ),
        pytest.param([condition("Ready")], [condition("Ready", last_transition_time=1.0)], 1.0, id="S70 same"),
    ],
)
def test_transition_time(new, old, expected):
    made = merge.with_transition_time(
        make_status(conditions=tuple(new)), make_status(conditions=tuple(old)), "Ready", NOW
    )
    found = find_condition(made.conditions, "Ready")
    assert expected == (found and found.last_transition_time)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(PodStatus(), PodStatus(), NOW, id="S1 none yet: now"),
        pytest.param(PodStatus(start_time=1.0), PodStatus(start_time=2.0), 1.0, id="S2 the old one is kept"),
        pytest.param(PodStatus(), PodStatus(start_time=2.0), 2.0, id="the new one if there was none"),
    ],
)
def test_start_time(old, new, expected):
    assert expected == merge.settled(POD, old, new, NOW).start_time


def test_observed_generation_never_goes_down():
    made = merge.settled(POD, PodStatus(observed_generation=5), PodStatus(observed_generation=3), NOW)
    assert made.observed_generation == 5


# --- what is written ---

BASE = make_status(phase=PodPhase.RUNNING, conditions=READY)
FALSE = "False"


def target(reason, status="True"):
    return condition("DisruptionTarget", status, reason)


def failed(*conditions, reason="", message=""):
    return make_status(phase=PodPhase.FAILED, conditions=conditions, reason=reason, message=message)


POD_FAILED = {"Ready": (FALSE, "PodFailed", ""), "ContainersReady": (FALSE, "PodFailed", "")}
ALL_READY = {"Ready": ("True", "", ""), "ContainersReady": ("True", "", "")}
EVICTED = target("EvictedByEvictionAPI")
BY_KUBELET = target("TerminationByKubelet")


@pytest.mark.parametrize(
    ("old", "new", "could_run", "phase", "expected"),
    [
        pytest.param(BASE, BASE, False, "Running", ALL_READY, id="S71 no change"),
        pytest.param(
            BASE,
            failed(*READY, BY_KUBELET),
            False,
            "Failed",
            {**POD_FAILED, "DisruptionTarget": words(BY_KUBELET)},
            id="S72 failed with DisruptionTarget, nothing runs",
        ),
        pytest.param(BASE, failed(*READY, BY_KUBELET), True, "Running", ALL_READY, id="S73 the same, could run"),
        pytest.param(
            replace(BASE, conditions=(*READY, BY_KUBELET)),
            BASE,
            False,
            "Running",
            {**ALL_READY, "DisruptionTarget": words(BY_KUBELET)},
            id="S74 the old DisruptionTarget is kept",
        ),
        pytest.param(
            replace(BASE, conditions=(*READY, EVICTED)),
            failed(*READY, BY_KUBELET),
            False,
            "Failed",
            {**POD_FAILED, "DisruptionTarget": words(BY_KUBELET)},
            id="S75 overridden when it fails",
        ),
        pytest.param(
            replace(BASE, conditions=(*READY, EVICTED)),
            replace(BASE, conditions=(*READY, BY_KUBELET)),
            False,
            "Running",
            {**ALL_READY, "DisruptionTarget": words(EVICTED)},
            id="S76 not overridden while it runs",
        ),
        pytest.param(
            replace(BASE, conditions=(*READY, EVICTED)),
            failed(*READY, BY_KUBELET),
            True,
            "Running",
            {**ALL_READY, "DisruptionTarget": words(EVICTED)},
            id="S77 not overridden while it could run",
        ),
        pytest.param(
            BASE,
            replace(BASE, conditions=(condition("Ready", FALSE), condition("ContainersReady"))),
            False,
            "Running",
            {**ALL_READY, "Ready": (FALSE, "", "")},
            id="S78 Ready turns False",
        ),
        pytest.param(
            replace(BASE, conditions=(*READY, condition("mine"))),
            BASE,
            False,
            "Running",
            {**ALL_READY, "mine": ("True", "", "")},
            id="S79 foreign condition kept",
        ),
        pytest.param(
            replace(BASE, conditions=(*READY, condition("mine"))),
            replace(BASE, conditions=(condition("Ready", FALSE), condition("ContainersReady"))),
            False,
            "Running",
            {**ALL_READY, "Ready": (FALSE, "", ""), "mine": ("True", "", "")},
            id="S80 foreign kept and Ready changed",
        ),
        pytest.param(
            replace(BASE, conditions=(*READY, condition("mine"))),
            replace(BASE, conditions=(*READY, condition("mine", FALSE))),
            False,
            "Running",
            {**ALL_READY, "mine": ("True", "", "")},
            id="S81 the API's foreign condition wins",
        ),
        pytest.param(
            BASE,
            failed(*READY, reason="Evicted", message="Was Evicted"),
            False,
            "Failed",
            POD_FAILED,
            id="S82 evicted, nothing runs",
        ),
        pytest.param(
            BASE,
            failed(*READY, reason="Evicted", message="Was Evicted"),
            True,
            "Running",
            ALL_READY,
            id="S83 could run",
        ),
    ],
)
def test_merge(old, new, could_run, phase, expected):
    made = merge.merged(POD, old, new, could_run=could_run, wall=NOW)
    assert (phase, expected) == (made.phase, {c.type: words(c) for c in made.conditions})


@pytest.mark.parametrize(
    ("could_run", "expected"),
    [
        pytest.param(False, ("Evicted", "new"), id="S82 new words"),
        pytest.param(True, ("Old", "old"), id="S83 old words"),
    ],
)
def test_reason_and_message_follow_the_phase(could_run, expected):
    old = replace(BASE, reason="Old", message="old")
    made = merge.merged(POD, old, failed(reason="Evicted", message="new"), could_run=could_run, wall=NOW)
    assert expected == (made.reason, made.message)


def test_fields_that_are_not_ours_come_from_the_api():
    old = replace(BASE, extra={"resourceClaimStatuses": b'[{"name":"a"}]'})
    new = replace(BASE, extra={"resourceClaimStatuses": b"[]"})
    assert old.extra == merge.merged(POD, old, new, could_run=False, wall=NOW).extra


def test_foreign_conditions_come_first():
    old = replace(BASE, conditions=(*READY, condition("mine")))
    made = merge.merged(POD, old, BASE, could_run=False, wall=NOW)
    assert [c.type for c in made.conditions] == ["mine", "Ready", "ContainersReady"]
