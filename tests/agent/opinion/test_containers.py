"""What is known of the containers of health pods by the runtime: while it tells, while it is silent, and afterwards."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from agent.cri.base import CriError, Trouble
from agent.model import Pod, PodStatus
from agent.opinion.containers import LIST_BESIDE_EVENTS_S, LIST_S, ContainerStates, executed
from agent.processes.command import Completed, ExecTimeout, RuntimeUnavailable
from agent.runtime.base import ContainerEvent, ContainerPhase, EventKind, RuntimeContainer, RuntimePod
from tests.agent.status.builders import make_pod, running
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
        self.closed = False
        self.states = ContainerStates(
            self, lambda: self.found, self.changed, events_come=lambda _: self.events, monotonic=self.clock
        )

    def changed(self) -> None:
        self.changes += 1

    def list_pods(self, uid: str = "") -> Sequence[RuntimePod]:
        if self.error is not None:
            raise self.error
        return [self.known(one) for one in self.runs if uid in ("", one)]

    def pod(self, uid: str) -> RuntimePod:
        if self.error is not None:
            raise self.error
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
    made.states.turn()
    return made


def test_before_the_first_answer_nothing_is_known() -> None:
    scene = Scene()
    assert (None, "") == (scene.said, scene.finding)


def test_a_pod_is_looked_at_once_and_again_only_when_its_list_has_changed(scene: Scene) -> None:
    for _ in range(60):
        scene.states.turn()
    scene.runs["uid-1"] = ("1", EXITED)
    scene.states.turn()
    assert (["uid-1", "uid-1"], ("test://1", "exited"), 2) == (scene.looks, scene.said, scene.changes)


def test_a_pod_that_the_runtime_does_not_know_is_an_empty_one_and_looked_at_once(scene: Scene) -> None:
    del scene.runs["uid-1"]
    for _ in range(60):
        scene.states.turn()
    assert (("", ""), ["uid-1", "uid-1"]) == (scene.said, scene.looks)


def test_without_health_pods_nothing_is_asked() -> None:
    scene = Scene()
    scene.found, scene.error = [], HANGS
    scene.states.turn()
    assert "" == scene.finding


def test_while_it_is_silent_the_last_known_states_stand_and_it_is_said(scene: Scene) -> None:
    scene.error = HANGS
    for _ in range(300):
        scene.states.turn()
    assert (("test://1", "running"), "RuntimeSilent", 2) == (scene.said, scene.finding, scene.changes)


def test_while_it_is_silent_the_kubelet_knows_more_once_it_tells_of_another_container(scene: Scene) -> None:
    """Else a container that was started since would be judged by one that is gone."""
    scene.runs["uid-1"] = ("1", EXITED)
    scene.states.turn()
    scene.error = HANGS
    scene.states.turn()
    ended = scene.said
    scene.found = [health_pod("test://2")]
    scene.states.turn()
    assert (("test://1", "exited"), None) == (ended, scene.said)


def test_one_that_answers_again_is_believed_again(scene: Scene) -> None:
    scene.error = HANGS
    scene.states.turn()
    scene.found = [health_pod("test://2")]
    scene.error, scene.runs["uid-1"] = None, ("2", RUNNING)
    scene.states.turn()
    assert (("test://2", "running"), "") == (scene.said, scene.finding)


def test_one_that_has_never_answered_is_said_and_nothing_is_known_by_it() -> None:
    scene = Scene()
    scene.error = HANGS
    scene.states.turn()
    assert (None, "RuntimeSilent") == (scene.said, scene.finding)


def test_what_is_said_is_one_line_of_bounded_length(scene: Scene) -> None:
    scene.error = CriError("ListPodSandbox", "/s", Trouble.REFUSED, "x\n" * 5000)
    scene.states.turn()
    finding = scene.states.silent()
    assert finding is not None
    assert ("\n" not in finding.text, len(finding.text) < 400) == (True, True)


@pytest.mark.parametrize(
    ("events", "error", "expected"),
    [
        pytest.param(False, None, LIST_S, id="each second, as the kubelet"),
        pytest.param(True, None, LIST_BESIDE_EVENTS_S, id="seldom while the runtime tells of changes"),
        pytest.param(True, HANGS, LIST_S, id="each second while lists have no answer"),
    ],
)
def test_how_often_is_listed(scene: Scene, events: bool, error: RuntimeUnavailable | None, expected: float) -> None:
    scene.events, scene.error = events, error
    assert expected == scene.states.turn()


@pytest.mark.parametrize(("uid", "woken"), [("uid-1", True), ("other", False)])
def test_only_events_of_health_pods_make_it_list(scene: Scene, uid: str, woken: bool) -> None:
    scene.states.take(ContainerEvent(EventKind.STOPPED, uid, "test://1"))
    assert woken is not scene.states._loop._asleep.locked()


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
