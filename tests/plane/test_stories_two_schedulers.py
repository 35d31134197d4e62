"""Two kube-schedulers that are alive at once, of which one leads. Each asks an extender of its own, and one of these
learns late."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from extender.policy import reasons
from tests.plane.cluster import Cluster
from tools.kit.waiting import wait_for
from tools.testbed.plane import scheduler_config
from tools.testbed.plane.plane import SCHEDULER

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"
FIRST, SECOND = SCHEDULER, "kube-scheduler-2"
LEASE_S = 4
LATE_S = 1.5  # one of the extenders hears everything so much later
FOLLOWS_WITHIN_S = 60.0  # by itself a Lease and a little; the machine does other things too
PODS = 10


@dataclass
class Pair:
    """Both schedulers; the first one leads. followed_at: when the second did, monotonic."""

    cluster: Cluster
    node: str
    holder: str
    followed_at: float = 0.0

    @property
    def pods(self) -> list[str]:
        """Their events stay for an hour, so each test has names of its own."""
        return [f"two-{self.node}-{number}" for number in range(PODS)]

    def heal(self) -> None:
        self.cluster.health_pods[self.node].say(ready=True)

    def kill(self) -> None:
        self.cluster.plane.kill_scheduler(FIRST)

    def wait_followed(self) -> None:
        assert wait_for(lambda: _holder(self.cluster) not in ("", self.holder), timeout_s=FOLLOWS_WITHIN_S)
        self.followed_at = time.monotonic()


def _holder(cluster: Cluster) -> str:
    found = cluster.api.items(f"{LEASE.rpartition('/')[0]}?fieldSelector=metadata.name=kube-scheduler")
    return next((one["spec"].get("holderIdentity", "") for one in found), "")


@pytest.fixture
def pair(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[Pair]:
    """request.param: which of the two schedulers asks the late extender. Ten pods are refused by the first."""
    (node,) = cluster.add_nodes(1)
    cluster.add_health_pods([node], ready=False)
    plane = cluster.plane
    plane.stop_scheduler()
    cluster.api.delete(LEASE)
    try:
        for name in (FIRST, SECOND):
            extender = cluster.start_extender(watch_delay_s=LATE_S if name == request.param else 0.0)
            asks = [scheduler_config.extender(extender.url, mode="enforce")]
            plane.start_scheduler(plane.scheduler_config(asks, name, elected=True, lease_s=LEASE_S), name)
            assert wait_for(lambda: _holder(cluster), timeout_s=FOLLOWS_WITHIN_S)
        found = Pair(cluster, node, _holder(cluster))
        for name in found.pods:
            cluster.add_pod(name)
        for name in found.pods:
            assert reasons.CLOSED_NOT_READY in cluster.wait_refused(name)
        yield found
    finally:
        plane.stop_scheduler(SECOND)
        plane.restart_scheduler()


def heals(pair: Pair) -> float:
    pair.heal()
    return time.monotonic()


def heals_and_the_leader_dies(pair: Pair) -> float:
    pair.heal()
    time.sleep(0.2)
    pair.kill()
    pair.wait_followed()
    return pair.followed_at


def heals_while_nobody_leads(pair: Pair) -> float:
    pair.kill()
    time.sleep(1.0)
    pair.heal()
    pair.wait_followed()
    return pair.followed_at


def heals_when_the_other_leads(pair: Pair) -> float:
    pair.kill()
    pair.wait_followed()
    time.sleep(1.0)  # it has asked about all of them
    return heals(pair)


def heals_while_the_leader_is_frozen(pair: Pair) -> float:
    """And wakes while the other leads: for a moment both think that they do."""
    with pair.cluster.plane.frozen(FIRST):
        pair.wait_followed()
        pair.heal()
    return time.monotonic()


@pytest.mark.parametrize(
    ("pair", "story"),
    [
        pytest.param(SECOND, heals, id="the leader's extender knows first, and all live"),
        pytest.param(FIRST, heals, id="the leader's extender knows last, and all live"),
        pytest.param(SECOND, heals_and_the_leader_dies, id="who follows asks the one that does not know yet"),
        pytest.param(FIRST, heals_and_the_leader_dies, id="who follows asks the one that knows"),
        pytest.param(SECOND, heals_while_nobody_leads, id="it heals while nobody leads"),
        pytest.param(
            SECOND, heals_when_the_other_leads, id="it heals when the other one leads, whose extender is late"
        ),
        pytest.param(SECOND, heals_while_the_leader_is_frozen, id="the leader is frozen, and wakes beside the other"),
    ],
    indirect=["pair"],
)
def test_pods_that_one_scheduler_was_refused_are_bound_once_by_whichever_leads(
    pair: Pair, story: Callable[[Pair], float]
):
    """Without a kick by the extender that the leader asks they would wait for five minutes."""
    began = story(pair)

    cluster, names = pair.cluster, pair.pods
    assert {pair.node} == {cluster.wait_bound(name, timeout_s=FOLLOWS_WITHIN_S) for name in names}
    took_s = time.monotonic() - began
    print(f"bound {took_s:.2f} s after the heal, or after the other one led")
    events = cluster.api.items("/api/v1/namespaces/default/events?fieldSelector=reason=Scheduled")
    said = Counter(event["involvedObject"]["name"] for event in events if event["involvedObject"]["name"] in names)
    assert [] == [name for name, times in said.items() if times > 1]
