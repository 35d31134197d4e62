"""The sync loop with a worker a pod, as beside a container runtime: a pod whose calls hang keeps no other waiting."""

import math
import threading
from dataclasses import replace

import pytest

from agent.cri.calls import PodIsEnding
from agent.kubelet.pods.sync import PodLoop
from agent.kubelet.runtime.base import StartError
from agent.processes.command import RuntimeUnavailable
from agent.wire.model import PodPhase
from tests.agent.kubelet.pods.test_sync import Node
from tests.agent.kubelet.status.builders import NOW, make_pod, make_status
from tools.kit.waiting import wait_until

PATIENT_S = 60.0


class Apart(Node):
    """Its loop has workers; `settle` waits until they are done with what there is."""

    def __init__(self, max_pods: int = 110) -> None:
        super().__init__(max_pods)
        one = self.loop
        self.abandoned = threading.Event()
        self.loop = PodLoop(
            self.inbox,
            self.pods,
            self.runtime,
            self.statuses,
            self.prober,
            self.hooks,
            liveness=self.liveness.get,
            startup=self.startup.get,
            source_synced=lambda: True,
            host=one._host,
            nodes=self,
            semantics=one._semantics,
            outlive=True,
            abandon=self.abandon,
            wall=self.wall,
            monotonic=self.clock,
            random=lambda: self.random,
        )

    def abandon(self, _uid: str) -> None:
        self.abandoned.set()

    def settle(self) -> None:
        for _ in range(5):
            self.loop.sync_pods(self.inbox.take(0.0))
            wait_until(lambda: not self.loop._workers._busy, timeout_s=PATIENT_S)


@pytest.fixture
def node() -> Apart:
    return Apart()


def test_pw6_the_life_of_a_pod(node: Apart) -> None:
    node.put(make_pod("c"))
    assert PodPhase.RUNNING == node.status().phase
    node.put(make_pod("c", deletion_timestamp=NOW, deletion_grace_period_s=7))
    assert [("c", 7.0)] == node.runtime.stopped
    node.end("c", 143)
    assert (["uid-1"], True) == (node.runtime.stopped_pods, node.finished())
    node.remove()
    assert {} == node.runtime.pods


def test_pw7_a_pod_whose_sandbox_is_being_made_keeps_no_other_waiting(node: Apart) -> None:
    made, prepare = threading.Event(), node.runtime.prepare_pod

    def slow(pod):
        if pod.uid == "slow":
            made.wait(PATIENT_S)
        return prepare(pod)

    node.runtime.prepare_pod = slow
    for uid in ("slow", "quick"):
        node.pods[uid] = make_pod("c", uid=uid, name=uid)
        node.inbox.put(uid)
    node.loop.sync_pods(node.inbox.take(0.0))
    wait_until(lambda: "quick" in node.runtime.pods and node.runtime.pods["quick"].running, timeout_s=PATIENT_S)
    assert "slow" not in node.runtime.pods
    assert node.loop._workers is not None
    node.loop.sync_pods({"slow"})  # asked for again while it is busy
    made.set()
    node.settle()
    assert [("c", 0), ("c", 0)] == node.runtime.started


def test_pw8_of_pods_that_come_at_once_no_more_are_taken_than_there_is_room_for() -> None:
    node = Apart(max_pods=5)
    for number in range(40):
        uid = f"u{number}"
        node.pods[uid] = make_pod("c", uid=uid, name=uid)
        node.inbox.put(uid)
    node.settle()
    phases = [node.status(f"u{number}").phase for number in range(40)]
    assert (5, 35) == (phases.count(PodPhase.RUNNING), phases.count(PodPhase.FAILED))


def test_pw9_a_runtime_that_is_away_is_asked_again_after_ten_seconds(node: Apart) -> None:
    stop = node.runtime.stop_pod

    def away(_uid):
        raise RuntimeUnavailable("away")

    node.runtime.stop_pod = away
    node.put(make_pod("c"))
    node.put(replace(make_pod("c"), deletion_timestamp=NOW, deletion_grace_period_s=1))
    node.end("c", 143)
    assert (False, True) == (node.finished(), node.loop.could_run("uid-1"))
    node.runtime.stop_pod = stop
    node.after(10.0)
    assert (True, False) == (node.finished(), node.loop.could_run("uid-1"))


def test_pw10_the_end_of_the_loop_leaves_containers_alone(node: Apart) -> None:
    node.put(make_pod("c"))
    node.loop._end_everything()
    assert ([], 1) == (node.runtime.stopped, len(node.runtime.pods["uid-1"].running))


def test_pw11_what_an_agent_before_us_has_left_of_a_pod_that_is_gone_is_removed(node: Apart) -> None:
    node.runtime.prepare_pod(make_pod("c", uid="gone"))
    node.settle()
    assert {} == node.runtime.pods


def test_pw12_pods_that_were_over_before_the_agent_came_take_no_room() -> None:
    """Their sandboxes were stopped by the agent before us; to stop them once more takes its time (k8s#105523)."""
    node = Apart(max_pods=1)
    let_go, stopping = threading.Event(), threading.Event()

    def slow(_uid):
        stopping.set()
        let_go.wait(PATIENT_S)

    node.runtime.stop_pod = slow
    node.pods["over"] = make_pod("c", uid="over", name="over", status=make_status(phase=PodPhase.SUCCEEDED))
    node.loop.sync_pods({"over"})
    assert stopping.wait(PATIENT_S)
    node.pods["runs"] = make_pod("c", uid="runs", name="runs")
    node.loop.sync_pods({"runs"})
    wait_until(lambda: node.status("runs") is not None, timeout_s=PATIENT_S)
    phase = node.status("runs").phase
    let_go.set()
    node.settle()
    assert (PodPhase.PENDING, PodPhase.RUNNING) == (phase, node.status("runs").phase)


