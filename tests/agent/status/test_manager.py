"""The manager's half of status_manager_test.go of v1.36.3: rows S1-S20, S59-S65, S88, S99, S100."""

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from agent.model import PodPhase, PodStatus
from agent.semantics import Semantics
from agent.status.conditions import find_condition
from agent.status.manager import StatusManager
from kube.errors import DeadlineExceeded, ServerError
from tests.agent.status.builders import NOW, condition, exited, make_pod, make_status, waiting
from tests.agent.status.room import Room
from tests.kit.clock import Clock

RUNNING = make_status(phase=PodPhase.RUNNING)
PENDING = make_status(phase=PodPhase.PENDING)


def with_ready(word: str) -> PodStatus:
    return make_status(phase=PodPhase.RUNNING, conditions=(condition("Ready", word),))


def test_s1_a_new_status_is_one_update_with_a_start_time() -> None:
    room = Room()
    assert room.set(RUNNING)
    assert (room.status.start_time, room.sync()) == (NOW, "GET PATCH")


def test_s2_the_start_time_of_the_api_is_kept() -> None:
    room = Room(replace(make_pod("c1"), status=make_status(start_time=NOW - 60)))
    room.set(RUNNING)
    assert room.status.start_time == NOW - 60


def test_s3_a_new_ready_condition_gets_a_transition_time() -> None:
    room = Room()
    room.set(with_ready("True"))
    assert find_condition(room.status.conditions, "Ready").last_transition_time == NOW


def test_s4_two_different_statuses_are_two_updates() -> None:
    room = Room()
    assert [room.set(RUNNING), room.set(PENDING)] == [True, True]


def test_s5_a_changed_status_keeps_its_start_time_in_whole_seconds() -> None:
    room = Room()
    room.set(replace(RUNNING, start_time=NOW + 0.7))
    room.set(replace(PENDING, start_time=NOW + 60))
    assert room.status.start_time == NOW


def test_s6_a_changed_condition_gets_a_new_transition_time() -> None:
    room = Room()
    room.set(with_ready("True"))
    room.clock.time += 5
    room.set(with_ready("False"))
    assert find_condition(room.status.conditions, "Ready").last_transition_time == NOW + 5


def test_s7_the_same_status_twice_is_one_update() -> None:
    room = Room()
    assert [room.set(RUNNING), room.set(RUNNING)] == [True, False]


def test_s8_the_same_condition_keeps_its_transition_time() -> None:
    room = Room()
    room.set(with_ready("True"))
    room.clock.time += 5
    assert room.set(with_ready("True")) is False
    assert find_condition(room.status.conditions, "Ready").last_transition_time == NOW


def other_uid(room: Room) -> None:
    room.client.pod = replace(room.client.pod, uid="another")


def not_found(room: Room) -> None:
    room.client.pod = None


def broken_get(room: Room) -> None:
    room.client.errors["GET"] = [ServerError]


def deleted(room: Room, status: PodStatus = RUNNING) -> None:
    room.client.pod = replace(room.client.pod, deletion_timestamp=NOW, status=status)


@pytest.mark.parametrize(
    ("arrange", "expected"),
    [
        pytest.param(not_found, "GET", id="S9 S12 not found"),
        pytest.param(lambda _room: None, "GET PATCH", id="S10 S14 found"),
        pytest.param(other_uid, "GET", id="S11 S13 another uid"),
        pytest.param(deleted, "GET PATCH", id="S15 being deleted, running"),
        pytest.param(
            lambda room: deleted(room, make_status(phase=PodPhase.FAILED)), "GET PATCH", id="S16 deleted, not finished"
        ),
        pytest.param(broken_get, "GET", id="S17 the read fails"),
    ],
)
def test_one_sync(arrange: Callable[[Room], None], expected: str) -> None:
    room = Room()
    room.set(RUNNING)
    arrange(room)
    assert expected == room.sync()


