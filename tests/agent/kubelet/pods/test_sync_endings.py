"""How containers end and what follows: sidecars, probes that failed, graces. As KillPod of pkg/kubelet/kuberuntime."""

from dataclasses import replace

import pytest

from agent.processes.command import RuntimeUnavailable
from agent.wire.containers import ContainerPhase
from agent.wire.model import Container, ContainerWaiting, Pod, PodPhase, Probe, RestartPolicy, RestartRule, Result
from tests.agent.kubelet.pods.test_sync import DELETED, POD, Node
from tests.agent.kubelet.status.builders import NOW, make_pod, sidecar

SIDECARS = make_pod("app", init=(sidecar("s"), sidecar("t")), termination_grace_period_s=20)


@pytest.fixture
def node() -> Node:
    return Node()


def looked_at(node: Node) -> None:
    node.inbox.put("uid-1")
    node.settle()


def fails(node: Node, container_id: str) -> None:
    node.liveness[container_id] = Result.FAILURE
    looked_at(node)


def test_a_pod_whose_app_is_done_ends_though_its_sidecar_runs_on(node: Node) -> None:
    node.put(replace(make_pod("app", init=(sidecar("s"),)), restart_policy=RestartPolicy.NEVER))
    node.end("app")
    assert [("s", 30)] == node.runtime.stopped
    node.end("s", 143)
    assert (PodPhase.SUCCEEDED, True) == (node.status().phase, node.finished())


def test_a_container_whose_probe_failed_starts_again_though_it_ended_well(node: Node) -> None:
    node.put(replace(POD, restart_policy=RestartPolicy.ON_FAILURE))
    fails(node, "fake://1")
    node.end("c", 0)
    assert [("c", 0), ("c", 1)] == node.runtime.started
    assert (PodPhase.RUNNING, False) == (node.status().phase, node.finished())


def test_under_never_it_is_over(node: Node) -> None:
    node.put(replace(POD, restart_policy=RestartPolicy.NEVER))
    fails(node, "fake://1")
    node.end("c", 0)
    assert ([("c", 0)], PodPhase.SUCCEEDED) == (node.runtime.started, node.status().phase)


def test_a_sidecar_whose_probe_failed_starts_again(node: Node) -> None:
    node.put(make_pod("app", init=(replace(sidecar("s"), liveness_probe=Probe(None)),)))
    fails(node, "fake://1")
    node.end("s", 0)
    assert [("s", 0), ("app", 0), ("s", 1)] == node.runtime.started


def test_an_app_that_ended_with_its_sidecar_waits_for_its_start(node: Node) -> None:
    node.put(make_pod("app", init=(replace(sidecar("s"), startup_probe=Probe(None)),)))
    node.startup["fake://1"] = Result.SUCCESS
    looked_at(node)
    assert [("s", 0), ("app", 0)] == node.runtime.started
    node.runtime.end("s", 1)
    node.end("app", 1)
    assert [("s", 1)] == node.runtime.started[2:]
    node.startup["fake://3"] = Result.SUCCESS
    looked_at(node)
    assert [("s", 1), ("app", 1)] == node.runtime.started[2:]


def deleted(pod: Pod, grace_s: int) -> Pod:
    return replace(pod, deletion_timestamp=NOW, deletion_grace_period_s=grace_s)


def test_sidecars_end_after_the_app_the_last_one_first(node: Node) -> None:
    node.put(SIDECARS)
    node.put(deleted(SIDECARS, 20))
    assert [("app", 20)] == node.runtime.stopped
    node.after(5)
    node.end("app", 143)
    assert [("t", 15)] == node.runtime.stopped[1:]
    node.end("t", 143)
    assert [("s", 15)] == node.runtime.stopped[2:]
    node.end("s", 143)
    assert node.finished()


