"""Many pods, many nodes, few kicks: with the real kube-scheduler, over a slow path, and with two replicas."""

import http.client
import json
import time
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from extender.outlets.kick import ANNOTATION_KICK
from kube import contract
from tests.plane.cluster import Cluster
from tests.plane.healing import Healed, KickWatch, heal_together, refuse
from tools.kit.scope import draws
from tools.kit.waiting import wait_for
from tools.testbed.plane.programs import Extender
from tools.testbed.plane.proxy import DelayingProxy
from tools.testbed.plane.recorder import Recorder

pytestmark = pytest.mark.timeout(400)

PATCHES = 4  # of one replica, for nodes that heal together
MANY = draws(gate=100, whole=300)  # nodes
CONDITIONS_PER_S = 10  # half of the default, so that a kick has long been given when the last one is written
SLOW_S = 5.0
LIMIT_S = 120.0  # for what takes seconds; without a kick a pod waits for five minutes


def most_patches(healed: Healed) -> int:
    """There is at most one a second, so where the heals themselves take longer there may be more."""
    return PATCHES + int(healed.writes_s)


def test_one_kick_of_any_node_makes_every_refused_pod_ask_again(cluster: Cluster):
    """What one kick for a whole batch stands on. Nothing here is woken by a heal, nor by a kick of ours."""
    *nodes, other = cluster.add_nodes(41)
    cluster.add_health_pods([*nodes, other], ready=False)
    extender = cluster.start_extender(kick={"enabled": False})
    with Recorder("127.0.0.1", extender.port) as recorder:
        cluster.use_extender(recorder.url, mode="enforce")
        pods = [f"waits-for-{node}" for node in nodes]
        refuse(cluster, pods, nodes=nodes)
        recorder.exchanges.clear()
        time.sleep(2.0)
        quiet = len(recorder.exchanges)
        cluster.api.patch(f"/api/v1/nodes/{other}", {"metadata": {"annotations": {ANNOTATION_KICK: "by a test"}}})

        def asked() -> set[str]:
            return {json.loads(exchange.request)["Pod"]["metadata"]["name"] for exchange in recorder.exchanges}

        all_asked = wait_for(lambda: asked() == set(pods), timeout_s=60.0)
    assert (0, True) == (quiet, bool(all_asked))


def test_hundreds_of_nodes_that_heal_together_are_four_patches_and_the_pods_are_bound(
    cluster: Cluster, say: Callable[[str], None], artefacts: Path
):
    nodes = cluster.add_nodes(MANY)
    cluster.add_health_pods(nodes, ready=False)
    cluster.use_extender(cluster.start_extender().url)
    pods = [f"waits-{number}" for number in range(20)]
    refuse(cluster, pods)
    healed = heal_together(cluster, nodes, pods, limit_s=LIMIT_S)
    say(f"{MANY} nodes heal: {healed}")
    figures = {"nodes": MANY, "patches": healed.patches, "bound_s": round(healed.bound_s, 3)}
    (artefacts / "kick_many.json").write_text(json.dumps(figures))
    assert 1 <= healed.patches <= most_patches(healed)
    assert healed.bound_s <= LIMIT_S


def test_the_conditions_of_hundreds_of_nodes_and_their_events_delay_no_kick(
    cluster: Cluster, say: Callable[[str], None]
):
    """Both are written for seconds. kube-scheduler looks again at a condition too, so the kick is watched."""
    nodes = cluster.add_nodes(MANY)
    cluster.add_health_pods(nodes, ready=False)
    outlets = {"nodeCondition": {"perSecond": CONDITIONS_PER_S}}
    cluster.use_extender(cluster.start_extender(outlets=outlets).url)
    pods = [f"waits-{number}" for number in range(20)]
    refuse(cluster, pods)
    assert wait_for(lambda: told(cluster, "False") == MANY, timeout_s=LIMIT_S, every_s=0.5)
    healed = heal_together(cluster, nodes, pods, limit_s=LIMIT_S)
    say(f"{MANY} nodes heal, their conditions are written: {healed}; {told(cluster, 'True')} of them since")
    assert healed.opened_before <= MANY // 2, "the kick does not wait for the conditions"
    assert healed.bound_s <= LIMIT_S
    assert 1 <= healed.patches <= most_patches(healed)
    assert wait_for(lambda: told(cluster, "True") == MANY, timeout_s=LIMIT_S, every_s=0.5)


