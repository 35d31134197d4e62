"""The manager's half of status_manager_test.go of v1.36.3: rows S1-S20, S59-S65, S88, S99, S100."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from agent.kubelet.status.conditions import find_condition
from agent.wire.model import PodPhase, PodStatus
from kube.errors import ServerError
from tests.agent.kubelet.status.builders import NOW, condition, exited, make_pod, make_status, waiting
from tests.agent.kubelet.status.scene import Scene

RUNNING = make_status(phase=PodPhase.RUNNING)
PENDING = make_status(phase=PodPhase.PENDING)


def with_ready(word: str) -> PodStatus:
    return make_status(phase=PodPhase.RUNNING, conditions=(condition("Ready", word),))


def test_s1_a_new_status_is_one_update_with_a_start_time() -> None:
    scene = Scene()
    assert scene.set(RUNNING)
    assert (scene.status.start_time, scene.sync()) == (NOW, "GET PATCH")


def test_s2_the_start_time_of_the_api_is_kept() -> None:
    scene = Scene(replace(make_pod("c1"), status=make_status(start_time=NOW - 60)))
    scene.set(RUNNING)
    assert scene.status.start_time == NOW - 60


def test_s3_a_new_ready_condition_gets_a_transition_time() -> None:
    scene = Scene()
    scene.set(with_ready("True"))
    assert find_condition(scene.status.conditions, "Ready").last_transition_time == NOW


def test_s4_two_different_statuses_are_two_updates() -> None:
    scene = Scene()
    assert [scene.set(RUNNING), scene.set(PENDING)] == [True, True]


def test_s5_a_changed_status_keeps_its_start_time_in_whole_seconds() -> None:
    scene = Scene()
    scene.set(replace(RUNNING, start_time=NOW + 0.7))
    scene.set(replace(PENDING, start_time=NOW + 60))
    assert scene.status.start_time == NOW


def test_s6_a_changed_condition_gets_a_new_transition_time() -> None:
    scene = Scene()
    scene.set(with_ready("True"))
    scene.clock.time += 5
    scene.set(with_ready("False"))
    assert find_condition(scene.status.conditions, "Ready").last_transition_time == NOW + 5


def test_s7_the_same_status_twice_is_one_update() -> None:
    scene = Scene()
    assert [scene.set(RUNNING), scene.set(RUNNING)] == [True, False]


def test_s8_the_same_condition_keeps_its_transition_time() -> None:
    scene = Scene()
    scene.set(with_ready("True"))
    scene.clock.time += 5
    assert scene.set(with_ready("True")) is False
    assert find_condition(scene.status.conditions, "Ready").last_transition_time == NOW


def other_uid(scene: Scene) -> None:
    scene.client.pod = replace(scene.client.pod, uid="another")


def not_found(scene: Scene) -> None:
    scene.client.pod = None


def broken_get(scene: Scene) -> None:
    scene.client.errors["GET"] = [ServerError]


def deleted(scene: Scene, status: PodStatus = RUNNING) -> None:
    scene.client.pod = replace(scene.client.pod, deletion_timestamp=NOW, status=status)


@pytest.mark.parametrize(
    ("arrange", "expected"),
    [
        pytest.param(not_found, "GET", id="S9 S12 not found"),
        pytest.param(lambda _room: None, "GET PATCH", id="S10 S14 found"),
        pytest.param(other_uid, "GET", id="S11 S13 another uid"),
        pytest.param(deleted, "GET PATCH", id="S15 being deleted, running"),
        pytest.param(
            lambda scene: deleted(scene, make_status(phase=PodPhase.FAILED)),
            "GET PATCH",
            id="S16 deleted, not finished",
        ),
        pytest.param(broken_get, "GET", id="S17 the read fails"),
    ],
)
def test_one_sync(arrange: Callable[[Scene], None], expected: str) -> None:
    scene = Scene()
    scene.set(RUNNING)
    arrange(scene)
    assert expected == scene.sync()


def test_a_pod_created_anew_is_forgotten() -> None:
    scene = Scene()
    scene.set(RUNNING)
    other_uid(scene)
    scene.sync()
    assert scene.status is None


def test_s18_of_three_versions_only_the_newest_is_written() -> None:
    scene = Scene()
    for message in ("first", "second", "third"):
        scene.set(replace(RUNNING, message=message))
    assert (scene.sync(everything=True), scene.sync()) == ("GET PATCH", "")
    assert scene.client.bodies[0]["status"]["message"] == "third"


def test_s19_the_same_status_again_is_not_written() -> None:
    scene = Scene()
    scene.set(RUNNING)
    scene.sync()
    scene.learn()
    scene.set(RUNNING)
    assert scene.sync(everything=True) == ""


def test_s20_a_status_the_api_has_already_is_read_but_not_written() -> None:
    scene = Scene()
    scene.set(RUNNING)
    scene.sync()
    scene.learn()
    scene.restart()
    scene.set(RUNNING)
    assert scene.sync() == "GET"


# --- batch and reconcile ---


def test_s59_versions_of_unknown_pods_are_forgotten() -> None:
    scene = Scene()
    scene.set(RUNNING)
    scene.sync()
    scene.manager.remove_orphaned(frozenset())
    scene.sync(everything=True)
    scene.set(PENDING)
    assert (scene.version, scene.sync()) == (1, "GET PATCH"), "not taken for the first version of before"


def test_s60_versions_of_known_pods_are_kept() -> None:
    scene = Scene()
    scene.set(RUNNING)
    scene.sync()
    scene.learn()
    assert [scene.sync(everything=True), scene.sync()] == ["", ""]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param({}, "", id="S61 equal"),
        pytest.param({"start_time": NOW + 0.4}, "", id="S62 less than a second apart"),
        pytest.param({"phase": PodPhase.PENDING}, "GET PATCH", id="S63 different"),
    ],
)
def test_reconcile(change: dict[str, object], expected: str) -> None:
    scene = Scene()
    scene.set(RUNNING)
    scene.sync()
    scene.client.pod = replace(scene.client.pod, status=replace(scene.client.pod.status, **change))
    scene.learn()
    assert expected == scene.sync(everything=True)


def test_a_foreign_ready_is_put_right() -> None:
    """The node lifecycle controller marks pods of a lost node; the kubelet, when it is back, writes its own word."""
    scene = Scene()
    scene.set(with_ready("True"))
    scene.sync()
    marked = replace(scene.client.pod.status, conditions=(condition("Ready", "False"),))
    scene.client.pod = replace(scene.client.pod, status=marked)
    scene.learn()
    assert scene.sync(everything=True) == "GET PATCH"
    assert {c.type: c.status for c in scene.client.pod.status.conditions} == {"Ready": "True"}


def test_orphans_are_forgotten() -> None:
    scene = Scene()
    scene.set(RUNNING)
    scene.manager.remove_orphaned(frozenset())
    assert scene.status is None


# --- the end of a pod ---

FAILED = make_status(phase=PodPhase.FAILED)
DELETED = replace(make_pod("c1", "c2"), deletion_timestamp=NOW)


def test_s64_a_pod_whose_termination_is_not_finished_is_not_deleted() -> None:
    scene = Scene(DELETED)
    scene.set(FAILED)
    assert scene.sync() == "GET PATCH"


def test_s65_s99_a_finished_pod_is_deleted_in_the_pass_that_makes_it_terminal() -> None:
    scene = Scene(replace(DELETED, status=RUNNING))
    scene.manager.terminate_pod(scene.pod)
    assert scene.sync() == "GET PATCH DELETE"
    assert scene.client.bodies[-1] == {"gracePeriodSeconds": 0, "preconditions": {"uid": "uid-1"}}
    assert scene.status is None


def test_s88_a_failed_patch_is_tried_again_by_the_next_batch() -> None:
    scene = Scene()
    scene.client.errors["PATCH"] = [ServerError]
    scene.set(RUNNING)
    assert [scene.sync(), scene.sync(), scene.sync()] == ["GET PATCH", "GET PATCH", ""]


def test_s100_a_failed_delete_is_tried_again_by_the_tick() -> None:
    scene = Scene(DELETED)
    scene.client.errors["DELETE"] = [ServerError]
    scene.manager.terminate_pod(scene.pod)
    assert scene.sync() == "GET PATCH DELETE"
    scene.learn()
    assert scene.status is not None
    assert [scene.sync(), scene.sync(everything=True)] == ["", "GET DELETE"]


def test_a_terminal_phase_waits_until_nothing_can_run() -> None:
    scene = Scene(replace(make_pod("c1"), status=RUNNING), could_run=True)
    scene.set(make_status(phase=PodPhase.FAILED, reason="Evicted"))
    scene.sync()
    assert scene.client.pod.status.phase == PodPhase.RUNNING


def test_a_finished_pod_stays_finished() -> None:
    scene = Scene(DELETED)
    scene.client.errors["DELETE"] = [ServerError]
    scene.manager.terminate_pod(scene.pod)
    scene.set(FAILED)
    assert scene.finished


def test_s84_s87_an_illegal_status_is_dropped_whole() -> None:
    scene = Scene(replace(make_pod("c1"), restart_policy="Never"))
    scene.set(make_status(phase=PodPhase.RUNNING, container_statuses=(exited("c1", 1),)))
    assert scene.set(make_status(phase=PodPhase.PENDING, container_statuses=(waiting("c1"),))) is False
    assert scene.status.phase == PodPhase.RUNNING


def test_a_pod_being_deleted_is_updated_even_without_a_change() -> None:
    scene = Scene(DELETED)
    assert [scene.set(RUNNING), scene.set(RUNNING)] == [True, True]


def test_s89_a_condition_that_vanished_makes_a_version() -> None:
    scene = Scene()
    scene.set(with_ready("True"))
    assert scene.set(RUNNING)


def test_the_generation_of_the_pod_is_written() -> None:
    scene = Scene(replace(make_pod("c1"), generation=4))
    scene.set(RUNNING)
    assert scene.status.observed_generation == 4
