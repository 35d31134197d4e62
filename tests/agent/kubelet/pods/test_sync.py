"""The sync loop, one turn at a time: fake runtime, prober and clocks; the real status manager without its thread."""

import threading
from dataclasses import replace

import pytest

from agent.kubelet.pods.resizing import FORGOTTEN, Grants
from agent.kubelet.pods.sync import PodLoop
from agent.kubelet.pods.work_queue import WorkQueue
from agent.kubelet.runtime.base import StartError
from agent.kubelet.status.generate import Host
from agent.kubelet.status.manager import StatusManager, VersionedStatus
from agent.wire import model
from agent.wire.model import (
    ContainerRunning,
    ContainerStatus,
    ContainerWaiting,
    Pod,
    PodPhase,
    PodStatus,
    RestartPolicy,
    Result,
)
from agent.wire.semantics import Semantics
from tests.agent.kubelet.status.builders import NOW, make_pod, make_status
from tools.fakes.hooks import FakeHooks
from tools.fakes.pods import Pods
from tools.fakes.prober import FakeProber
from tools.fakes.runtime import FakeRuntime
from tools.kit.clock import Clock
from tools.kit.waiting import wait_until


def node_for(pods: int) -> model.Node:
    status = model.NodeStatus(allocatable={"cpu": "4", "memory": "8Gi", "pods": str(pods)})
    return model.Node("node-1", labels={"pool": "a"}, status=status)


class Node:
    """A loop with everything around it. `settle()` takes turns until nothing is left to do at this time."""

    def __init__(self, max_pods: int = 110, semantics: Semantics | None = None, grants: Grants = FORGOTTEN) -> None:
        semantics = semantics or Semantics()
        self.clock, self.wall = Clock(NOW), Clock(NOW)
        self.inbox = WorkQueue()
        self.pods = Pods()
        self.runtime = FakeRuntime(self.wall)
        self.prober = FakeProber()
        self.hooks = FakeHooks()
        self.liveness = {}
        self.startup = {}
        self.told = []
        self.random = 0.0  # no jitter
        self.as_read = self.newest = node_for(max_pods)
        self.asked = 0
        self.statuses = StatusManager(None, self.pods, lambda uid: self.loop.could_run(uid), semantics, wall=self.wall)
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
            host=Host("127.0.1.1"),
            nodes=self,
            semantics=semantics,
            record=lambda event: self.told.append((event.about.field_path, event.type, event.reason, event.message)),
            grants=grants,
            wall=self.wall,
            monotonic=self.clock,
            random=lambda: self.random,
        )

    def known_node(self) -> model.Node:
        return self.as_read

    def read_node(self) -> model.Node | None:
        self.asked += 1
        return self.newest

    def put(self, pod: Pod) -> None:
        self.pods[pod.uid] = pod
        self.inbox.put(pod.uid)
        self.settle()

    def end(self, name: str, exit_code: int = 0, uid: str = "uid-1") -> None:
        self.runtime.end(name, exit_code)
        self.inbox.put(uid)
        self.settle()

    def remove(self, uid: str = "uid-1") -> None:
        del self.pods[uid]
        self.inbox.put(uid)
        self.settle()

    def settle(self) -> None:
        for _ in range(5):
            self.loop.sync_pods(self.inbox.take(0.0))

    def after(self, seconds: float) -> None:
        self.clock.time += seconds
        self.wall.time += seconds
        self.settle()

    def status(self, uid: str = "uid-1") -> PodStatus | None:
        return self.statuses.pod_status(uid)

    def container(self) -> ContainerStatus:
        return self.status().container_statuses[0]

    def finished(self, uid: str = "uid-1") -> bool:
        return self.versioned(uid).finished

    def versioned(self, uid: str = "uid-1") -> VersionedStatus:
        return self.statuses.versioned_status(uid)


@pytest.fixture
def node() -> Node:
    return Node()


POD = make_pod("c")
DELETED = replace(POD, deletion_timestamp=NOW, deletion_grace_period_s=7)


def test_a_new_pod_is_started_and_running(node: Node) -> None:
    node.put(POD)
    status = node.status()
    assert (PodPhase.RUNNING, "127.0.1.2", "127.0.1.1") == (status.phase, status.pod_ip, status.host_ip)
    assert {"Ready": "True", "ContainersReady": "True"}.items() <= {c.type: c.status for c in status.conditions}.items()
    assert "add" in node.prober.calls


def test_init_containers_run_one_after_another(node: Node) -> None:
    node.put(make_pod("app", init=("i", "j")))
    assert [("i", 0)] == node.runtime.started
    node.end("i")
    node.end("j")
    assert [("i", 0), ("j", 0), ("app", 0)] == node.runtime.started
    assert node.status().phase is PodPhase.RUNNING


