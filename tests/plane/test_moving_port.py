"""While the extender's port moves, each kube-scheduler asks at both: whoever is there is heard (docs/helm.md)."""

import pytest

from extender.policy import reasons
from tests.plane.cluster import Cluster
from tools.kit.ports import free_port
from tools.testbed.plane import scheduler_config


@pytest.mark.parametrize("order", ["the one that is left first", "the new one first"])
def test_of_two_places_the_one_that_answers_is_heard(cluster: Cluster, order: str):
    nodes = cluster.add_nodes(1)
    cluster.add_health_pods(nodes, ready=False)
    urls = [f"http://127.0.0.1:{free_port()}", cluster.start_extender().url]
    entries = [scheduler_config.extender(url) for url in (urls if order.startswith("the one") else urls[::-1])]
    cluster.plane.restart_scheduler(cluster.plane.scheduler_config(entries))
    cluster.add_pod("while-it-moves")
    assert reasons.CLOSED_NOT_READY in cluster.wait_refused("while-it-moves")
    cluster.health_pods[nodes[0]].say(ready=True)
    assert nodes[0] == cluster.wait_bound("while-it-moves")
