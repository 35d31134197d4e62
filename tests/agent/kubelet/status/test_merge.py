"""The pure half of status_manager_test.go of v1.36.3: rows S21-S24, S67-S83, S88-S90."""

import random
from dataclasses import replace

import pytest

from agent.kubelet.status import merge
from agent.kubelet.status.conditions import find_condition
from agent.wire.model import Condition, ContainerRunning, ContainerStatus, ContainerTerminated, PodPhase, PodStatus
from agent.wire.semantics import Semantics
from tests.agent.kubelet.status.builders import NOW, condition, exited, make_pod, make_status, running, words

SEMANTICS = Semantics()
POD = make_pod("c1")
READY = (condition("Ready"), condition("ContainersReady"))


def test_s21_the_order_of_containers_does_not_matter() -> None:
    statuses = [ContainerStatus(name=f"container{i}") for i in range(10)]
    expected = merge.normalized(POD, make_status(container_statuses=tuple(statuses)))
    for seed in range(10):
        random.Random(seed).shuffle(statuses)
        made = merge.normalized(POD, make_status(container_statuses=tuple(statuses)))
        assert merge.equal_for_kubelet(expected, made, SEMANTICS)


def conditions(*given: Condition) -> PodStatus:
    return make_status(conditions=given)


EARLY = condition("Ready", last_transition_time=NOW, observed_generation=1)
LATE = condition("Ready", last_transition_time=NOW + 9, observed_generation=2)
SAYS_MORE = condition("Ready", message="m")
CLAIMS = make_status(extra={"resourceClaimStatuses": b"[]"})
NO_LIST, EMPTY_LIST = make_status(container_statuses=None), make_status(container_statuses=())
WORD, PHASE = make_status(phase="Running"), make_status(phase=PodPhase.RUNNING)
FIRST, SECOND = make_status(observed_generation=1), make_status(observed_generation=2)
ALIKE = [
    pytest.param(conditions(condition("mine")), conditions(condition("mine", "False")), id="S22 foreign one differs"),
    pytest.param(CLAIMS, make_status(), id="S22 S91 fields not ours"),
    pytest.param(conditions(EARLY), conditions(LATE), id="time and generation of a condition do not count"),
    pytest.param(NO_LIST, EMPTY_LIST, id="no list is an empty one"),
    pytest.param(WORD, PHASE, id="a phase is its word"),
]
UNLIKE = [
    pytest.param(conditions(condition("Ready")), conditions(SAYS_MORE), id="a message counts"),
    pytest.param(conditions(condition("DisruptionTarget")), make_status(), id="a shared one counts"),
    pytest.param(conditions(*READY), conditions(*READY[:1]), id="S89 an owned condition that vanished counts"),
    pytest.param(FIRST, SECOND, id="generation of the status"),
]


@pytest.mark.parametrize(("old", "new"), ALIKE)
def test_statuses_the_kubelet_takes_for_equal(old: PodStatus, new: PodStatus) -> None:
    assert merge.equal_for_kubelet(old, new, SEMANTICS) is True


@pytest.mark.parametrize(("old", "new"), UNLIKE)
def test_statuses_the_kubelet_tells_apart(old: PodStatus, new: PodStatus) -> None:
    assert merge.equal_for_kubelet(old, new, SEMANTICS) is False


def test_s23_termination_messages_share_twelve_kibibytes() -> None:
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


def test_s90_three_containers_leave_4096_bytes_each() -> None:
    status = replace(exited("a"), state=ContainerTerminated(1, message="x" * 5000))
    made = merge.normalized(make_pod("a", "b", "c"), make_status(container_statuses=(status,)))
    assert len(made.container_statuses[0].state.message) == 4096


def test_a_cut_message_stays_text() -> None:
    status = replace(exited("a"), state=ContainerTerminated(1, message="ä" * 5000))
    made = merge.normalized(make_pod("a", "b", "c", "d", "e"), make_status(container_statuses=(status,)))
    assert made.container_statuses[0].state.message == "ä" * (12288 // 5 // 2)


def test_s24_all_times_are_whole_seconds() -> None:
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


def test_init_statuses_follow_the_spec_and_app_statuses_their_names() -> None:
    pod = make_pod("z", "a", init=("second", "first"))
    status = make_status(
        container_statuses=(running("z"), running("a")), init_container_statuses=(exited("first"), exited("second"))
    )
    made = merge.normalized(pod, status)
    assert [s.name for s in made.container_statuses] == ["a", "z"]
    assert [s.name for s in made.init_container_statuses] == ["second", "first"]


IS, WAS = condition("Ready"), condition("Ready", last_transition_time=1.0)
WAS_FALSE = condition("Ready", "False", last_transition_time=1.0)


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        pytest.param([], [], None, id="S67 no condition"),
        pytest.param([IS], [], NOW, id="S68 no old one"),
        pytest.param([IS], [WAS_FALSE], NOW, id="S69 changed"),
        pytest.param([IS], [WAS], 1.0, id="S70 same"),
    ],
)
def test_transition_time(new: list[Condition], old: list[Condition], expected: float | None) -> None:
    made = merge.with_transition_time(conditions(*new), conditions(*old), "Ready", NOW)
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
def test_start_time(old: PodStatus, new: PodStatus, expected: float) -> None:
    assert expected == merge.settled(POD, old, new, NOW, Semantics()).start_time