def test_crashes_wait_longer_each_time(node: Node) -> None:
    node.put(POD)
    node.end("c", 1)
    assert [("c", 0), ("c", 1)] == node.runtime.started
    node.end("c", 1)
    assert (
        ContainerWaiting("CrashLoopBackOff", "back-off 10s restarting failed container=c pod=pod-1_default(uid-1)")
        == node.container().state
    )
    assert (1, PodPhase.RUNNING) == (node.container().last_state.exit_code, node.status().phase)
    node.after(9)
    assert len(node.runtime.started) == 2
    node.after(1)
    assert ("c", 2) == node.runtime.started[-1]
    assert isinstance(node.container().state, ContainerRunning)
    node.end("c", 1)
    assert "back-off 20s" in node.container().state.message


def test_a_clock_that_is_set_back_does_not_keep_a_container_waiting(node: Node) -> None:
    node.put(POD)
    node.end("c", 1)
    node.end("c", 1)
    node.wall.time -= 3600
    node.after(10)
    assert [("c", 0), ("c", 1), ("c", 2)] == node.runtime.started


def test_a_container_that_cannot_start_says_why(node: Node) -> None:
    node.runtime.refuse["c"] = StartError("CreateContainerConfigError", "env X: secretKeyRef is not supported here")
    node.put(POD)
    assert (
        ContainerWaiting("CreateContainerConfigError", "env X: secretKeyRef is not supported here")
        == node.container().state
    )
    assert node.status().phase is PodPhase.PENDING
    node.runtime.refuse.clear()
    node.after(10)
    assert node.status().phase is PodPhase.RUNNING


def test_a_failed_liveness_probe_kills_once_and_restarts(node: Node) -> None:
    node.put(POD)
    node.liveness["fake://1"] = Result.FAILURE
    node.inbox.put("uid-1")
    node.settle()
    assert [("c", 30)] == node.runtime.stopped
    node.end("c", 143)
    assert [("c", 0), ("c", 1)] == node.runtime.started


WHERE = "spec.containers{c}"
MADE = [(WHERE, "Normal", "Created", "Container created"), (WHERE, "Normal", "Started", "Container started")]


def test_what_happens_to_a_container_is_told(node: Node) -> None:
    node.put(POD)
    assert MADE == node.told
    node.liveness["fake://1"] = Result.FAILURE
    node.inbox.put("uid-1")
    node.settle()
    assert [WHERE, "Normal", "Killing"] == list(node.told[2][:3])
    assert node.told[2][3].startswith("Container c failed liveness probe")
    node.liveness.clear()
    node.end("c", 143)
    node.end("c", 1)
    node.end("c", 1)
    text = f"Back-off restarting failed container c in pod {POD.name}_{POD.namespace}(uid-1)"
    assert [*MADE, *MADE, (WHERE, "Warning", "BackOff", text)] == node.told[3:8]
    node.runtime.refuse["c"] = StartError("CreateContainerConfigError", "no such secret")
    node.after(10)
    assert (WHERE, "Warning", "Failed", "Error: no such secret") in node.told


def test_the_end_of_a_pod_is_told(node: Node) -> None:
    node.put(POD)
    node.put(DELETED)
    assert [(WHERE, "Normal", "Killing", "Stopping container c")] == node.told[2:]


@pytest.mark.parametrize(
    ("exit_code", "expected"), [(0, PodPhase.SUCCEEDED), (1, PodPhase.FAILED)], ids=["success", "error"]
)
def test_a_pod_that_is_done_is_finished(node: Node, exit_code: int, expected: object) -> None:
    node.put(replace(POD, restart_policy=RestartPolicy.NEVER))
    node.end("c", exit_code)
    assert (expected, True, False) == (node.status().phase, node.finished(), node.loop.could_run("uid-1"))


def test_a_deleted_pod_ends_in_the_order_of_the_kubelet(node: Node) -> None:
    node.put(POD)
    node.prober.calls.clear()
    node.put(DELETED)
    assert [("c", 7)] == node.runtime.stopped
    assert ["stop liveness and startup"] == node.prober.calls
    assert (False, True) == (node.finished(), node.loop.could_run("uid-1"))
    node.end("c", 143)
    assert ["stop liveness and startup", "remove"] == node.prober.calls
    assert (PodPhase.FAILED, True, False) == (node.status().phase, node.finished(), node.loop.could_run("uid-1"))
    node.remove()
    assert node.runtime.known_pods() == frozenset()


def test_a_deleted_container_is_not_restarted(node: Node) -> None:
    node.put(POD)
    node.put(DELETED)
    node.end("c", 1)
    node.after(60)
    assert [("c", 0)] == node.runtime.started


