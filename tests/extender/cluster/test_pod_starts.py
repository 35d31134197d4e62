"""How pods start, read off their objects: what a watch of those that do not run says of owners and nodes."""

import math
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from extender.cluster.index import Index
from extender.cluster.pod_starts import SELECTOR, PodStarts, StartingPod
from extender.policy.pod_starts import Attempt, StartRule
from kube.objects import Condition
from kube.times import format_time
from tests.extender.builders import node, seen
from tools.kit.cases import cases
from tools.kit.clock import Clock

RULE = StartRule(namespaces=2, within_s=300.0, stuck_s=30.0)
WALL = 1_800_000_000.0
SANDBOX = {"type": "PodReadyToStartContainers", "status": "True"}
NO_SANDBOX = {"type": "PodReadyToStartContainers", "status": "False"}


def pod(
    owner: str | None,
    node: str,
    *,
    name: str = "",
    kind: str = "ReplicaSet",
    ending: bool = False,
    volumes: list[dict[str, Any]] | None = None,
    **status: Any,
) -> StartingPod:
    owners = [] if owner is None else [{"kind": kind, "name": owner, "uid": f"uid-{owner}", "controller": True}]
    meta = {"name": name or f"{owner}-{node}", "namespace": str(owner), "uid": f"uid-{name or f'{owner}-{node}'}"}
    meta |= {"ownerReferences": owners} | ({"deletionTimestamp": format_time(WALL)} if ending else {})
    value = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {"nodeName": node, "volumes": volumes},
        "status": {"phase": "Pending", **status},
    }
    return seen(StartingPod, value)


def rejected(owner: str | None, node: str, reason: str = "UnexpectedAdmissionError", **fields: Any) -> StartingPod:
    return pod(owner, node, phase="Failed", reason=reason, **fields)


class World:
    """The store, its clocks, and how often it called."""

    def __init__(self) -> None:
        self.clock, self.wall, self.calls = Clock(1000.0), Clock(WALL), 0
        self.reported: float | None = None
        self.ahead_s: float | None = None
        self.asked: Callable[[Attempt], bool] = lambda _: True
        self.starts = PodStarts(
            RULE,
            asked=lambda attempt: self.asked(attempt),
            on_change=self.called,
            reported=lambda: self.clock.time if self.reported is None else self.reported,
            ahead_s=lambda: self.ahead_s,
            monotonic=self.clock,
            wall=self.wall,
        )

    def called(self) -> None:
        self.calls += 1

    def passes(self, seconds: float) -> "World":
        self.clock.time += seconds
        self.wall.time += seconds
        return self

    def run(self, *owners: str, on: str = "good") -> "World":
        for owner in owners:
            self.starts.upsert(pod(owner, on, name=f"{owner}-runs"))
            self.starts.remove(pod(owner, on, name=f"{owner}-runs"))
        return self

    def tell(self, *pods: StartingPod) -> "World":
        for one in pods:
            self.starts.upsert(one)
        return self

    def black(self) -> list[str]:
        self.passes(1.0)
        return sorted(self.starts.look()[0])


def bound_at(one: StartingPod, wall: float) -> StartingPod:
    """As the API server writes it, by its own clock."""
    bound = Condition("PodScheduled", "True", last_transition_time=format_time(wall))
    return msgspec.structs.replace(one, status=msgspec.structs.replace(one.status, conditions=[bound]))


def both(make: Any, **fields: Any) -> tuple[StartingPod, StartingPod]:
    return make("web", "bad", **fields), make("api", "bad", **fields)


def waiting(reason: str) -> list[dict[str, Any]]:
    return [{"name": "main", "state": {"waiting": {"reason": reason}}}]


CLAIM = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]


CANNOT_CREATE = waiting("CreateContainerError")


@cases(
    "pods, expected",
    ("rejected by the kubelet for its node", both(rejected), ["bad"]),
    ("rejected because the node is full", both(rejected, reason="OutOfcpu"), []),
    ("evicted", both(rejected, reason="Evicted"), []),
    ("the node shuts down", both(rejected, reason="NodeShutdown"), []),
    ("failed by its own exit code", both(rejected, reason=""), []),
    ("pods of DaemonSets have no other node", both(rejected, kind="DaemonSet"), []),
    ("nor have static pods", both(rejected, kind="Node"), []),
    ("bare pods have no owner", (rejected(None, "bad"), rejected(None, "bad", name="x")), []),
    ("no sandbox", both(pod, conditions=[NO_SANDBOX]), ["bad"]),
    ("the kubelet says nothing of them", both(pod), ["bad"]),
    ("the sandbox is there", both(pod, conditions=[SANDBOX]), []),
    ("an old kubelet: an address tells of a sandbox", both(pod, podIP="192.0.2.7"), []),
    ("the condition tells more", both(pod, podIP="192.0.2.7", conditions=[NO_SANDBOX]), ["bad"]),
    ("rejected: its volume has no part in that", both(rejected, volumes=CLAIM), ["bad"]),
    ("a container cannot be made", both(pod, conditions=[SANDBOX], containerStatuses=CANNOT_CREATE), ["bad"]),
    ("an init container cannot be made", both(pod, conditions=[SANDBOX], initContainerStatuses=CANNOT_CREATE), ["bad"]),
    ("no image comes", both(pod, conditions=[SANDBOX], containerStatuses=waiting("ImagePullBackOff")), []),
    ("it was told to end", both(pod, ending=True), []),
)
def test_what_counts_as_a_start_that_fails(pods: tuple[StartingPod, ...], expected: list[str]) -> None:
    assert expected == World().run("web", "api").tell(*pods).passes(30).black()