def test_a_pod_created_anew_is_forgotten() -> None:
    room = Room()
    room.set(RUNNING)
    other_uid(room)
    room.sync()
    assert room.status is None


def test_s18_of_three_versions_only_the_newest_is_written() -> None:
    room = Room()
    for message in ("first", "second", "third"):
        room.set(replace(RUNNING, message=message))
    assert (room.sync(everything=True), room.sync()) == ("GET PATCH", "")
    assert room.client.bodies[0]["status"]["message"] == "third"


def settled() -> Room:
    """Its status is written, and the pod source has seen it."""
    room = Room()
    room.set(RUNNING)
    room.sync()
    room.learn()
    return room


def test_s19_the_same_status_again_is_not_written() -> None:
    room = settled()
    room.set(RUNNING)
    assert room.sync(everything=True) == ""


def test_s20_a_status_the_api_has_already_is_read_but_not_written() -> None:
    room = settled()
    room.manager._api_versions[room.pod.uid] = 0
    assert room.sync(everything=True) == "GET"


# --- batch and reconcile ---


def test_s59_versions_of_unknown_pods_are_forgotten() -> None:
    room = Room()
    room.manager._api_versions["gone"] = 10
    room.sync(everything=True)
    assert room.manager._api_versions == {}


def test_s60_versions_of_known_pods_are_kept() -> None:
    room = settled()
    room.sync(everything=True)
    assert room.manager._api_versions == {room.pod.uid: 1}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param({}, "", id="S61 equal"),
        pytest.param({"start_time": NOW + 0.4}, "", id="S62 less than a second apart"),
        pytest.param({"phase": PodPhase.PENDING}, "GET PATCH", id="S63 different"),
    ],
)
def test_reconcile(change: dict[str, Any], expected: str) -> None:
    room = Room()
    room.set(RUNNING)
    room.sync()
    room.client.pod = replace(room.client.pod, status=replace(room.client.pod.status, **change))
    room.learn()
    assert expected == room.sync(everything=True)


def test_a_foreign_ready_is_put_right() -> None:
    """The node lifecycle controller marks pods of a lost node; the kubelet, when it is back, writes its own word."""
    room = Room()
    room.set(with_ready("True"))
    room.sync()
    marked = replace(room.client.pod.status, conditions=(condition("Ready", "False"),))
    room.client.pod = replace(room.client.pod, status=marked)
    room.learn()
    assert room.sync(everything=True) == "GET PATCH"
    assert {c.type: c.status for c in room.client.pod.status.conditions} == {"Ready": "True"}


def test_orphans_are_forgotten() -> None:
    room = Room()
    room.set(RUNNING)
    room.manager.remove_orphaned(frozenset())
    assert room.status is None


# --- the end of a pod ---

FAILED = make_status(phase=PodPhase.FAILED)
DELETED = replace(make_pod("c1", "c2"), deletion_timestamp=NOW)


def test_s64_a_pod_whose_termination_is_not_finished_is_not_deleted() -> None:
    room = Room(DELETED)
    room.set(FAILED)
    assert room.sync() == "GET PATCH"


def test_s65_s99_a_finished_pod_is_deleted_in_the_pass_that_makes_it_terminal() -> None:
    room = Room(replace(DELETED, status=RUNNING))
    room.manager.terminate_pod(room.pod)
    assert room.sync() == "GET PATCH DELETE"
    assert room.client.bodies[-1] == {"gracePeriodSeconds": 0, "preconditions": {"uid": "uid-1"}}
    assert room.status is None


def test_s88_a_failed_patch_is_tried_again_by_the_next_batch() -> None:
    room = Room()
    room.client.errors["PATCH"] = [ServerError]
    room.set(RUNNING)
    assert [room.sync(), room.sync(), room.sync()] == ["GET PATCH", "GET PATCH", ""]


