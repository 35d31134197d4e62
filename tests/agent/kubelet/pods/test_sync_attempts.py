"""Rows PW20 to PW22: what one attempt of the sync loop does where the runtime is not able to do all of it."""

from dataclasses import replace

import pytest

from agent.cri.calls import PodIsEnding
from agent.kernel.clocks import Clocks
from agent.kubelet.pods.interfaces import LoopParts
from agent.kubelet.pods.sync import PodLoop
from agent.kubelet.runtime.base import StartError
from agent.kubelet.status.generate import Host
from agent.processes.command import RuntimeUnavailable
from agent.wire.model import PodPhase
from agent.wire.semantics import Semantics
from tests.agent.kubelet.pods.test_sync import POD, Node
from tests.agent.kubelet.status.builders import make_pod, make_status
from tools.fakes.hooks import FakeHooks

NO_NETWORK = "container runtime network not ready: NetworkReady=false"
STATIC = make_pod("c", static=True)
EVENT = ("", "Warning", "NetworkNotReady", f"network is not ready: {NO_NETWORK}")


class Cut(Node):
    """`network`: why there is none."""

    def __init__(self) -> None:
        super().__init__()
        self.network = NO_NETWORK
        self.loop = PodLoop(
            self.work_queue,
            LoopParts(
                pods=self.pods,
                runtime=self.runtime,
                statuses=self.statuses,
                prober=self.prober,
                hooks=FakeHooks(),
                liveness=self.liveness.get,
                startup=self.startup.get,
                source_synced=lambda: True,
                nodes=self,
                network=lambda: self.network,
                record=lambda event: self.told.append(
                    (event.about.field_path, event.type, event.reason, event.message)
                ),
            ),
            host=Host("127.0.1.1"),
            semantics=Semantics(),
            clocks=Clocks(wall=self.wall, monotonic=self.clock, random=lambda: self.random),
        )


def test_pw20_a_pod_without_network_has_a_status_and_an_event_and_does_not_start() -> None:
    node = Cut()
    node.put(POD)
    assert ([], [], [EVENT]) == (node.runtime.started, node.prober.calls, node.told)
    assert node.status() is not None


@pytest.mark.parametrize(("random", "seconds"), [(0.0, 1.0), (1.0, 1.5)])
def test_pw20_it_is_synced_again_in_a_second_and_up_to_half_of_one(random: float, seconds: float) -> None:
    node = Cut()
    node.random = random
    node.put(POD)
    node.network = ""
    node.after(seconds - 0.25)
    assert [] == node.runtime.started
    node.after(0.25)
    assert [("c", 0)] == node.runtime.started


def test_pw20_a_pod_in_the_network_of_the_host_needs_none() -> None:
    node = Cut()
    node.put(replace(POD, host_network=True))
    assert ([("c", 0)], False) == (node.runtime.started, EVENT in node.told)


def test_pw20_a_container_that_exits_is_not_started_again_without_network() -> None:
    node = Cut()
    node.network = ""
    node.put(POD)
    node.network = NO_NETWORK
    node.end("c", 1)
    assert [("c", 0)] == node.runtime.started
    assert 1 == node.container().state.exit_code


def test_pw21_after_an_attempt_to_end_that_failed_the_status_shows_what_it_has_done() -> None:
    node = Node()
    node.put(POD)
    stop, away = node.runtime.stop_pod, [True]

    def stop_pod(uid: str) -> None:
        if away[0]:
            raise RuntimeUnavailable("away")
        stop(uid)

    node.runtime.stop_pod = stop_pod
    node.put(replace(POD, deletion_timestamp=1.0, deletion_grace_period_s=30))
    node.end("c", 137)
    assert not hasattr(node.container().state, "exit_code")
    node.after(10)
    assert (137, False) == (node.container().state.exit_code, node.finished())
    away[0] = False
    node.after(10)
    assert node.finished()


def test_pw21_an_end_whose_first_look_failed_stops_probes_with_the_next() -> None:
    node = Node()
    node.put(POD)
    look = node.runtime.pod

    def pod(_uid: str) -> object:
        raise RuntimeUnavailable("away")

    node.runtime.pod = pod
    node.put(replace(POD, deletion_timestamp=1.0, deletion_grace_period_s=30))
    assert "stop liveness and startup" not in node.prober.calls
    node.runtime.pod = look
    node.after(10)
    assert "stop liveness and startup" in node.prober.calls


def test_pw21_a_failed_look_while_containers_end_counts_as_an_attempt_that_failed() -> None:
    """A kubelet does not look at the pod while its KillPod waits, and would not write this status."""
    node = Node()
    node.put(POD)
    look = node.runtime.pod
    node.put(replace(POD, deletion_timestamp=1.0, deletion_grace_period_s=30))

    def pod(_uid: str) -> object:
        raise RuntimeUnavailable("away")

    node.runtime.pod = pod
    node.after(10)
    node.runtime.pod, stop = look, node.runtime.stop_pod
    shown: list[int] = []

    def stop_pod(uid: str) -> None:
        shown.append(node.container().state.exit_code)
        stop(uid)

    node.runtime.stop_pod = stop_pod
    node.end("c", 137)
    assert ([137], [("c", 30)], True) == (shown, node.runtime.stopped, node.finished())


def test_pw22_a_container_that_cannot_be_started_is_tried_once_a_sync_and_its_status_says_why() -> None:
    node = Node()
    node.runtime.refuse["c"] = StartError("RunContainerError", "broken")
    node.put(POD)
    assert [("c", 0)] == node.runtime.started
    assert "RunContainerError" == node.container().state.reason
    node.after(10)
    assert [("c", 0)] * 2 == node.runtime.started


def test_sp34_a_file_that_was_gone_while_its_pod_was_worked_on_starts_it_again() -> None:
    """The worker is busy while the file goes and comes back, so it never sees that there is none."""
    node = Node()
    node.put(STATIC)
    del node.pods[STATIC.uid]
    node.loop._hurry(STATIC.uid)
    node.put(STATIC)
    node.end("c", 143)
    assert [("c", 0), ("c", 0)] == node.runtime.started


def test_sp34_a_pod_that_ends_keeps_its_grace_period_when_its_file_comes_back_with_another() -> None:
    node = Node()
    node.put(STATIC)
    node.remove()
    node.put(replace(STATIC, termination_grace_period_s=2))
    assert [("c", 30)] == node.runtime.stopped


def test_pw21_a_longer_grace_does_not_count_even_if_the_first_attempt_to_end_the_pod_failed() -> None:
    """calculateEffectiveGracePeriod keeps the shortest grace since the pod was first to end."""
    node = Node()
    node.put(POD)
    look = node.runtime.pod

    def pod(_uid: str) -> object:
        raise RuntimeUnavailable("away")

    node.runtime.pod = pod
    failed = replace(POD, termination_grace_period_s=2, status=make_status(phase=PodPhase.FAILED))
    node.put(failed)
    node.put(replace(failed, deletion_timestamp=1.0, deletion_grace_period_s=31))
    node.runtime.pod = look
    node.after(10)
    assert [("c", 2)] == node.runtime.stopped


def test_pw19_a_sync_that_is_given_up_is_tried_again_after_ten_seconds() -> None:
    """completeWork waits its back-off period after a cancelled sync, too."""
    node = Node()
    node.runtime.refuse["c"] = PodIsEnding("given up")
    node.put(POD)
    node.after(9.0)
    assert 1 == len(node.runtime.started)
    node.after(1.0)
    assert 2 == len(node.runtime.started)