def test_a_pod_that_kube_scheduler_did_not_ask_about_is_no_evidence() -> None:
    """As with spec.nodeName, another schedulerName, or a kube-scheduler that asks another replica."""
    world = World().run("web", "api")
    world.asked = lambda attempt: attempt.pod != "web-bad"
    assert [] == world.tell(*both(pod)).passes(30).black()
    world.asked = lambda attempt: (attempt.namespace, attempt.pod, attempt.node) == ("web", "later", "bad")
    world.tell(pod("web", "bad", name="later"))
    assert ["bad"] == world.passes(30).black()


def test_after_a_restart_pods_that_are_still_stuck_no_longer_count() -> None:
    """The new process does not know that kube-scheduler asked about them."""
    world = World().run("web", "api")
    world.asked = lambda attempt: attempt.pod.endswith("-new")
    world.starts.replace(both(pod))
    assert [] == world.passes(60).black()
    world.tell(*(pod(owner, "bad", name=f"{owner}-new") for owner in ("web", "api")))
    assert ["bad"] == world.passes(30).black()


def test_a_question_that_is_recorded_after_the_pod_was_rejected_is_looked_for_once_a_second() -> None:
    world = World().run("web", "api")
    world.asked = lambda _: world.clock.time >= 1002.5
    world.tell(*both(rejected))
    found, due_at = world.starts.look()
    assert ({}, 1001.0) == (found, due_at)
    while world.clock.time < 1003.0:
        world.clock.time = due_at
        found, due_at = world.starts.look()
    assert (["bad"], True) == (list(found), due_at > 1004.0)


@pytest.mark.parametrize(
    ("leave", "expected"),
    [
        pytest.param(lambda owner: pod(owner, "good", name=f"{owner}-1"), ["bad"], id="it runs"),
        pytest.param(lambda owner: pod(owner, "good", name=f"{owner}-1", ending=True), [], id="it was deleted"),
    ],
)
def test_who_leaves_the_watch_has_started_unless_it_was_told_to_end(leave: Any, expected: list[str]) -> None:
    world = World()
    for owner in ("web", "api"):
        world.starts.upsert(pod(owner, "good", name=f"{owner}-1"))
        world.starts.remove(leave(owner))
    assert expected == world.tell(*both(rejected)).black()


def test_a_list_tells_since_when_pods_are_stuck_and_of_no_start() -> None:
    """After a cut nobody knows what became of those that are not listed."""
    world = World()
    world.tell(pod("web", "good", name="w"), pod("api", "good", name="a"))
    world.starts.replace([])
    assert [] == world.tell(*both(rejected)).black()

    again = World().run("web", "api")
    bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": format_time(WALL - 40)}
    again.starts.replace(both(pod, conditions=[bound, NO_SANDBOX]))
    assert ["bad"] == again.black()


@pytest.mark.parametrize(
    ("ago_s", "expected"), [pytest.param(100, ["bad"], id="lately"), pytest.param(400, [], id="long ago")]
)
def test_who_was_rejected_before_the_list_counts_as_long_as_any(ago_s: float, expected: list[str]) -> None:
    """Failed pods stay for hours."""
    world = World().run("web", "api")
    world.starts.replace(both(rejected, startTime=format_time(WALL - ago_s)))
    assert expected == world.black()


def test_a_pod_that_was_rejected_long_ago_and_is_labelled_now_is_no_new_failure() -> None:
    """Failed pods stay for hours, and each change of one comes by the watch."""
    world = World().run("web", "api").tell(*both(rejected))
    assert ["bad"] == world.black()
    assert [] == world.passes(400).black()
    assert [] == world.run("web", "api").tell(*both(rejected)).black()
    assert ["bad"] == world.tell(*(rejected(owner, "bad", name=f"{owner}-2") for owner in ("web", "api"))).black()


