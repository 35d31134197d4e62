"""The requeue race, with the real kube-scheduler and the real extender.

The event that heals a node wakes the scheduler and the extender's watch at the same time. Where the scheduler asks
before the extender knows, the pod is refused once more and nothing wakes it for five minutes: so the extender kicks.
Each round has a node of its own, and kicks are not repeated here: one kick must do, and none can help another round.
"""

import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from extender.outlets.kick import ANNOTATION_KICK
from extender.policy import reasons
from tests.plane.cluster import Cluster
from tools.kit.scope import draws
from tools.kit.waiting import wait_for
from tools.testbed.plane.plane import Plane
from tools.testbed.shared import bare

pytestmark = pytest.mark.timeout(600)

ROUNDS = draws(gate=6, whole=50)
WATCH_DELAY_S = 0.5
BOUND_WITHIN_S = 60.0  # by itself a fraction of a second; nothing else wakes the pod for five minutes
# So late that kube-scheduler, however slow, asks first: then nothing wakes the pod.
LONG_DELAY_S = 5.0
PENDING_FOR_S = 10.0  # after that
BATCHES, BATCH = draws(gate=1, whole=2), 5
# A refused pod is tried once more at once, because its own refusal was an event. After that it rests.
_SETTLE_S = 0.3


@pytest.fixture(scope="module")
def arms(_bare_plane: Plane, say: Callable[[str], None], artefacts: Path) -> dict[str, list[float]]:
    """The seconds of each arm. Only their order is asserted: how long a kick takes is measured by `make bench`."""
    figures: dict[str, list[float]] = {}
    for name, arm in (
        ("direct", _rounds_direct),
        ("watch delayed", _rounds_delayed),
        ("watch delayed, no kick", _rounds_without_kick),
    ):
        with Cluster(_bare_plane) as cluster:
            figures[name] = arm(cluster)
        say(f"kick, {name}: {_summary(figures[name])}")
    (artefacts / "kick.json").write_text(json.dumps({name: _summary(s) for name, s in figures.items()}, indent=1))
    return figures


def test_a_pending_pod_binds_after_its_node_is_healed(arms):
    assert len(arms["direct"]) == ROUNDS
    assert max(arms["direct"]) <= BOUND_WITHIN_S


def test_a_pending_pod_binds_also_when_the_extender_learns_half_a_second_late(arms):
    assert len(arms["watch delayed"]) == ROUNDS
    assert max(arms["watch delayed"]) <= BOUND_WITHIN_S


def test_without_the_kick_a_pending_pod_stays_pending_after_its_node_is_healed(arms):
    assert arms["watch delayed, no kick"] == [LONG_DELAY_S + PENDING_FOR_S] * BATCHES * BATCH


def _rounds_direct(cluster: Cluster) -> list[float]:
    return _rounds(cluster, watch_delay_s=0.0)


def _rounds_delayed(cluster: Cluster) -> list[float]:
    return _rounds(cluster, watch_delay_s=WATCH_DELAY_S)


def _rounds(cluster: Cluster, *, watch_delay_s: float) -> list[float]:
    nodes = _unhealthy_nodes(cluster, ROUNDS, watch_delay_s=watch_delay_s, kick=True)
    return [_round(cluster, node) for node in nodes]


def _round(cluster: Cluster, node: str) -> float:
    """Seconds from the health pod's Ready to the binding; infinite when it did not bind."""
    pod = f"waits-for-{node}"
    cluster.add_pod(pod, node=node)
    assert reasons.CLOSED_NOT_READY in cluster.wait_refused(pod)
    time.sleep(_SETTLE_S)
    started = time.monotonic()
    cluster.health_pods[node].say(ready=True)
    bound = cluster.wait_bound(pod, timeout_s=BOUND_WITHIN_S)
    return time.monotonic() - started if bound == node else float("inf")


def _rounds_without_kick(cluster: Cluster) -> list[float]:
    """Seconds each pod stayed pending, at most both delays; several nodes are healed within the delay."""
    nodes = _unhealthy_nodes(cluster, BATCHES * BATCH, watch_delay_s=LONG_DELAY_S, kick=False)
    seconds, most_s = [], LONG_DELAY_S + PENDING_FOR_S
    for first in range(0, len(nodes), BATCH):
        batch = {node: f"waits-for-{node}" for node in nodes[first : first + BATCH]}
        for node, pod in batch.items():
            cluster.add_pod(pod, node=node)
        for pod in batch.values():
            cluster.wait_refused(pod)
        time.sleep(_SETTLE_S)
        started = time.monotonic()
        for node in batch:
            cluster.health_pods[node].say(ready=True)
        pending = dict.fromkeys(batch.values(), most_s)

        def all_bound(pending: dict[str, float] = pending, started: float = started) -> bool:
            for pod, still in pending.items():
                if still == most_s and bare.bound_to(bare.pod(cluster.api, pod)):
                    pending[pod] = time.monotonic() - started
            return most_s not in pending.values()

        wait_for(all_bound, timeout_s=most_s, every_s=0.2)
        seconds += pending.values()
        _wake(cluster, batch)
    return seconds


def _wake(cluster: Cluster, batch: dict[str, str]) -> None:
    """The one write that was missing: all else had long been as it should be."""
    for node, pod in batch.items():
        annotations = {ANNOTATION_KICK: f"by the test of {pod}"}
        cluster.api.patch(f"/api/v1/nodes/{node}", {"metadata": {"annotations": annotations}})
        assert node == cluster.wait_bound(pod, timeout_s=BOUND_WITHIN_S)


def _unhealthy_nodes(cluster: Cluster, count: int, *, watch_delay_s: float, kick: bool) -> list[str]:
    nodes = cluster.add_nodes(count)
    cluster.add_health_pods(nodes, ready=False)
    extender = cluster.start_extender(watch_delay_s=watch_delay_s, kick={"enabled": kick, "repeatAfterSeconds": 0})
    cluster.use_extender(extender.url, mode="enforce")
    return nodes


def _summary(seconds: list[float]) -> dict[str, float]:
    return {
        "rounds": len(seconds),
        "min_s": round(min(seconds), 3),
        "median_s": round(statistics.median(seconds), 3),
        "max_s": round(max(seconds), 3),
    }
