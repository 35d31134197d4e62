"""Who writes for which pod: one publisher a pod, made when there is something to say, and ended with its pod."""

import logging

import pytest

from agent.opinion.condition_writers import ConditionWriter, ConditionWriters
from agent.report.condition import Condition
from agent.report.heartbeat import Writer
from agent.wire.model import Pod
from kube.errors import CredentialsInvalid
from tests.agent.kubelet.status.builders import make_pod

TRUE = Condition("True", "ChecksPassed", "all checks passed")
FALSE = Condition("False", "CheckFailed", "disk: read-only")
FIRST, SECOND = make_pod(uid="u1", name="a"), make_pod(uid="u2", name="b")
NO_CA = CredentialsInvalid("certificate authority /pki/ca.crt: the file of authorities is empty")
NO_THREAD = RuntimeError("can't start new thread")


class Publisher:
    """As agent.report.condition.ConditionPublisher, without a thread."""

    def __init__(self, scene: "Scene", uid: str) -> None:
        self.scene, self.uid = scene, uid
        self.writes, self.errors = 0, 1
        self.well = True

    def start(self) -> None:
        if self.uid in self.scene.unstarted:
            raise self.scene.unstarted[self.uid]
        self.scene.happened.append(f"start {self.uid}")

    def publish(self, condition: Condition) -> None:
        self.writes += 1
        self.scene.happened.append(f"{condition.status} {self.uid}")

    def stop(self) -> None:
        self.scene.happened.append(f"stop {self.uid}")

    def healthy(self, monotonic: float) -> bool:  # noqa: ARG002 - of a Service
        return self.well


class Scene:
    def __init__(self) -> None:
        self.unmade: dict[str, Exception] = {}
        self.unstarted: dict[str, Exception] = {}
        self.happened: list[str] = []
        self.publishers: dict[str, Publisher] = {}
        self.speakers = ConditionWriters(self.make)

    def make(self, pod: Pod) -> ConditionWriter:
        if pod.uid in self.unmade:
            raise self.unmade[pod.uid]
        self.publishers[pod.uid] = publisher = Publisher(self, pod.uid)
        close = f"close {pod.uid}"
        return ConditionWriter(publisher, Writer(pod.uid, publisher), lambda: self.happened.append(close))  # type: ignore[arg-type]

    def say(self, *pods: Pod, condition: Condition = TRUE) -> list[str]:
        """What happens by that."""
        self.happened.clear()
        for pod in pods:
            self.speakers.say(pod, condition)
        return [*self.happened]


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_each_pod_has_one_publisher_which_hears_all_that_is_said(scene: Scene) -> None:
    first = scene.say(FIRST, SECOND)
    assert ["start u1", "True u1", "start u2", "True u2"] == first
    assert ["False u1"] == scene.say(FIRST, condition=FALSE)


@pytest.mark.parametrize(
    ("unmade", "unstarted", "expected"),
    [
        pytest.param({"u1": NO_CA}, {}, [], id="its authority's file is being written"),
        pytest.param({}, {"u1": NO_THREAD}, ["close u1", "stop u1"], id="there is no thread for it"),
    ],
)
def test_a_pod_for_which_nobody_can_speak_now_silences_no_other_and_is_tried_again(
    scene: Scene,
    unmade: dict[str, Exception],
    unstarted: dict[str, Exception],
    expected: list[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    scene.unmade, scene.unstarted = unmade, unstarted
    caplog.set_level(logging.WARNING)
    assert [*expected, "start u2", "True u2"] == scene.say(FIRST, SECOND)
    assert [*expected, "True u2"] == scene.say(FIRST, SECOND)
    assert ["nobody can speak for a health pod yet, will retry"] == [record.getMessage() for record in caplog.records]
    unmade.clear()
    unstarted.clear()
    assert ["start u1", "True u1", "True u2"] == scene.say(FIRST, SECOND)
    scene.unmade = {"u1": NO_CA}  # it has spoken, so what would make another one is not asked
    assert ["True u1"] == scene.say(FIRST)


def test_a_bug_in_it_is_no_trouble_that_is_waited_for(scene: Scene) -> None:
    scene.unmade = {"u1": KeyError("u1")}
    with pytest.raises(KeyError):
        scene.say(FIRST)


def test_of_a_pod_that_is_gone_the_publisher_ends_and_its_counts_stay(scene: Scene) -> None:
    scene.say(FIRST, SECOND, FIRST)
    scene.happened.clear()
    scene.speakers.keep({"u2"})
    assert (["close u1", "stop u1"], 3, 2) == (scene.happened, scene.speakers.writes, scene.speakers.errors)
    assert ["start u1", "True u1"] == scene.say(FIRST)


def test_a_pod_that_is_gone_is_told_of_anew_when_it_is_back(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    scene.unmade = {"u1": NO_CA}
    scene.say(FIRST)
    scene.speakers.keep(())
    scene.say(FIRST)
    assert 2 == len([record for record in caplog.records if record.levelname == "WARNING"])


def test_a_heartbeat_is_written_in_the_name_of_any(scene: Scene) -> None:
    nobody = scene.speakers.writer()
    scene.say(FIRST, SECOND)
    first = scene.speakers.writer()
    scene.speakers.keep({"u2"})
    second = scene.speakers.writer()
    assert (None, "u1", "u2") == (nobody, first and first.namespace, second and second.namespace)


@pytest.mark.parametrize(
    ("namespaces", "there", "expected"),
    [
        pytest.param(["u2", "u1"], [FIRST, SECOND], "u2", id="the first that is named, whoever was there first"),
        pytest.param(["u2", "u1", "u2"], [FIRST, SECOND], "u2", id="a namespace that is named twice"),
        pytest.param(["u2", "u1"], [FIRST], "u1", id="the next one, while it has none"),
        pytest.param(["other"], [FIRST, SECOND], "u1", id="any, where none has one"),
    ],
)
def test_a_heartbeat_lies_where_the_first_entry_has_a_pod(
    namespaces: list[str], there: list[Pod], expected: str
) -> None:
    """Who reads it looks in one namespace, and pods elsewhere need not have the right to write it."""
    scene = Scene()
    scene.speakers = ConditionWriters(scene.make, namespaces)
    scene.say(*there)
    writer = scene.speakers.writer()
    assert expected == (writer and writer.namespace)


def test_namespaces_in_another_order_move_the_heartbeat(scene: Scene) -> None:
    scene.speakers.follow(["u1", "u2"])
    scene.say(FIRST, SECOND)
    scene.speakers.follow(["u2", "u1"])
    writer = scene.speakers.writer()
    assert "u2" == (writer and writer.namespace)


def test_it_is_healthy_while_all_of_them_are(scene: Scene) -> None:
    scene.say(FIRST, SECOND)
    well = scene.speakers.healthy(0.0)
    scene.publishers["u2"].well = False
    assert (True, False) == (well, scene.speakers.healthy(0.0))


def test_after_its_stop_nothing_is_said(scene: Scene) -> None:
    scene.say(FIRST)
    scene.happened.clear()
    scene.speakers.stop()
    scene.speakers.stop()
    ended = [*scene.happened]
    assert (["close u1", "stop u1"], []) == (ended, scene.say(FIRST, SECOND))
