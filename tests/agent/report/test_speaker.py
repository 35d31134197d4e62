"""Guarantee 7 of agent.report.condition: of two agents for one health pod the one writes that the pod names."""

import pytest

from agent.report.condition import Condition
from agent.wire.condition import ANNOTATION_SPEAKER
from tests.agent.report.test_condition import FALSE, TRUE, UNKNOWN, Scene


@pytest.fixture
def scene() -> Scene:
    return Scene()


ON_NODE = {ANNOTATION_SPEAKER: "node"}


@pytest.mark.parametrize(
    ("speaker", "annotations", "expected"),
    [
        pytest.param("pod", {}, 1, id="a pod that asks for nobody: the agent in it"),
        pytest.param("pod", ON_NODE, 0, id="a pod that asks for the node's: not the agent in it"),
        pytest.param("node", ON_NODE, 1, id="a pod that asks for the node's: that one"),
        pytest.param("node", {}, 0, id="a pod that asks for nobody: not the node's"),
        pytest.param("node", {ANNOTATION_SPEAKER: "pod"}, 0, id="a pod that asks for its own: not the node's"),
        pytest.param("pod", {ANNOTATION_SPEAKER: "Node"}, 1, id="a word that there is not: the agent in it"),
    ],
)
def test_guarantee_7_one_of_two_agents_writes(
    scene: Scene, speaker: str, annotations: dict[str, str], expected: int
) -> None:
    scene.server.annotations = annotations
    scene.publisher = scene.new(speaker=speaker)
    scene.publish(TRUE)
    scene.publish(FALSE)
    scene.publish(TRUE)
    assert 3 * expected == len(scene.server.bodies)


def test_guarantee_7_who_speaks_may_change_while_both_run(scene: Scene) -> None:
    scene.publish(TRUE)
    scene.server.annotations = ON_NODE
    scene.publish(FALSE)  # it learns that by the reply
    for wanted in (TRUE, FALSE, TRUE):
        scene.publish(wanted)
    scene.wait(200)
    assert (2, True) == (len(scene.server.bodies), scene.publisher.silenced)
    scene.server.annotations = {}
    scene.wait(331)
    assert ([("True", "ChecksPassed")], False) == (scene.server.written[2:], scene.publisher.silenced)


@pytest.mark.parametrize(
    ("pause_s", "wanted", "expected"),
    [
        pytest.param(100.0, TRUE, [], id="what opens"),
        pytest.param(100.0, FALSE, [("False", "CheckFailed")], id="what closes does not wait for a look"),
        pytest.param(5.0, TRUE, [("True", "ChecksPassed")], id="nor what follows another write at once"),
    ],
)
def test_guarantee_7_an_agent_that_was_silenced_meanwhile_opens_nothing(
    scene: Scene, pause_s: float, wanted: Condition, expected: list[tuple[str, str]]
) -> None:
    """The other one may have closed the node, and does not look whether somebody writes after it."""
    scene.publish(UNKNOWN)
    scene.clock.time += pause_s
    scene.server.annotations = ON_NODE
    scene.publish(wanted)
    assert (expected, True) == (scene.server.written[1:], scene.publisher.silenced)


def test_guarantee_7_nor_does_its_refresh(scene: Scene) -> None:
    scene.publish(TRUE)
    scene.server.annotations = ON_NODE
    scene.wait(331)
    assert ([("True", "ChecksPassed")], True) == (scene.server.written, scene.publisher.silenced)


@pytest.mark.parametrize(
    ("options", "annotations", "expected"),
    [
        pytest.param({}, {}, ["Terminating"], id="the agent in the pod ends with it"),
        pytest.param({}, ON_NODE, [], id="not where another one speaks"),
        pytest.param({"speaker": "node", "farewell": False}, ON_NODE, [], id="nor the one on the node: its pod lives"),
    ],
)
def test_what_a_stop_writes(
    scene: Scene, options: dict[str, object], annotations: dict[str, str], expected: list[str]
) -> None:
    scene.server.annotations = annotations
    publisher = scene.new(**options)
    publisher.start()
    publisher.stop()
    assert expected == [reason for _, reason in scene.server.written]