def told(cluster: Cluster, status: str) -> int:
    """Of how many Nodes our condition says this."""
    return sum(
        one["type"] == contract.CONDITION_NODE_HEALTHY and one["status"] == status
        for node in cluster.api.items("/api/v1/nodes")
        for one in node["status"].get("conditions", ())
    )


def test_with_two_replicas_that_both_refused_it_is_four_patches_for_each(cluster: Cluster, say: Callable[[str], None]):
    nodes = cluster.add_nodes(draws(gate=30, whole=60))
    cluster.add_health_pods(nodes, ready=False)
    replicas = [cluster.start_extender() for _ in range(2)]
    cluster.use_extender(replicas[0].url)
    pods = [f"waits-{number}" for number in range(20)]
    refuse(cluster, pods)
    refused_by(replicas[1], nodes)
    healed = heal_together(cluster, nodes, pods, limit_s=LIMIT_S)
    say(f"{len(nodes)} nodes heal, two replicas: {healed}")
    assert 2 <= healed.patches <= 2 * most_patches(healed)
    assert healed.bound_s <= LIMIT_S


def refused_by(extender: Extender, nodes: list[str]) -> None:
    """As a scheduler that asks this one would learn."""
    connection = http.client.HTTPConnection("127.0.0.1", extender.port, timeout=5)
    body = json.dumps({"Pod": {"metadata": {"namespace": "default", "name": "asks"}}, "NodeNames": nodes})
    connection.request("POST", "/filter", body, {"Content-Type": "application/json"})
    assert [] == json.loads(connection.getresponse().read())["NodeNames"]
    connection.close()


@pytest.fixture
def late_extender(cluster: Cluster) -> Iterator[Callable[[], tuple[Extender, DelayingProxy]]]:
    """An extender behind a proxy whose delay the test sets; at first there is nearly none."""
    with ExitStack() as started:

        def start() -> tuple[Extender, DelayingProxy]:
            address = urllib.parse.urlsplit(cluster.plane.server)
            proxy = started.enter_context(DelayingProxy(address.hostname, address.port, delay_s=0.01))
            name = f"late-extender-{proxy.port}"
            extender = Extender(cluster.plane, name=name, server=proxy.url, heartbeat={"limitSeconds": 0})
            extender.start()
            started.callback(extender.stop)
            return extender, proxy

        yield start


def test_a_kick_gets_through_a_path_of_five_seconds(cluster: Cluster, late_extender, say: Callable[[str], None]):
    """The extender knows of the heal after five seconds; its kick is taken at once, though the answer is late too."""
    nodes = cluster.add_nodes(2)
    cluster.add_health_pods(nodes, ready=False)
    extender, proxy = late_extender()
    cluster.use_extender(extender.url, mode="enforce")
    pods = [f"waits-for-{node}" for node in nodes]
    refuse(cluster, pods, nodes=nodes)
    proxy.delay_s = SLOW_S
    with KickWatch(cluster.api) as watch:
        began = time.monotonic()
        for node in nodes:
            cluster.health_pods[node].say(ready=True)
        bound = [cluster.wait_bound(pod, timeout_s=LIMIT_S) for pod in pods]
        bound_s = time.monotonic() - began
        assert wait_for(lambda: watch.kicks, timeout_s=LIMIT_S)
    say(f"bound {bound_s:.2f} s after the heal, {watch.kicks} kicks; {SLOW_S:g} s to know of it")
    assert nodes == bound
    assert bound_s >= SLOW_S
    assert "kick failed" not in extender.process.text()


def test_a_scheduler_that_takes_over_and_asks_a_replica_that_is_late_gets_its_kick_too(
    cluster: Cluster, late_extender, say: Callable[[str], None]
):
    """The replica of the first scheduler knows of the heal at once; the new scheduler asks one that does not yet."""
    nodes = cluster.add_nodes(1)
    cluster.add_health_pods(nodes, ready=False)
    first = cluster.start_extender()
    late, proxy = late_extender()
    cluster.use_extender(first.url, mode="enforce")
    pods = [f"waits-{number}" for number in range(20)]
    refuse(cluster, pods)
    proxy.delay_s = 2 * SLOW_S
    cluster.plane.stop_scheduler()
    began = time.monotonic()
    cluster.health_pods[nodes[0]].say(ready=True)
    cluster.use_extender(late.url, mode="enforce")
    bound = [cluster.wait_bound(pod, timeout_s=LIMIT_S) for pod in pods]
    bound_s = time.monotonic() - began
    say(f"20 pods bound {bound_s:.2f} s after the heal; {2 * SLOW_S:g} s for the second replica to know of it")
    assert nodes * 20 == bound