def test_pw12_one_that_runs_still_takes_room_until_it_has_ended() -> None:
    node = Apart(max_pods=1)
    over = make_pod("c", uid="over", name="over", status=make_status(phase=PodPhase.FAILED))
    node.runtime.start_container(over, over.containers[0], 0)
    node.put(over)
    node.put(make_pod("c", uid="late", name="late"))
    assert (PodPhase.FAILED, "OutOfpods") == (node.status("late").phase, node.status("late").reason)


def test_pw8_the_oldest_are_taken_first() -> None:
    node = Apart(max_pods=3)
    for number in range(20):
        uid = f"u{number}"
        node.pods[uid] = make_pod("c", uid=uid, name=uid, created_at=1000.0 - number)
    node.inbox.put("u3")
    node.settle()
    assert {"u17", "u18", "u19"} == set(node.runtime.pods)


def test_pw8_one_of_which_it_is_not_known_what_the_runtime_has_is_not_overtaken() -> None:
    node = Apart(max_pods=1)
    known: set[str] = {"young"}
    node.runtime.ready = lambda uid: uid in known
    for at, uid in enumerate(("old", "young")):
        node.pods[uid] = make_pod("c", uid=uid, name=uid, created_at=float(at))
        node.inbox.put(uid)
    node.settle()
    assert node.runtime.started == []
    known.add("old")
    node.inbox.put("old")
    node.settle()
    assert {"old"} == set(node.runtime.pods)


def test_pw13_what_an_agent_before_us_has_left_of_a_pod_that_is_refused_is_ended() -> None:
    node = Apart(max_pods=1)
    node.put(make_pod("c"))
    refused = make_pod("c", uid="uid-2", name="pod-2")
    node.runtime.start_container(refused, refused.containers[0], 0)
    node.put(refused)
    node.after(2.0)
    assert (PodPhase.FAILED, {"uid-1"}) == (node.status("uid-2").phase, set(node.runtime.pods))


@pytest.mark.parametrize(
    "ends",
    [
        pytest.param(lambda pod: replace(pod, deletion_timestamp=NOW, deletion_grace_period_s=1), id="deleted"),
        pytest.param(lambda pod: replace(pod, status=make_status(phase=PodPhase.FAILED)), id="called over"),
        pytest.param(lambda _pod: None, id="gone"),
    ],
)
def test_pw14_a_pod_that_is_to_end_waits_for_nothing_that_is_being_made_for_it(node: Apart, ends) -> None:
    pod, began = make_pod("c"), threading.Event()

    def pull(*_arguments):
        began.set()
        assert node.abandoned.wait(PATIENT_S)
        raise PodIsEnding("given up")

    node.runtime.start_container = pull
    node.pods[pod.uid] = pod
    node.loop.sync_pods({pod.uid})
    assert began.wait(PATIENT_S)
    node.loop.sync_pods({pod.uid})  # something else that concerns it
    assert not node.abandoned.is_set()
    ended = ends(pod)
    node.pods.pop(pod.uid)
    if ended is not None:
        node.pods[pod.uid] = ended
    node.inbox.put(pod.uid)
    node.settle()
    assert (["uid-1"], [], False) == (node.runtime.stopped_pods, node.told, node.loop.could_run("uid-1"))


def test_pw19_the_last_attempt_sets_the_wait_even_if_the_attempt_before_it_failed(node: Apart) -> None:
    """The second attempt is asked for while the first one runs, so it begins at once (Enqueue replaces the time)."""
    began, go_on, start = threading.Event(), threading.Event(), node.runtime.start_container

    def slow(*arguments):
        began.set()
        assert go_on.wait(PATIENT_S)
        start(*arguments)
        raise RuntimeUnavailable("away")

    node.runtime.start_container = slow
    node.pods["uid-1"] = make_pod("c")
    node.loop.sync_pods({"uid-1"})
    assert began.wait(PATIENT_S)
    node.loop.sync_pods({"uid-1"})
    go_on.set()
    wait_until(lambda: not node.loop._workers._busy, timeout_s=PATIENT_S)
    assert node.clock() + 60.0 == node.loop._due.first(math.inf)


def test_pw19_the_time_that_was_set_before_holds_while_an_attempt_waits_for_the_runtime(node: Apart) -> None:
    """As in a kubelet, whose queue keeps the time until the attempt is over."""
    node.put(make_pod("c"))
    began, go_on, start = threading.Event(), threading.Event(), node.runtime.start_container

    def slow(*arguments):
        began.set()
        assert go_on.wait(PATIENT_S)
        return start(*arguments)

    node.runtime.start_container = slow
    due = node.loop._due.first(math.inf)
    node.clock.time += 20.0
    node.runtime.end("c", 1)
    node.loop.sync_pods({"uid-1"})
    assert began.wait(PATIENT_S)
    kept = node.loop._due.first(math.inf)
    go_on.set()
    node.settle()
    assert (due, node.clock() + 60.0) == (kept, node.loop._due.first(math.inf))


def test_pw19_the_wait_counts_from_the_end_of_an_attempt_that_waited_for_the_runtime(node: Apart) -> None:
    began, go_on = threading.Event(), threading.Event()

    def slow(*_arguments):
        began.set()
        assert go_on.wait(PATIENT_S)
        raise StartError("RunContainerError", "broken")

    node.runtime.start_container = slow
    node.pods["uid-1"] = make_pod("c")
    node.loop.sync_pods({"uid-1"})
    assert began.wait(PATIENT_S)
    node.clock.time += 55.0
    go_on.set()
    wait_until(lambda: not node.loop._workers._busy, timeout_s=PATIENT_S)
    assert node.clock() + 10.0 == node.loop._due.first(math.inf)
