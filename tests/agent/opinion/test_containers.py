"""What is known of the containers of health pods by the runtime: while it tells, while it is silent, and afterwards."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from agent.cri.base import CriError, Trouble
from agent.opinion.containers import ContainerStates, executed
from agent.opinion.verdict import closing
from agent.processes.command import Completed, ExecTimeout, RuntimeUnavailable
from agent.wire.containers import ContainerEvent, ContainerPhase, EventKind, RuntimeContainer, RuntimePod
from agent.wire.model import Pod, PodStatus
from tests.agent.kubelet.status.builders import make_pod, running
from tools.kit.clock import Clock

RUNNING, EXITED = ContainerPhase.RUNNING, ContainerPhase.EXITED
HANGS = CriError("ListPodSandbox", "/s", Trouble.HANGS, within_s=5.0)


def health_pod(container_id: str = "test://1", uid: str = "uid-1") -> Pod:
    told = replace(running("web", started=True, ready=True), container_id=container_id)
    return make_pod("web", uid=uid, status=PodStatus(phase="Running", container_statuses=(told,)))


class Scene:
    """A runtime that says and does as it is told, and who asks it."""

    def __init__(self) -> None:
        self.clock = Clock(100.0)
        self.found = [health_pod()]
        self.runs: dict[str, tuple[str, ContainerPhase]] = {"uid-1": ("1", RUNNING), "other": ("9", RUNNING)}
        self.error: RuntimeUnavailable | None = None
        self.exec_error: ExecTimeout | None = None
        self.events = False
        self.changes = 0
        self.looks: list[str] = []
        self.lists: list[str] = []  # of the runtime's pods, "" of all
        self.broken: set[str] = set()  # pods that cannot be inspected
        self.closed = False
        self.states = ContainerStates(
            self, lambda: self.found, self.changed, events_come=lambda _: self.events, monotonic=self.clock
        )

    def changed(self) -> None:
        self.changes += 1

    def turn(self) -> None:
        """Until all pods of the runtime have been listed again."""
        before = self.lists.count("")
        while True:
            self.clock.time += self.states.turn()
            if not self.found or self.lists.count("") > before:
                return

    def turns_for(self, seconds: float) -> None:
        end = self.clock.time + seconds
        while self.clock.time < end:
            self.clock.time += self.states.turn()

    def list_pods(self, uid: str = "") -> Sequence[RuntimePod]:
        self.lists.append(uid)
        if self.error is not None:
            raise self.error
        return [self.known(one) for one in self.runs if uid in ("", one)]

    def pod(self, uid: str) -> RuntimePod:
        if self.error is not None or uid in self.broken:
            raise self.error or HANGS
        self.looks.append(uid)
        return self.known(uid) if uid in self.runs else RuntimePod(uid)

    def known(self, uid: str) -> RuntimePod:
        id_, phase = self.runs[uid]
        return RuntimePod(uid, containers=(RuntimeContainer(f"test://{id_}", "web", phase, 1.0),))

    def version(self) -> object:
        if self.error is not None:
            raise self.error
        return None

    def exec(self, container_id: str, command: Sequence[str], timeout_s: float) -> Completed:  # noqa: ARG002
        if self.exec_error is not None:
            raise self.exec_error
        return Completed(0, b"", b"")

    def close(self) -> None:
        self.closed = True

    @property
    def said(self) -> tuple[str, str] | None:
        """Of the first health pod: container and what it does."""
        pod = self.states.pod(self.found[0])
        return next(((c.id, c.phase.value) for c in pod.containers), ("", "")) if pod is not None else None

    @property
    def finding(self) -> str:
        finding = self.states.silent()
        return "" if finding is None else finding.reason


@pytest.fixture
def scene() -> Scene:
    made = Scene()
    made.turn()
    return made


def test_before_the_first_answer_nothing_is_known() -> None:
    scene = Scene()
    assert (None, "") == (scene.said, scene.finding)


def test_a_pod_is_looked_at_once_and_again_only_when_its_list_has_changed(scene: Scene) -> None:
    for _ in range(60):
        scene.turn()
    scene.runs["uid-1"] = ("1", EXITED)
    scene.turn()
    assert (["uid-1", "uid-1"], ("test://1", "exited"), 2) == (scene.looks, scene.said, scene.changes)


def test_a_pod_that_the_runtime_does_not_list_is_an_empty_one_and_not_inspected(scene: Scene) -> None:
    del scene.runs["uid-1"]
    for _ in range(60):
        scene.turn()
    assert (("", ""), ["uid-1"]) == (scene.said, scene.looks)


def test_without_health_pods_nothing_is_asked() -> None:
    scene = Scene()
    scene.found, scene.error = [], HANGS
    scene.turn()
    assert "" == scene.finding


def test_while_it_is_silent_the_last_known_states_stand_and_it_is_said(scene: Scene) -> None:
    scene.error = HANGS
    for _ in range(300):
        scene.turn()
    assert (("test://1", "running"), "RuntimeSilent", 2) == (scene.said, scene.finding, scene.changes)


def test_while_it_is_silent_the_kubelet_knows_more_once_it_tells_of_another_container(scene: Scene) -> None:
    """Else a container that was started since would be judged by one that is gone."""
    scene.runs["uid-1"] = ("1", EXITED)
    scene.turn()
    scene.error = HANGS
    scene.turn()
    ended = scene.said
    scene.found = [health_pod("test://2")]
    scene.turn()
    assert (("test://1", "exited"), None) == (ended, scene.said)


def test_one_that_answers_again_is_believed_again(scene: Scene) -> None:
    scene.error = HANGS
    scene.turn()
    scene.found = [health_pod("test://2")]
    scene.error, scene.runs["uid-1"] = None, ("2", RUNNING)
    scene.turn()
    assert (("test://2", "running"), "") == (scene.said, scene.finding)


def test_one_that_has_never_answered_is_said_and_nothing_is_known_by_it() -> None:
    scene = Scene()
    scene.error = HANGS
    scene.turn()
    assert (None, "RuntimeSilent") == (scene.said, scene.finding)


def test_what_is_said_is_one_line_of_bounded_length(scene: Scene) -> None:
    scene.error = CriError("ListPodSandbox", "/s", Trouble.REFUSED, "x\n" * 5000)
    scene.turn()
    finding = scene.states.silent()
    assert finding is not None
    assert ("\n" not in finding.text, len(finding.text) < 400) == (True, True)


@pytest.mark.parametrize(
    ("events", "error", "expected"),
    [
        pytest.param(False, None, 60, id="each second, as the kubelet"),
        pytest.param(True, None, 12, id="seldom while the runtime sends events"),
        pytest.param(True, HANGS, 60, id="each second while lists have no answer"),
    ],
)
def test_how_often_is_listed_in_a_minute(
    scene: Scene, events: bool, error: RuntimeUnavailable | None, expected: int
) -> None:
    scene.events, scene.error = events, error
    scene.turns_for(10.0)
    scene.lists.clear()
    scene.looks.clear()
    scene.turns_for(60.0)
    assert ([""] * expected, []) == (scene.lists, scene.looks)


def test_a_runtime_that_was_restarted_ten_times_is_listed_seldom_again(scene: Scene) -> None:
    """A kubelet believes lists alone after the fifth failure, for good: here a list a second would be no use."""
    for _ in range(10):
        scene.events = False
        scene.turns_for(3.0)
        scene.events = True
        scene.turns_for(3.0)
    scene.turns_for(10.0)
    scene.lists.clear()
    scene.turns_for(60.0)
    assert 12 == len(scene.lists)


def test_a_runtime_that_freezes_while_it_sends_events_is_said_within_five_seconds(scene: Scene) -> None:
    scene.events = True
    scene.turns_for(60.0)
    scene.error = HANGS
    scene.turns_for(5.0)
    assert "RuntimeSilent" == scene.finding


def test_that_the_runtime_is_silent_closes_nothing(scene: Scene) -> None:
    scene.error = HANGS
    scene.turns_for(600.0)
    finding = scene.states.silent()
    assert finding is not None
    assert [] == closing([finding])


def test_an_event_of_a_health_pod_lists_that_pod_at_once(scene: Scene) -> None:
    scene.events = True
    scene.turn()
    scene.clock.time += 0.1
    scene.lists.clear()
    scene.runs["uid-1"] = ("1", EXITED)
    scene.states.take(ContainerEvent(EventKind.STOPPED, "uid-1", "test://1"))
    assert 0.0 == scene.states.turn()
    assert (["uid-1"], ("test://1", "exited")) == (scene.lists, scene.said)


def test_a_runtime_that_freezes_after_an_event_is_said_at_once(scene: Scene) -> None:
    scene.events = True
    scene.turn()
    scene.clock.time += 0.1
    scene.error = HANGS
    scene.states.take(ContainerEvent(EventKind.STOPPED, "uid-1", "test://1"))
    scene.states.turn()
    assert (("test://1", "running"), "RuntimeSilent") == (scene.said, scene.finding)
    scene.error = None
    scene.turn()
    assert "" == scene.finding


@pytest.mark.parametrize(("uid", "woken"), [("uid-1", True), ("other", False)])
def test_only_events_of_health_pods_make_it_list(scene: Scene, uid: str, woken: bool) -> None:
    scene.clock.time += 0.1
    scene.lists.clear()
    scene.states.take(ContainerEvent(EventKind.STOPPED, uid, "test://1"))
    assert woken is not scene.states._loop._asleep.locked()
    scene.states.turn()
    assert ([uid] if woken else []) == scene.lists


def test_a_pod_that_cannot_be_inspected_stays_as_it_was_known_and_others_go_on(scene: Scene) -> None:
    other = health_pod("test://9", "other")
    scene.found.append(other)
    scene.turn()
    scene.runs |= {"uid-1": ("2", RUNNING), "other": ("9", EXITED)}
    scene.broken.add("uid-1")
    scene.turn()
    of_other = scene.states.pod(other)
    assert of_other is not None
    assert (("test://1", "running"), "RuntimeSilent") == (scene.said, scene.finding)
    assert [EXITED] == [container.phase for container in of_other.containers]
    scene.broken.clear()
    scene.turn()
    assert (("test://2", "running"), "") == (scene.said, scene.finding)


def test_a_pod_that_could_never_be_inspected_is_not_known(scene: Scene) -> None:
    """An empty pod would be one whose containers do not run, and close the node."""
    other = health_pod("test://9", "other")
    scene.found.append(other)
    scene.broken.add("other")
    scene.turn()
    assert (None, "RuntimeSilent") == (scene.states.pod(other), scene.finding)


def test_a_pod_that_is_no_health_pod_any_more_is_forgotten(scene: Scene) -> None:
    scene.found = [health_pod("test://9", "other")]
    scene.turn()
    assert (None, frozenset({"other"})) == (scene.states.pod(health_pod()), scene.states._generator.cache.uids())


def test_a_stop_closes_the_connection_so_nobody_waits(scene: Scene) -> None:
    scene.states.start()
    scene.states.stop()
    scene.states.stop()
    assert scene.closed


SLOW = ExecTimeout(["true"], 1.0)


@pytest.mark.parametrize(
    ("runtime_error", "expected"),
    [
        pytest.param(None, ExecTimeout, id="the command took too long: its probe has failed"),
        pytest.param(HANGS, CriError, id="the runtime answers nobody: it could not be run"),
    ],
)
def test_a_command_without_an_answer(
    scene: Scene, runtime_error: RuntimeUnavailable | None, expected: type[Exception]
) -> None:
    scene.exec_error, scene.error = SLOW, runtime_error
    with pytest.raises(expected):
        executed(scene)("test://1", ["true"], 1.0)


def test_a_command_that_ends_is_told_as_it_ended(scene: Scene) -> None:
    assert 0 == executed(scene)("test://1", ["true"], 1.0).exit_code