def test_lh18_a_shorter_grace_is_passed_on(node: Node) -> None:
    node.put(POD)
    node.put(DELETED)
    node.put(replace(DELETED, deletion_grace_period_s=2))
    node.put(replace(DELETED, deletion_grace_period_s=20))
    assert [("c", 7), ("c", 2)] == node.runtime.stopped


def test_a_pod_that_vanishes_keeps_its_grace_and_is_forgotten(node: Node) -> None:
    node.put(POD)
    node.put(DELETED)
    node.remove()
    assert [("c", 7)] == node.runtime.stopped
    node.end("c", 137)
    node.after(2)
    assert (frozenset(), None) == (node.runtime.known_pods(), node.status())


def test_a_pod_deleted_before_it_was_seen_is_finished_at_once(node: Node) -> None:
    node.put(DELETED)
    assert ([], True) == (node.runtime.started, node.finished())


def test_a_pod_that_somebody_failed_is_ended(node: Node) -> None:
    node.put(POD)
    node.put(replace(POD, status=make_status(phase=PodPhase.FAILED, reason="Evicted")))
    assert [("c", 30)] == node.runtime.stopped
    node.end("c", 143)
    assert (PodPhase.FAILED, True) == (node.status().phase, node.finished())


def test_a_finished_pod_that_is_deleted_gets_a_new_version(node: Node) -> None:
    pod = replace(POD, restart_policy=RestartPolicy.NEVER)
    node.put(pod)
    node.end("c", 0)
    before = node.versioned().version
    node.put(replace(pod, deletion_timestamp=NOW))
    after = node.versioned()
    assert (True, True) == (after.version > before, after.finished)


def test_more_pods_than_the_node_takes_are_rejected() -> None:
    node = Node(max_pods=1)
    node.put(POD)
    node.put(make_pod("c", uid="uid-2", name="pod-2"))
    status = node.status("uid-2")
    assert (PodPhase.FAILED, "OutOfpods") == (status.phase, status.reason)
    text = "Node didn't have enough resource: pods, requested: 1, used: 1, capacity: 1"
    assert f"Pod was rejected: {text}" == status.message
    assert ("", "Warning", "OutOfpods", text) == node.told[-1]
    assert [("c", 0)] == node.runtime.started


def test_stop_ends_the_containers_and_says_so(node: Node) -> None:
    node.put(POD)
    node.loop.start()
    node.loop.stop()
    node.loop.stop()
    assert 143 == node.container().state.exit_code
    assert {"Ready": "False"}.items() <= {c.type: c.status for c in node.status().conditions}.items()


def test_pods_of_an_earlier_agent_that_are_gone_are_removed(node: Node) -> None:
    node.runtime.prepare_pod(make_pod(uid="old"))
    node.settle()
    assert node.runtime.known_pods() == frozenset()


def test_a_pod_that_fails_to_sync_is_tried_again(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(node.prober, "update_pod_status", None)
        node.put(POD)
    assert node.status() is None
    node.after(10)
    assert node.status().phase is PodPhase.RUNNING


def test_a_housekeeping_that_fails_once_does_not_end_the_loop(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = threading.Event()

    def fail(_desired: frozenset[str]) -> None:
        if not failed.is_set():
            failed.set()
            raise RuntimeError("a bug")

    monkeypatch.setattr(node.prober, "cleanup_pods", fail)
    node.loop.start()
    assert failed.wait(30)
    node.pods["uid-1"] = POD
    node.inbox.put("uid-1")
    wait_until(lambda: node.status() is not None, "the pod is synced")
    node.loop.stop()


def test_stop_returns_within_a_second_while_the_runtime_hangs(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    entered, let_go = threading.Event(), threading.Event()

    def hang(*_arguments: object) -> None:
        entered.set()
        let_go.wait(30)

    monkeypatch.setattr(node.runtime, "prepare_pod", hang)
    node.loop.start()
    node.pods["uid-1"] = POD
    node.inbox.put("uid-1")
    assert entered.wait(30)
    stopping = threading.Thread(target=node.loop.stop)
    stopping.start()
    stopping.join(5)
    assert not stopping.is_alive()
    let_go.set()


def test_a_pod_that_lacks_probes_runs_and_is_looked_at_again(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as full:
        full.setattr(node.prober, "add_pod", lambda _pod: node.prober.calls.append("no thread"))
        node.put(POD)
    assert PodPhase.RUNNING == node.status().phase
    node.after(10)
    assert ["no thread", "add"] == [node.prober.calls[0], node.prober.calls[-1]]


def test_what_is_due_wakes_the_pod_by_itself(node: Node) -> None:
    node.put(POD)
    node.runtime.end("c", 0)
    node.after(60)
    assert [("c", 0), ("c", 1)] == node.runtime.started
