"""Rows RZ: the conditions of a resize, as TestPodResizeConditions of status_manager_test.go of v1.36.3 and beyond."""

from agent.kubelet.status.generate import Inputs, generate_status
from agent.kubelet.status.resize import (
    NO_RESIZES,
    Resizes,
    backfilled,
    of_generation,
    with_pending,
    with_progress,
    without_pending,
    without_progress,
)
from agent.wire.containers import RuntimePod, Sandbox
from agent.wire.model import PodStatus
from agent.wire.semantics import Semantics
from tests.agent.kubelet.status.builders import NOW, condition, make_pod
from tools.kit.cases import cases

LATER = NOW + 10


def pending(reason: str, message: str = "", *, since: float = NOW, at: float = LATER, generation: int = 1):
    return _made("PodResizePending", reason, message, since, at, generation)


def progress(reason: str = "", message: str = "", *, since: float = NOW, at: float = LATER, generation: int = 1):
    return _made("PodResizeInProgress", reason, message, since, at, generation)


def _made(kind: str, reason: str, message: str, since: float, at: float, generation: int):
    times = {"last_transition_time": since, "last_probe_time": at}
    return condition(kind, "True", reason, message, observed_generation=generation, **times)


WAITS = with_pending(NO_RESIZES, "Infeasible", "no room", 1, NOW)[0]
RUNS = with_progress(NO_RESIZES, "", "", 1, NOW)[0]
FAILED = with_progress(RUNS, "Error", "so", 1, NOW)[0]
NEXT_GENERATION = pending("Infeasible", "no room", generation=2)
PENDING = ["foreign", "PodResizePending"]


@cases(
    "before, asked, expected, changed",
    ("RZ1 the first is a change", NO_RESIZES, ("Infeasible", "", 1), pending("Infeasible", since=LATER), True),
    ("RZ2 any other reason is Deferred", NO_RESIZES, ("OutOfcpu", "m", 1), pending("Deferred", "m", since=LATER), True),
    ("RZ3 another message is no change", WAITS, ("Infeasible", "else", 1), pending("Infeasible", "else"), False),
    ("RZ4 a new generation keeps its time", WAITS, ("Infeasible", "no room", 2), NEXT_GENERATION, True),
    ("RZ5 another reason, another time", WAITS, ("", "no room", 1), pending("Deferred", "no room", since=LATER), True),
)
def test_a_resize_that_is_not_granted(before: Resizes, asked, expected, changed: bool) -> None:
    assert (Resizes(pending=expected), changed) == with_pending(before, *asked, LATER)


@cases(
    "before, asked, expected, generation, changed",
    ("RZ6 the first", NO_RESIZES, ("", "", 2), progress(since=LATER, generation=2), 2, True),
    ("RZ7 a later one keeps the generation", RUNS, ("", "", 2), progress(), 1, False),
    ("RZ8 an error is a change", RUNS, ("Error", "so", 2), progress("Error", "so", since=LATER), 1, True),
    ("RZ9 without words the old ones stay", FAILED, ("", "", 2), progress("Error", "so"), 1, False),
    ("RZ10 other words are a change", FAILED, ("Error", "no", 2), progress("Error", "no"), 1, True),
)
def test_a_resize_that_is_not_yet_in_effect(before: Resizes, asked, expected, generation: int, changed: bool) -> None:
    assert (Resizes(in_progress=expected), generation, changed) == with_progress(before, *asked, LATER)


def test_rz11_each_is_taken_away_by_itself() -> None:
    both = Resizes(WAITS.pending, RUNS.in_progress)
    assert (RUNS, (WAITS, 1)) == (without_pending(both), without_progress(both))
    assert (NO_RESIZES, (NO_RESIZES, None)) == (without_pending(NO_RESIZES), without_progress(NO_RESIZES))


def test_rz12_what_was_said_before_is_said_on() -> None:
    said = (condition("Ready"), condition("PodResizePending", "False", "Deferred", "m", observed_generation=3))
    made = pending("Deferred", "m", since=LATER, generation=3)
    assert Resizes(pending=made, in_progress=RUNS.in_progress) == backfilled(RUNS, said, LATER)


def test_rz13_a_pod_without_a_generation_has_none_in_them() -> None:
    assert 0 == of_generation(WAITS, 0).pending.observed_generation
    assert WAITS == of_generation(WAITS, 7)


@cases(
    "resizes, fields, expected",
    ("RZ14 behind those of others", WAITS, {}, ["foreign", "PodResizePending"]),
    ("RZ15 waiting before running", Resizes(WAITS.pending, RUNS.in_progress), {}, [*PENDING, "PodResizeInProgress"]),
    ("RZ16 what the API server has of them is not taken over", NO_RESIZES, {}, ["foreign"]),
    ("RZ17 a pod that has ended has none", WAITS, {"pod_is_terminal": True}, ["foreign"]),
    ("CM19 an old kubelet keeps what is there", WAITS, {"semantics": Semantics(owns_unschedulable=True)}, PENDING),
)
def test_in_the_status(resizes: Resizes, fields, expected: list[str]) -> None:
    old = PodStatus(conditions=(condition("foreign"), condition("PodResizePending", reason="Deferred")))
    pod = make_pod("a", status=old)
    inputs = {"semantics": Semantics(), "resizes": resizes, **fields}
    made = generate_status(Inputs(pod, RuntimePod(pod.uid, (Sandbox(True, ""),), ()), **inputs), lambda _pod, s: s)
    types = [c.type for c in made.conditions]
    assert expected == types[: types.index("PodReadyToStartContainers")]
