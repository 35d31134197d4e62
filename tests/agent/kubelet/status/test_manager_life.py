"""The status manager as a thread, and what becomes of it when the API server or one pod misbehaves."""

import json
import threading

import pytest

from agent.kubelet.status.manager import StatusManager
from agent.wire.model import Pod, PodPhase
from agent.wire.semantics import Semantics
from kube.errors import DeadlineExceeded
from tests.agent.kubelet.status.builders import make_pod, make_status
from tests.agent.kubelet.status.scene import Pods, Scene, as_json
from tools.kit.waiting import wait_until

RUNNING = make_status(phase=PodPhase.RUNNING)


def test_a_server_that_is_away_is_asked_once_a_batch_not_once_a_pod() -> None:
    scene = Scene()
    other = make_pod("c1", uid="uid-2", name="pod-2")
    scene.pods[other.uid] = other
    scene.set(make_status(phase=PodPhase.RUNNING))
    scene.set(make_status(phase=PodPhase.RUNNING), other)
    scene.client.errors["GET"] = [DeadlineExceeded]
    assert scene.sync() == "GET", "each would cost its deadline"
    assert scene.sync() == "GET GET PATCH"


def test_a_pod_that_gets_no_answers_does_not_keep_others_from_being_written(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene()
    asked: list[str] = []

    def get(path: str) -> bytes:
        asked.append(path.rpartition("/")[2])
        raise DeadlineExceeded(path=path)

    monkeypatch.setattr(scene.client, "get", get)
    for number in range(3):
        pod = make_pod("c1", uid=f"uid-{number}", name=f"pod-{number}")
        scene.set(make_status(phase=PodPhase.RUNNING), pod)
    for _ in range(6):
        scene.sync()
    assert asked == ["pod-0", "pod-1", "pod-2"] * 2


def test_a_pod_whose_write_fails_by_a_bug_of_ours_costs_no_other_its_status(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    scene = Scene()
    asked: list[str] = []
    get = scene.client.get

    def break_at_the_first(path: str) -> bytes:
        asked.append(path.rpartition("/")[2])
        if asked[-1] == "pod-0":
            raise RuntimeError("a bug")
        return get(path)

    monkeypatch.setattr(scene.client, "get", break_at_the_first)
    for number in range(2):
        scene.set(RUNNING, make_pod("c1", uid=f"uid-{number}", name=f"pod-{number}"))
    assert scene.manager.sync_batch(everything=False) == 2
    assert (["pod-0", "pod-1"], 1) == (asked, caplog.text.count("RuntimeError: a bug"))


@pytest.mark.parametrize("answer", [b"{", b"[]", b'{"metadata": {"name": "\xff"}}'], ids=["cut", "a list", "no UTF-8"])
def test_an_answer_that_makes_no_sense_is_one_line_of_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, answer: bytes
) -> None:
    scene = Scene()
    scene.set(RUNNING)
    monkeypatch.setattr(scene.client, "get", lambda _path: answer)
    scene.sync()
    assert ["pod could not be decoded"] == [record.getMessage() for record in caplog.records]
    assert "Traceback" not in caplog.text


def test_an_update_wakes_the_thread() -> None:
    scene = Scene()
    scene.manager.start()
    scene.set(RUNNING)
    wait_until(lambda: "PATCH" in scene.client.actions, "a write before the tick")
    scene.manager.stop()


def test_an_update_during_a_batch_is_written_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene()
    patch = scene.client.patch

    def patch_while_it_changes(path: str, body: bytes, *, content_type: str) -> bytes:
        scene.set(make_status(phase=PodPhase.RUNNING, message="newer"))
        return patch(path, body, content_type=content_type)

    monkeypatch.setattr(scene.client, "patch", patch_while_it_changes)
    scene.manager.start()
    scene.set(RUNNING)
    wait_until(lambda: any(body["status"].get("message") == "newer" for body in scene.client.bodies), "the newer one")
    scene.manager.stop()


def test_stop_writes_what_is_not_yet_written_and_may_be_called_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene()
    turning, go_on = threading.Event(), threading.Event()
    get = scene.client.get

    def wait(path: str) -> bytes:
        turning.set()
        go_on.wait(5)
        return get(path)

    monkeypatch.setattr(scene.client, "get", wait)
    scene.set(RUNNING)
    scene.manager.start()
    assert turning.wait(30)
    scene.set(make_status(phase=PodPhase.RUNNING, message="the last word"))
    threading.Timer(0.05, go_on.set).start()
    scene.manager.stop()
    scene.manager.stop()
    assert scene.client.actions == ["GET", "PATCH"] * 2
    assert scene.client.bodies[-1]["status"]["message"] == "the last word"
    assert not scene.manager.healthy(scene.monotonic())


def test_stop_returns_within_a_second_while_the_server_stalls(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene()
    asked, let_go = threading.Event(), threading.Event()

    def stall(path: str) -> bytes:
        asked.set()
        let_go.wait(30)
        raise DeadlineExceeded(path=path)

    monkeypatch.setattr(scene.client, "get", stall)
    scene.manager.start()
    scene.set(RUNNING)
    assert asked.wait(30)
    stopped = threading.Thread(target=scene.manager.stop)
    stopped.start()
    stopped.join(5)
    assert not stopped.is_alive()
    let_go.set()


def test_a_slow_server_does_not_make_the_manager_unhealthy(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene()
    healthy: list[bool] = []
    started = threading.Event()
    get = scene.client.get

    def slow(path: str) -> bytes:
        started.wait(5)
        scene.monotonic.time += 59.0
        healthy.append(scene.manager.healthy(scene.monotonic()))
        return get(path)

    monkeypatch.setattr(scene.client, "get", slow)
    for number in range(10):
        scene.set(RUNNING, make_pod("c1", uid=f"uid-{number}"))
    scene.manager.start()
    started.set()
    wait_until(lambda: len(healthy) >= 10, "a batch of ten")
    scene.manager.stop()
    assert [True] * 10 == healthy[:10], "its life does not depend on the API server's speed"


class ManyPods:
    """An API server with many pods; remembers the last message written of each."""

    def __init__(self, pods: list[Pod]) -> None:
        self._pods = {pod.name: pod for pod in pods}
        self.messages: dict[str, str] = {}

    def get(self, path: str) -> bytes:
        return as_json(self._pods[path.rpartition("/")[2]])

    def patch(self, path: str, body: bytes, *, content_type: str) -> bytes:  # noqa: ARG002 - the client's signature
        name = path.split("/")[-2]
        self.messages[name] = json.loads(body)["status"]["message"]
        return as_json(self._pods[name])

    def delete(self, path: str, body: bytes = b"") -> bytes:
        raise AssertionError(f"{path} was deleted: {body!r}")


def test_of_thousands_of_updates_under_six_threads_the_last_of_each_pod_is_written() -> None:
    pods = [make_pod("c1", uid=f"uid-{number}", name=f"pod-{number}") for number in range(12)]
    api = ManyPods(pods)
    manager = StatusManager(api, Pods({pod.uid: pod for pod in pods}), lambda _uid: True, Semantics())

    def update(own: list[Pod]) -> None:
        for turn in range(200):
            for pod in own:
                manager.set_pod_status(pod, make_status(phase=PodPhase.RUNNING, message=f"turn {turn}"))

    threads = [threading.Thread(target=update, args=(pods[start::6],)) for start in range(6)]
    manager.start()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = {pod.name: "turn 199" for pod in pods}
    wait_until(lambda: api.messages == expected, lambda: str(api.messages), timeout_s=9.0)
    manager.stop()
