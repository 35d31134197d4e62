"""The fast path of probe results into a status: rows S50-S58 of status_manager_test.go of v1.36.3."""

from dataclasses import replace
from typing import Any

import pytest

from agent.wire.model import PodPhase, PodStatus
from tests.agent.kubelet.status.builders import condition, make_pod, make_status, running, words
from tests.agent.kubelet.status.scene import Scene


def two_containers(**fields: Any) -> PodStatus:
    statuses = tuple(running(name, **fields) for name in ("c1", "c2"))
    return make_status(
        phase=PodPhase.RUNNING,
        container_statuses=statuses,
        conditions=(condition("Ready", "False"), condition("ContainersReady", "False")),
    )


def test_s50_readiness_before_any_status_is_ignored() -> None:
    scene = Scene()
    scene.manager.set_container_readiness(scene.pod.uid, "test://c1", True)
    assert scene.status is None


@pytest.mark.parametrize(
    ("changes", "expected_versions", "expected_ready"),
    [
        pytest.param([("c1", False)], 0, "False", id="S51 unchanged"),
        pytest.param([("c1", True)], 1, "False", id="S52 one of two"),
        pytest.param([("c1", True), ("c2", True)], 2, "True", id="S53 both"),
        pytest.param([("gone", True)], 0, "False", id="S54 unknown container"),
        pytest.param([("c1", True), ("c1", False)], 2, "False", id="there and back"),
    ],
)
def test_readiness(changes: list[tuple[str, bool]], expected_versions: int, expected_ready: str) -> None:
    scene = Scene()
    scene.set(two_containers())
    before = scene.version
    for name, ready in changes:
        scene.manager.set_container_readiness(scene.pod.uid, f"test://{name}", ready)
    made = scene.version - before
    found = {c.type: c.status for c in scene.status.conditions}
    assert (expected_versions, {"Ready": expected_ready, "ContainersReady": expected_ready}) == (made, found)


def test_readiness_of_an_unknown_pod_is_ignored() -> None:
    scene = Scene()
    scene.manager.set_container_readiness("nobody", "test://c1", True)
    assert scene.manager.pod_status("nobody") is None


def test_readiness_adds_conditions_that_are_missing_and_reads_gates_from_the_kept_status() -> None:
    scene = Scene(replace(make_pod("c1"), readiness_gates=("gate",)))
    scene.set(make_status(phase=PodPhase.RUNNING, container_statuses=(running("c1"),)))
    scene.manager.set_container_readiness(scene.pod.uid, "test://c1", True)
    found = {c.type: words(c)[:2] for c in scene.status.conditions}
    assert found == {"Ready": ("False", "ReadinessGatesNotReady"), "ContainersReady": ("True", "")}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param([("c1", False)], 1, id="S56 from nothing to false"),
        pytest.param([("c1", True), ("c2", True)], 2, id="S57 both"),
        pytest.param([("gone", True)], 0, id="S58 unknown container"),
        pytest.param([("c1", True), ("c1", True)], 1, id="unchanged"),
    ],
)
def test_startup(changes: list[tuple[str, bool]], expected: int) -> None:
    scene = Scene()
    scene.set(two_containers())
    before = scene.version
    for name, started in changes:
        scene.manager.set_container_startup(scene.pod.uid, f"test://{name}", started)
    assert expected == scene.version - before


def test_s55_startup_before_any_status_is_ignored() -> None:
    scene = Scene()
    scene.manager.set_container_startup(scene.pod.uid, "test://c1", True)
    assert scene.status is None