@pytest.mark.parametrize("how", ["by the watch", "by a list"])
def test_nothing_is_kept_of_a_rejected_pod_that_is_gone(how: str) -> None:
    world = World().tell(*both(rejected)).passes(400)
    world.black()
    if how == "by the watch":
        for one in both(rejected):
            world.starts.remove(one)
    else:
        world.starts.replace([])
    assert 0 == world.starts.sizes()["rejected"]


STEPS = [pytest.param(-3600, id="an hour behind"), pytest.param(0, id="right"), pytest.param(3600, id="an hour ahead")]


@pytest.mark.parametrize("step_s", STEPS)
@pytest.mark.parametrize(
    ("pods", "ago_s", "expected"),
    [
        pytest.param(both(pod), 5, [], id="just bound"),
        pytest.param(both(pod), 40, ["bad"], id="bound a while ago"),
        pytest.param(both(rejected), 100, ["bad"], id="rejected lately"),
        pytest.param(both(rejected), 3000, [], id="rejected long ago"),
    ],
)
def test_our_own_clock_makes_nobody_stuck_and_brings_no_rejection_back(
    pods: tuple[StartingPod, ...], ago_s: float, expected: list[str], step_s: float
) -> None:
    """A list is read, as at a start, and the clock of this machine is wrong, or was set meanwhile."""
    world = World().run("web", "api")
    world.wall.time += step_s
    world.ahead_s = WALL - world.clock.time
    world.starts.replace([bound_at(one, WALL - ago_s) for one in pods])
    assert expected == world.black()


@pytest.mark.parametrize("step_s", STEPS)
def test_the_clock_of_a_kubelet_makes_nobody_stuck(step_s: float) -> None:
    world = World().run("web", "api")
    started = both(pod, startTime=format_time(WALL - 5 + step_s))
    world.starts.replace([bound_at(one, WALL - 5) for one in started])
    assert [] == world.black()


@pytest.mark.parametrize("text", ["", "tomorrow", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z"])
def test_a_time_that_says_nothing_stops_nothing(text: str) -> None:
    world = World().run("web", "api")
    world.starts.replace(both(rejected, startTime=text))
    world.black()


def test_while_nothing_is_heard_of_the_server_nothing_is_stuck() -> None:
    world = World().run("web", "api").tell(*both(pod))
    world.reported = world.clock.time + 5
    assert [] == world.passes(60).black()
    world.reported = None
    assert ["bad"] == world.black()


def test_a_flood_of_pods_wakes_once_until_somebody_looks_and_is_looked_at_once_a_second() -> None:
    world = World()
    for number in range(1000):
        world.tell(rejected(f"poison-{number}", "bad"))
    assert 1 == world.calls
    found, due_at = world.starts.look()
    assert ({}, world.clock.time + 300) == (found, due_at)
    world.tell(rejected("more", "bad"), rejected("most", "bad"))
    assert (2, ({}, world.clock.time + 1)) == (world.calls, world.starts.look())


def test_without_anything_going_on_nobody_need_look() -> None:
    world = World()
    world.starts.look()
    assert math.inf == world.passes(5).starts.look()[1]


def test_what_is_due_is_looked_at_by_itself() -> None:
    """30 s until it is stuck, five minutes until a rejection is forgotten."""
    world = World().tell(pod("web", "bad"))
    assert 1030.0 == world.passes(1).starts.look()[1]
    world = World().tell(rejected("web", "bad"))
    assert 1300.0 == world.passes(1).starts.look()[1]


def test_the_watch_leaves_out_what_runs() -> None:
    assert "spec.nodeName!=,status.phase!=Running,status.phase!=Succeeded" == SELECTOR


class StartsOf:
    """What the index asks of the starts of pods."""

    def __init__(self) -> None:
        self.found: dict[str, str] = {}

    def look(self) -> tuple[dict[str, str], float]:
        return dict(self.found), 150.0


def test_where_pods_do_not_start_is_evidence_of_that_node_alone_and_due_again() -> None:
    starts = StartsOf()
    index = Index(speakers=[], on_change=lambda: None, starts=starts)  # type: ignore[arg-type]
    index.replace_nodes([node("n1"), node("n2")])
    assert index.take() is not None
    starts.found = {"n2": "pods of 3 namespaces", "gone": "pods of 3 namespaces"}
    batch = index.take()
    assert batch is not None
    assert ("pods of 3 namespaces", None, 150.0) == (
        batch.evidence["n2"].swallows,  # type: ignore[union-attr]
        batch.evidence["gone"],
        batch.due_at,
    )
    assert {"n2", "gone"} == set(batch.evidence)
    starts.found = {}
    again = index.take()
    assert again is not None
    assert "" == again.evidence["n2"].swallows  # type: ignore[union-attr]
