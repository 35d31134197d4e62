"""What a container runtime makes of us must not pile up, and nobody waits for it who need not (rows CW)."""

import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from agent.cri.calls import Calls, PodIsEnding
from agent.kubelet.runtime.base import StartError
from agent.kubelet.runtime.cri_runtime import CriRuntime
from agent.kubelet.runtime.stopper import Stopper
from agent.processes.command import RuntimeUnavailable
from agent.wire.containers import ContainerPhase
from tests.agent.kubelet.runtime.conftest import PATIENT_S, Faked
from tests.agent.kubelet.runtime.test_cri_runtime import POD, C, ended
from tools.kit.waiting import wait_until

SLOW = replace(C, image="slow", image_pull_policy="Always")


def stops(faked: Faked) -> list[str]:
    return [call for call in faked.calls() if call.startswith("StopContainer")]


@pytest.mark.parametrize("method", ["StartContainer", "CreateContainer"])
@pytest.mark.parametrize("fault", ["UNKNOWN:no such file", "do, garbage"])
def test_cw3_containers_that_cannot_be_started_do_not_pile_up(faked: Faked, method: str, fault: str) -> None:
    agent = faked.agent()
    agent.prepare_pod(POD)
    faked.says(**{method: fault})
    for count in range(6):
        with pytest.raises(StartError):
            agent.start_container(POD, replace(C, name="c"), count)
        faked.fake.store.write(state := faked.fake.store.read())
        for container in state["containers"].values():  # as containerd: one that could not be started has ended
            container["state"] = 2
        faked.fake.store.write(state)
    assert len(agent.pod("u").instances("c")) <= 2


def test_cw3_sandboxes_that_never_become_ready_do_not_pile_up(faked: Faked) -> None:
    agent = faked.agent()
    for _ in range(6):
        agent.prepare_pod(POD)
        agent.stop_pod("u")
    assert [5, 4] == [sandbox.attempt for sandbox in agent.pod("u").sandboxes]
    faked.says(RunPodSandbox="do, garbage")
    for _ in range(6):
        with pytest.raises(StartError):
            agent.prepare_pod(POD)
        agent.stop_pod("u")
    assert 2 == faked.left()[0]


@pytest.mark.parametrize("method", ["PullImage", "CreateContainer", "StartContainer", "ImageStatus"])
def test_cw18_a_pod_that_is_to_end_waits_for_nothing_that_is_made_for_it(faked: Faked, method: str) -> None:
    agent = faked.agent()
    agent.prepare_pod(POD)
    faked.says(**{method: "hang"})
    told: list[Exception] = []

    def start() -> None:
        try:
            agent.start_container(POD, replace(SLOW, image_pull_policy="IfNotPresent"), 0)
        except PodIsEnding as e:
            told.append(e)

    starting = threading.Thread(target=start)
    starting.start()
    wait_until(lambda: agent._calls["u"]._open, timeout_s=PATIENT_S)
    agent.abandon("u")
    starting.join(10.0)
    assert not starting.is_alive()
    for make in (lambda: agent.start_container(POD, C, 1), lambda: agent.prepare_pod(POD)):
        with pytest.raises(PodIsEnding):
            make()
    assert ([PodIsEnding], {}) == ([type(e) for e in told], agent._images._failed)
    faked.says()
    agent.stop_pod("u")
    agent.remove_pod("u")
    assert {} == agent._calls


def test_cw18_a_call_that_begins_while_its_pod_is_given_up_is_cancelled() -> None:
    calls, did = Calls(), []

    class Call:
        def __iter__(self) -> Iterator[bytes]:
            did.append("waited")
            yield b""

        def cancel(self) -> None:
            did.append("cancelled")

    def begin() -> Call:
        calls.end()
        return Call()

    with pytest.raises(PodIsEnding):
        calls.answers(begin, 1)
    assert ["cancelled"] == did


def test_cw18_a_sandbox_too(faked: Faked) -> None:
    agent = faked.agent()
    faked.says(RunPodSandbox="hang")
    threading.Timer(0.5, lambda: agent.abandon("u")).start()
    with pytest.raises(PodIsEnding):
        agent.prepare_pod(POD)


def test_cw19_images_are_pulled_one_after_another(faked: Faked) -> None:
    agent = faked.agent()
    other = replace(POD, uid="v", name="pod-2")
    for pod in (POD, other):
        agent.prepare_pod(pod)
    faked.says(PullImage="hang")
    told: list[str] = []

    def start(pod, image):
        try:
            agent.start_container(pod, replace(SLOW, image=image), 0)
        except PodIsEnding:
            told.append(pod.uid)
        else:
            told.append(f"{pod.uid} runs")

    threads = [threading.Thread(target=start, args=of) for of in ((POD, "slow"), (other, "quick"))]
    before = faked.fake.hung("PullImage")
    threads[0].start()
    wait_until(lambda: faked.fake.hung("PullImage") > before, timeout_s=PATIENT_S)
    faked.says()
    threads[1].start()
    threads[1].join(1.5)
    assert ([], True) == (told, threads[1].is_alive())
    agent.abandon("u")
    for thread in threads:
        thread.join(20.0)
    assert ["u", "v runs"] == sorted(told)


