"""The brakes as they are by default before the real kube-scheduler: replicas that disagree for a while, and a node that
flaps."""

import json
import time
import urllib.parse
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from tests.plane.cluster import LIMIT_S, Cluster
from tests.plane.healing import KickWatch
from tests.plane.load import Load, ask
from tools.kit.programs import fetch
from tools.kit.waiting import wait_for, wait_until
from tools.testbed.plane.programs import Extender, StatusApi
from tools.testbed.plane.proxy import DelayingProxy

# On, but for one thing: bare nodes are young and their pods have no start time, so they would be new to a replica that
# never saw them healthy, and not counted.
ON = {"cap": {"newNodeSeconds": 0}, "storm": {}, "gates": [{"damping": {}}]}
LATE_S = 8.0  # so long that, on a busy machine too, one replica has decided before the other one knows
AGREE_WITHIN_S = LATE_S + LIMIT_S
MANY = 20
FLAPS = 8
KICKS = 4  # of one release, its repeats included


def closed(extender: Extender, nodes: list[str]) -> set[str]:
    answer = ask(extender.port, nodes)
    assert not answer.get("Error", "no answer")
    return set(answer["FailedAndUnresolvableNodes"])  # type: ignore[call-overload]


def wait_closed(extender: Extender, nodes: list[str], expected: set[str]) -> None:
    found = wait_for(lambda: closed(extender, nodes) == expected, timeout_s=AGREE_WITHIN_S)
    assert found, f"{closed(extender, nodes)}, expected {expected}"


def say_all(cluster: Cluster, nodes: list[str], *, ready: bool, ago_s: float = 0.0) -> None:
    """The nodes one after the other, each ten seconds younger than the one before where ago_s is given."""
    for place, node in enumerate(nodes):
        at = datetime.now(UTC) - timedelta(seconds=max(0.0, ago_s - 10 * place))
        cluster.health_pods[node].say(ready=ready, since=at.strftime("%Y-%m-%dT%H:%M:%SZ"))


def begun_after(load: Load, at: float, nodes: list[str]) -> list[str]:
    """Pods bound to these nodes that were made after that time."""
    return load.on(nodes, begun_after=at)


def replicas(cluster: Cluster, **sections: object) -> tuple[Extender, Extender, DelayingProxy]:
    """One that is told at once, one that is told through the proxy, which does not delay yet."""
    address = urllib.parse.urlsplit(cluster.plane.server)
    proxy = cluster._exit.enter_context(DelayingProxy(address.hostname or "", address.port or 0, delay_s=0.0))
    late = Extender(
        cluster.plane, name=f"late-{proxy.port}", server=proxy.url, heartbeat={"limitSeconds": 0}, **sections
    )
    late.start()
    cluster._exit.callback(late.stop)
    return cluster.start_extender(**sections), late, proxy


def test_while_replicas_disagree_for_a_while_no_pod_is_lost_and_then_they_close_the_same(
    cluster: Cluster, say: Callable[[str], None]
):
    """Some fail, which closes them; then many at once, which is a storm. kube-scheduler asks the late one first."""
    nodes = cluster.add_nodes(MANY, pods="500", cpu="64")
    cluster.add_health_pods(nodes, ready=True)
    prompt, late, proxy = replicas(cluster, **ON)
    cluster.use_extender(late.url, mode="enforce")
    few, many = nodes[:4], nodes[4:16]
    with Load(cluster.api, per_s=10) as load:
        assert wait_for(lambda: load.bound, timeout_s=LIMIT_S)
        proxy.delay_s = LATE_S
        say_all(cluster, few, ready=False)
        wait_closed(prompt, nodes, set(few))
        disagree_at = time.monotonic()
        assert set() == closed(late, nodes), "it answers by what it knows"
        wait_closed(late, nodes, set(few))
        agree_at = time.monotonic()
        assert wait_for(lambda: begun_after(load, agree_at, nodes), timeout_s=LIMIT_S), "pods still come"
        assert [] == begun_after(load, agree_at, few), "by the one that kube-scheduler asks"

        say_all(cluster, many, ready=False)
        wait_closed(prompt, nodes, set())
        assert set(few) == closed(late, nodes), "it has not heard of the storm"
        cluster.use_extender(prompt.url, mode="enforce")
        wait_closed(late, nodes, set())
        load.stop()
        all_bound_s = load.wait_all_bound(timeout_s=2 * LIMIT_S)
        meanwhile = load.on(few, after=disagree_at, until=agree_at)
    again = cluster.start_extender(**ON)
    assert [set(), set(), set()] == [closed(one, nodes) for one in (prompt, late, again)]
    for one in (prompt, late, again):
        assert wait_for(lambda one=one: "storm began" in one.process.text(), timeout_s=LIMIT_S)
    say(
        f"replicas disagreed for {agree_at - disagree_at:.1f} s: {len(load.made)} pods, 0 lost, {len(meanwhile)} bound "
        f"meanwhile to the 4 of {MANY} nodes only one had closed; all bound {all_bound_s:.1f} s after the last was made"
    )


