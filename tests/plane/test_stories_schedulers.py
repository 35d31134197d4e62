"""Schedulers that have several profiles, are killed, and are followed by another one that asks another replica."""

import time

from extender.policy import reasons
from tests.plane.cluster import Cluster
from tests.plane.load import told_after
from tools.testbed.plane import scheduler_config

PODS = 40


def test_pods_of_every_profile_are_kept_from_a_closed_node(cluster: Cluster):
    opened, closed = cluster.add_nodes(2)
    cluster.add_health_pods([opened], ready=True)
    cluster.add_health_pods([closed], ready=False)
    extender = cluster.start_extender()
    asks = [scheduler_config.extender(extender.url, mode="enforce")]
    profiles = ("default-scheduler", "second-scheduler")
    cluster.plane.restart_scheduler(cluster.plane.scheduler_config(asks, profiles=profiles))
    for profile in profiles:
        for number in range(5):
            cluster.add_pod(f"{profile}-{number}", schedulerName=profile)
    bound = {cluster.wait_bound(f"{profile}-{number}") for profile in profiles for number in range(5)}
    assert {opened} == bound


def test_a_scheduler_killed_with_pods_waiting_loses_none_and_none_is_placed_on_a_closed_node(cluster: Cluster):
    opened, closed = cluster.add_nodes(2)
    cluster.add_health_pods([opened], ready=True)
    cluster.add_health_pods([closed], ready=False)
    extender = cluster.start_extender()
    cluster.use_extender(extender.url, mode="enforce")
    names = [f"waits-{number}" for number in range(PODS)]
    for name in names:
        cluster.add_pod(name)
    cluster.plane.kill_scheduler()
    began = time.monotonic()
    cluster.use_extender(extender.url, mode="enforce")
    assert {opened} == {cluster.wait_bound(name) for name in names}
    print(f"{PODS} pods bound {time.monotonic() - began:.2f} s after the scheduler was killed")


def test_what_one_replica_refused_is_bound_by_the_scheduler_that_asks_the_other_one(cluster: Cluster):
    """The second replica has refused nothing, and learns half a second later than the first."""
    (node,) = cluster.add_nodes(1)
    cluster.add_health_pods([node], ready=False)
    first = cluster.start_extender()
    second = cluster.start_extender(watch_delay_s=0.5)
    cluster.use_extender(first.url, mode="enforce")
    names = [f"replicas-{number}" for number in range(10)]
    for name in names:
        cluster.add_pod(name)
    for name in names:
        assert reasons.CLOSED_NOT_READY in cluster.wait_refused(name)
    cluster.plane.kill_scheduler()
    cluster.use_extender(second.url, mode="enforce")
    for name in names:
        assert reasons.CLOSED_NOT_READY in cluster.wait_refused(name)

    cluster.health_pods[node].say(ready=True)

    began = time.monotonic()
    told_after(second.port, node, is_open=True)
    assert {node} == {cluster.wait_bound(name) for name in names}
    print(f"bound {time.monotonic() - began:.2f} s after the heal, by the scheduler of the late replica")