def test_cw7_who_could_not_pull_an_image_keeps_no_other_pod_from_it(faked: Faked) -> None:
    agent = faked.agent()
    other = replace(POD, uid="v", name="pod-2")
    for pod in (POD, other):
        agent.prepare_pod(pod)
    faked.says(PullImage="UNKNOWN:no")
    reasons = []
    for pod in (POD, POD, other):
        with pytest.raises(StartError) as told:
            agent.start_container(pod, SLOW, 0)
        reasons.append(told.value.reason)
    agent.remove_pod("u")
    assert (["ErrImagePull", "ImagePullBackOff", "ErrImagePull"], {"v"}) == (reasons, set(agent._images._failed))


def test_cw11_one_that_runs_on_though_it_is_called_stopped_is_stopped_again(faked: Faked) -> None:
    agent = faked.agent()
    agent.prepare_pod(POD)
    id_ = agent.start_container(POD, C, 0)
    faked.says(StopContainer={})
    agent.stop_container(id_, 2.0)
    with pytest.raises(RuntimeUnavailable, match="runs on"):
        agent._stop_once(id_, 2.0)
    assert [] == stops(faked)
    faked.says()
    wait_until(lambda: not agent._stops._deadlines, timeout_s=PATIENT_S)
    assert (True, 1) == (ended(agent, id_), len(stops(faked)))


def test_cw11_one_of_which_nothing_is_known_even_then_is_removed(faked: Faked) -> None:
    agent = faked.agent()
    agent.prepare_pod(POD)
    id_ = agent.start_container(POD, C, 0)
    state = faked.fake.store.read()
    state["containers"][id_.rpartition("/")[2]]["state"] = 3
    faked.fake.store.write(state)
    assert [ContainerPhase.UNKNOWN] == [c.phase for c in agent.pod("u").containers]
    agent.stop_container(id_, 2.0)
    wait_until(lambda: not agent._stops._deadlines, timeout_s=PATIENT_S)
    assert (1, 0) == faked.left()


def test_cw11_without_a_thread_for_it_the_stop_of_before_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    works = threading.Event()

    def stop(container_id: str, _grace_s: float) -> None:
        asked.append(container_id)
        if not works.is_set():
            raise RuntimeUnavailable("no")

    stopping = Stopper(stop)
    stopping.ask("c", 60.0)
    wait_until(lambda: asked == ["c"], timeout_s=PATIENT_S)

    def no_thread(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", no_thread)
        with pytest.raises(RuntimeUnavailable, match="no thread for it"):
            stopping.ask("c", 2.0)
    works.set()
    wait_until(lambda: len(asked) == 2 and not stopping._deadlines, timeout_s=PATIENT_S)
    stopping.close()


def test_cw4_of_a_runtime_that_passes_filters_over_a_pod_gets_its_own(faked: Faked) -> None:
    agent: CriRuntime = faked.agent()
    other = replace(POD, uid="other", name="pod-2")
    agent.prepare_pod(other)
    agent.start_container(other, C, 0)
    state = faked.fake.store.read()
    (id_,) = state["containers"]
    listed = {
        "id": id_,
        "podSandboxId": "s1",
        "metadata": {"name": "c"},
        "image": {"image": "i"},
        "labels": state["containers"][id_]["config"]["labels"],
    }
    faked.says(ListContainers={"containers": [listed]})
    assert ((), 1) == (agent.pod("u1").containers, len(agent.pod("other").containers))


def test_cw18_a_call_for_a_pod_needs_no_thread_of_the_librarys(faked: Faked, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it could not be started it counted as begun: later calls were never read, and to stop took for ever."""
    agent = faked.agent()

    def no_thread(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", no_thread)
        agent.prepare_pod(POD)
        stream = agent.reader.events()
    made: list[str] = []
    threading.Thread(target=lambda: made.append(agent.start_container(POD, C, 0)), daemon=True).start()
    wait_until(lambda: bool(made), timeout_s=PATIENT_S)
    assert (1, 1) == faked.left()
    stream.cancel()


def test_nothing_is_made_beside_a_kubelet_that_came_while_the_image_was_pulled(
    faked: Faked, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = faked.agent()
    agent.prepare_pod(POD)
    pulls = iter(["", "a kubelet answers", "a kubelet answers"])
    monkeypatch.setattr(faked.guard, "refusal", lambda: next(pulls))
    with pytest.raises(StartError, match="a kubelet answers"):
        agent.start_container(POD, replace(C, image_pull_policy="Always"), 0)
    assert (1, 0) == faked.left()