def test_s100_a_failed_delete_is_tried_again_by_the_tick() -> None:
    room = Room(DELETED)
    room.client.errors["DELETE"] = [ServerError]
    room.manager.terminate_pod(room.pod)
    assert room.sync() == "GET PATCH DELETE"
    room.learn()
    assert room.status is not None
    assert [room.sync(), room.sync(everything=True)] == ["", "GET DELETE"]


def test_a_terminal_phase_waits_until_nothing_can_run() -> None:
    room = Room(replace(make_pod("c1"), status=RUNNING), could_run=True)
    room.set(make_status(phase=PodPhase.FAILED, reason="Evicted"))
    room.sync()
    assert room.client.pod.status.phase == PodPhase.RUNNING


def test_a_finished_pod_stays_finished() -> None:
    room = Room(DELETED)
    room.client.errors["DELETE"] = [ServerError]
    room.manager.terminate_pod(room.pod)
    room.set(FAILED)
    assert room.manager._statuses[room.pod.uid].finished is True


def test_s84_s87_an_illegal_status_is_dropped_whole() -> None:
    room = Room(replace(make_pod("c1"), restart_policy="Never"))
    room.set(make_status(phase=PodPhase.RUNNING, container_statuses=(exited("c1", 1),)))
    assert room.set(make_status(phase=PodPhase.PENDING, container_statuses=(waiting("c1"),))) is False
    assert room.status.phase == PodPhase.RUNNING


def test_a_pod_being_deleted_is_updated_even_without_a_change() -> None:
    room = Room(DELETED)
    assert [room.set(RUNNING), room.set(RUNNING)] == [True, True]


def test_s89_a_condition_that_vanished_makes_a_version() -> None:
    room = Room()
    room.set(with_ready("True"))
    assert room.set(RUNNING)


def test_the_generation_of_the_pod_is_written() -> None:
    room = Room(replace(make_pod("c1"), generation=4))
    room.set(RUNNING)
    assert room.status.observed_generation == 4


def test_a_server_that_is_away_is_asked_once_a_batch_not_once_a_pod() -> None:
    room = Room()
    other = make_pod("c1", uid="uid-2", name="pod-2")
    room.pods[other.uid] = other
    room.set(make_status(phase=PodPhase.RUNNING))
    room.set(make_status(phase=PodPhase.RUNNING), other)
    room.client.errors["GET"] = [DeadlineExceeded]
    assert room.sync() == "GET", "each would cost its deadline"
    assert room.sync() == "GET GET PATCH"


def test_a_pod_that_gets_no_answers_does_not_keep_others_from_being_written(monkeypatch: pytest.MonkeyPatch) -> None:
    room = Room()
    asked = []

    def get(path: str) -> bytes:
        asked.append(path.rpartition("/")[2])
        raise DeadlineExceeded(path=path)

    monkeypatch.setattr(room.client, "get", get)
    for number in range(3):
        pod = make_pod("c1", uid=f"uid-{number}", name=f"pod-{number}")
        room.set(make_status(phase=PodPhase.RUNNING), pod)
    for _ in range(6):
        room.sync()
    assert asked == ["pod-0", "pod-1", "pod-2"] * 2


def test_a_slow_server_does_not_make_the_manager_unhealthy(monkeypatch: pytest.MonkeyPatch) -> None:
    room = Room()
    monotonic = Clock(1000.0)
    manager = StatusManager(
        room.client, room.pods, lambda _uid: True, Semantics(), wall=room.clock, monotonic=monotonic
    )
    monkeypatch.setattr(manager, "_thread", threading.current_thread())
    for number in range(10):
        manager.set_pod_status(make_pod("c1", uid=f"uid-{number}"), make_status(phase=PodPhase.RUNNING))
    get = room.client.get

    def slow(path: str) -> bytes:
        monotonic.time += 9.0
        assert manager.healthy(monotonic()), "its life does not depend on the API server's speed"
        return get(path)

    monkeypatch.setattr(room.client, "get", slow)
    assert manager.sync_batch(everything=False) == 10