def test_replicas_that_disagree_for_a_while_hold_the_same_nodes_at_the_cap(
    cluster: Cluster, say: Callable[[str], None]
):
    """By the objects' own times: whoever saw it late, or began late, keeps the oldest closures too. Without storms, in
    which none would be closed."""
    nodes = cluster.add_nodes(10)
    cluster.add_health_pods(nodes, ready=True)
    sections = ON | {"storm": False}
    prompt, late, proxy = replicas(cluster, **sections)
    proxy.delay_s = LATE_S
    broken = [nodes[i] for i in (7, 2, 9, 4, 0, 5)]
    began = time.monotonic()
    say_all(cluster, broken, ready=False, ago_s=600)
    wait_closed(prompt, nodes, set(broken[:3]))
    assert set() == closed(late, nodes), "it knows nothing of it yet"
    wait_closed(late, nodes, set(broken[:3]))
    say(f"at the cap: 3 of 6 failed of 10 closed by both, the late one after {time.monotonic() - began:.1f} s")
    again = cluster.start_extender(**sections)
    wait_closed(again, nodes, set(broken[:3]))

    cluster.health_pods[broken[1]].say(ready=True)

    for one in (prompt, late, again):
        wait_closed(one, nodes, {broken[0], broken[2], broken[3]})


@pytest.mark.parametrize("ceiling_s", [300.0, 10.0], ids=["by default", "with a ceiling of ten seconds"])
def test_a_node_that_flaps_closes_twice_and_opens_when_it_has_been_healthy_for_long(
    cluster: Cluster, say: Callable[[str], None], ceiling_s: float
):
    node, *_ = nodes = cluster.add_nodes(5)
    cluster.add_health_pods(nodes, ready=True)
    extender = cluster.start_extender(**ON | {"gates": [{"damping": {"ceilingSeconds": ceiling_s}}]})
    status_api = StatusApi(cluster.plane, extender)
    status_api.start()
    cluster._exit.callback(status_api.stop)
    cluster.use_extender(extender.url, mode="enforce")
    waits: list[float] = []
    pods = [f"flaps-{ceiling_s:.0f}-{number}" for number in range(FLAPS)]

    with KickWatch(cluster.api) as watch:
        for number, pod in enumerate(pods):
            cluster.health_pods[node].say(ready=False)
            wait_until(lambda: closed(extender, nodes) == {node} and not countdown(status_api, node), "it is closed")
            cluster.add_pod(pod, node=node)
            cluster.wait_refused(pod)
            healed_at = time.monotonic()
            cluster.health_pods[node].say(ready=True)
            if number == 0:
                wait_until(lambda: closed(extender, nodes) == set(), "it opens at once")
                assert node == cluster.wait_bound(pod)
            else:
                left_s = wait_for(lambda: countdown(status_api, node), timeout_s=LIMIT_S)
                assert left_s, "it is counted down"
                waits.append(time.monotonic() - healed_at + left_s)
        flapped = transitions(extender, node)
        kicks = watch.kicks

    say(f"{FLAPS} flaps: {flapped}, {kicks} kicks; seconds that it must be healthy: {waits}")
    assert ["node closed", "node opened", "node closed"] == flapped
    expected = [min(ceiling_s, 10 * 2.0**number) for number in range(FLAPS - 1)]
    # Counted from the write: what a busy machine adds until the extender knows of it is less than once more as long.
    assert [True] * len(expected) == [s - 1 <= wait < 1.9 * s for s, wait in zip(expected, waits, strict=True)], waits
    assert 1 <= kicks <= KICKS
    if ceiling_s < 60:
        bound = [cluster.wait_bound(pod) for pod in pods]
        assert [node] * FLAPS == bound
        assert [*flapped, "node opened"] == transitions(extender, node)


def countdown(status_api: StatusApi, node: str) -> float:
    """Seconds until it opens by itself, 0 where it is open."""
    status, page = fetch(f"{status_api.url}/api/v1/nodes/{node}")
    assert 200 == status
    (gate,) = json.loads(page)["node"]["gates"]
    return round(gate["untilSeconds"] or 0.0, 1)


def transitions(extender: Extender, node: str) -> list[str]:
    """As the extender's log names them."""
    told = [line for line in extender.process.lines() if f'node="{node}"' in line]
    return [word for line in told for word in ("node closed", "node opened") if word in line]