def test_observed_generation_never_goes_down() -> None:
    made = merge.settled(POD, PodStatus(observed_generation=5), PodStatus(observed_generation=3), NOW, Semantics())
    assert made.observed_generation == 5


# --- what is written ---

Words = tuple[str, str, str]  # status, reason, message


def target(reason: str) -> Condition:
    return condition("DisruptionTarget", "True", reason)


def base(*more: Condition) -> PodStatus:
    """Running and ready, with more conditions."""
    return make_status(phase=PodPhase.RUNNING, conditions=(*READY, *more))


def failed(*given: Condition, reason: str = "", message: str = "") -> PodStatus:
    return make_status(phase=PodPhase.FAILED, conditions=given, reason=reason, message=message)


def row(
    name: str,
    old: PodStatus,
    new: PodStatus,
    phase: str = "Running",
    *,
    could_run: bool = False,
    ready: Words = ("True", "", ""),
    **others: Words,
) -> object:
    """What is written: the phase, Ready, and others. ContainersReady is as Ready but where it is said."""
    return pytest.param(old, new, could_run, phase, {"ContainersReady": ready, "Ready": ready, **others}, id=name)


BASE = base()
EVICTED, BY_KUBELET = target("EvictedByEvictionAPI"), target("TerminationByKubelet")
MINE, MINE_FALSE = condition("mine"), condition("mine", "False")
NOT_READY = replace(BASE, conditions=(condition("Ready", "False"), condition("ContainersReady")))
ENDED, EVICTION = failed(*READY, BY_KUBELET), failed(*READY, reason="Evicted", message="Was Evicted")
FAILED = ("False", "PodFailed", "")
TRUE, FALSE = ("True", "", ""), ("False", "", "")
BY_API, OURS = {"DisruptionTarget": words(EVICTED)}, {"DisruptionTarget": words(BY_KUBELET)}


@pytest.mark.parametrize(
    ("old", "new", "could_run", "phase", "expected"),
    [
        row("S71 no change", BASE, BASE),
        row("S72 failed with DisruptionTarget, nothing runs", BASE, ENDED, "Failed", ready=FAILED, **OURS),
        row("S73 the same, could run", BASE, ENDED, could_run=True),
        row("S74 the old DisruptionTarget is kept", base(BY_KUBELET), BASE, **OURS),
        row("S75 overridden when it fails", base(EVICTED), ENDED, "Failed", ready=FAILED, **OURS),
        row("S76 not overridden while it runs", base(EVICTED), base(BY_KUBELET), **BY_API),
        row("S77 not overridden while it could run", base(EVICTED), ENDED, could_run=True, **BY_API),
        row("S78 Ready turns False", BASE, NOT_READY, ready=FALSE, ContainersReady=TRUE),
        row("S79 foreign condition kept", base(MINE), BASE, mine=TRUE),
        row("S80 foreign kept and Ready changed", base(MINE), NOT_READY, ready=FALSE, ContainersReady=TRUE, mine=TRUE),
        row("S81 the API's foreign condition wins", base(MINE), base(MINE_FALSE), mine=TRUE),
        row("S82 evicted, nothing runs", BASE, EVICTION, "Failed", ready=FAILED),
        row("S83 could run", BASE, EVICTION, could_run=True),
    ],
)
def test_merge(old: PodStatus, new: PodStatus, could_run: bool, phase: str, expected: dict[str, Words]) -> None:
    made = merge.merged(POD, old, new, could_run=could_run, wall=NOW, semantics=SEMANTICS)
    assert (phase, expected) == (made.phase, {c.type: words(c) for c in made.conditions})


@pytest.mark.parametrize(
    ("could_run", "expected"),
    [
        pytest.param(False, ("Evicted", "new"), id="S82 new words"),
        pytest.param(True, ("Old", "old"), id="S83 old words"),
    ],
)
def test_reason_and_message_follow_the_phase(could_run: bool, expected: tuple[str, str]) -> None:
    old = replace(BASE, reason="Old", message="old")
    made = merge.merged(
        POD, old, failed(reason="Evicted", message="new"), could_run=could_run, wall=NOW, semantics=SEMANTICS
    )
    assert expected == (made.reason, made.message)


def test_fields_that_are_not_ours_come_from_the_api() -> None:
    old = replace(BASE, extra={"resourceClaimStatuses": b'[{"name":"a"}]'})
    new = replace(BASE, extra={"resourceClaimStatuses": b"[]"})
    assert old.extra == merge.merged(POD, old, new, could_run=False, wall=NOW, semantics=SEMANTICS).extra


def test_foreign_conditions_come_first() -> None:
    old = replace(BASE, conditions=(*READY, condition("mine")))
    made = merge.merged(POD, old, BASE, could_run=False, wall=NOW, semantics=SEMANTICS)
    assert [c.type for c in made.conditions] == ["mine", "Ready", "ContainersReady"]
