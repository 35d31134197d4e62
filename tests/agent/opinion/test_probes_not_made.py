"""A pod with a container that we probe and one whose probe is a command: what closed it ends with what was failing."""

from dataclasses import replace

import pytest

from agent.wire.model import Container, ExecAction, Probe, Result
from tests.agent.kubelet.status.builders import make_pod, running
from tests.agent.opinion.test_judge import CLOSED, OPEN, PROBE, Scene, told_before

COMMAND = Probe(ExecAction(("true",)), period_s=5, failure_threshold=2, timeout_s=1)


def scene_of(*, closed: bool) -> Scene:
    """Its kubelet says ready throughout."""
    told = told_before(CLOSED if closed else OPEN)
    statuses = tuple(running(name, started=True, ready=True) for name in ("web", "side"))
    pod = make_pod(
        Container("web", readiness_probe=PROBE),
        Container("side", readiness_probe=COMMAND),
        annotations=told.annotations,
        status=replace(told.status, container_statuses=statuses),
    )
    scene = Scene()
    scene.found = [pod]
    return scene


@pytest.mark.parametrize(
    ("closed", "results", "expected"),
    [
        pytest.param(False, ["S", "F", "S"], ["True", "False", "True"], id="a short fault that we alone see"),
        pytest.param(False, ["S", "F"], ["True", "False"], id="one that stays"),
        pytest.param(True, ["S"], ["False", "True"], id="closed by an agent before us, and over"),
        pytest.param(True, ["F"], ["False"], id="closed by an agent before us, and still so"),
        pytest.param(True, [], ["False"], id="closed by an agent before us, and nothing is heard"),
    ],
)
def test_what_our_probe_has_closed_it_opens(closed: bool, results: list[str], expected: list[str]) -> None:
    scene = scene_of(closed=closed)
    if closed:
        scene.turns(3)
    for result in results:
        scene.results["test://web"] = Result.SUCCESS if result == "S" else Result.FAILURE
        scene.turns(120)
    scene.turns(120)
    said = [status for _, status, _ in scene.said]
    assert expected == [now for now, before in zip(said, [None, *said], strict=False) if now != before]


@pytest.mark.parametrize(
    ("heard", "expected"),
    [
        pytest.param(True, ["True"], id="our own has been heard"),
        pytest.param(False, [], id="our own has not been heard yet"),
    ],
)
def test_a_probe_that_is_never_made_is_not_waited_for(heard: bool, expected: list[str]) -> None:
    """Else five minutes of it are, in which each pod of a roll-out is not Ready, and closes its node."""
    scene = scene_of(closed=False)
    (pod,) = scene.found
    patient = replace(COMMAND, period_s=30, failure_threshold=10)
    scene.found = [replace(pod, containers=(pod.containers[0], replace(pod.containers[1], readiness_probe=patient)))]
    scene.results |= {"test://web": Result.SUCCESS} if heard else {}
    scene.turns(5)
    assert expected == [status for _, status, _ in scene.said]