def test_a_pod_that_ends_is_told_of_before_its_probes_are_stopped(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """As SyncTerminatingPod: a result that stopping makes must find the status of the end."""
    node.put(POD)
    journal = []
    tell, stop = node.statuses.set_pod_status, node.prober.stop_liveness_and_startup
    monkeypatch.setattr(node.statuses, "set_pod_status", lambda *told: (journal.append("status"), tell(*told)))
    monkeypatch.setattr(node.prober, "stop_liveness_and_startup", lambda pod: (journal.append("stop"), stop(pod)))
    node.put(DELETED)
    assert ["status", "stop"] == journal


def test_when_the_grace_is_over_they_wait_no_longer(node: Node) -> None:
    node.put(SIDECARS)
    node.put(deleted(SIDECARS, 20))
    node.after(10)
    node.after(10)
    assert [("app", 20), ("s", 2), ("t", 2)] == [node.runtime.stopped[0], *sorted(node.runtime.stopped[1:])]


def test_the_grace_of_the_probe_that_failed_counts(node: Node) -> None:
    probe = Probe(None, termination_grace_period_s=5)
    node.put(make_pod(Container("c", liveness_probe=probe), termination_grace_period_s=20))
    fails(node, "fake://1")
    assert [("c", 5)] == node.runtime.stopped


def test_no_grace_is_shorter_than_two_seconds(node: Node) -> None:
    node.put(POD)
    node.put(replace(DELETED, deletion_grace_period_s=0))
    assert [("c", 2)] == node.runtime.stopped


def test_back_off_after_a_probe_that_failed_counts_from_the_end_of_the_instance_before(node: Node) -> None:
    node.put(POD)
    node.end("c", 1)  # the first restart is at once; the next would wait 10 s from here
    node.after(12)
    fails(node, "fake://2")
    node.end("c", 143)
    assert [("c", 0), ("c", 1), ("c", 2)] == node.runtime.started


def test_within_that_back_off_the_policy_decides(node: Node) -> None:
    node.put(POD)
    node.end("c", 1)
    node.after(3)
    fails(node, "fake://2")
    node.end("c", 143)
    assert [("c", 0), ("c", 1)] == node.runtime.started
    assert isinstance(node.container().state, ContainerWaiting)
    node.after(10)
    assert ("c", 2) == node.runtime.started[-1]


def test_all_containers_start_anew_in_place_when_one_demands_it(node: Node) -> None:
    rule = RestartRule("RestartAllContainers", "In", (42,))
    trigger = Container("b", restart_policy=RestartPolicy.NEVER, restart_rules=(rule,))
    node.put(make_pod("a", trigger, init=("i",), restart_policy=RestartPolicy.NEVER))
    node.end("i")
    node.end("b", 42)
    assert [("a", 2)] == node.runtime.stopped
    assert "AllContainersRestarting" in {c.type for c in node.status().conditions if c.status == "True"}
    node.end("a", 137)
    assert ("i", 1) == node.runtime.started[-1]
    assert {"i"} == {c.name for c in node.runtime.pod("uid-1").containers}
    node.end("i")
    assert [("a", 1), ("b", 1)] == node.runtime.started[-2:]
    assert (PodPhase.RUNNING, False) == (node.status().phase, node.finished())
    assert "AllContainersRestarting" not in {c.type for c in node.status().conditions if c.status == "True"}


@pytest.mark.parametrize("how", ["its probe failed", "it is deleted", "all start anew"])
def test_a_stop_that_could_not_even_be_asked_for_is_asked_for_again(
    node: Node, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = RestartRule("RestartAllContainers", "In", (42,))
    trigger = Container("b", restart_policy=RestartPolicy.NEVER, restart_rules=(rule,))
    pod = make_pod("a", trigger) if how == "all start anew" else POD
    node.put(pod)
    stop, asked = node.runtime.stop_container, []

    def no_thread(container_id: str, _grace_s: float) -> None:
        asked.append(container_id)
        raise RuntimeUnavailable("no thread for it")

    with monkeypatch.context() as full:
        full.setattr(node.runtime, "stop_container", no_thread)
        match how:
            case "its probe failed":
                fails(node, "fake://1")
            case "it is deleted":
                node.put(DELETED)
            case _:
                node.end("b", 42)
    assert ({"fake://1"}, []) == (set(asked), node.runtime.stopped)
    assert stop == node.runtime.stop_container
    node.after(10.0)
    assert 1 == len(node.runtime.stopped)


def test_cw8_nothing_starts_in_place_of_one_that_may_still_run(node: Node) -> None:
    node.put(POD)
    known = node.runtime.pods["uid-1"]
    (instance,) = known.containers
    node.runtime.pods["uid-1"] = replace(known, containers=(replace(instance, phase=ContainerPhase.UNKNOWN),))
    looked_at(node)
    looked_at(node)
    assert ([("c", 30)], [("c", 0)]) == (node.runtime.stopped, node.runtime.started)
    node.runtime.pods["uid-1"] = replace(known, containers=())
    looked_at(node)
    assert [("c", 0), ("c", 1)] == node.runtime.started
