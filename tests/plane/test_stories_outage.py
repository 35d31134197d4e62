"""The API server is restarted, stopped, frozen, and etcd compacted: last verdicts meanwhile, and news after it.

How soon, `make chaos` holds.
"""

import time

import pytest

from tests.plane.cluster import Cluster
from tests.plane.load import ask, told_after
from tools.testbed.plane.plane import API_SERVER


def restarted(cluster: Cluster) -> None:
    cluster.plane.stop_api_server()
    cluster.plane.start_api_server()


def restarted_and_compacted(cluster: Cluster) -> None:
    cluster.plane.stop_api_server()
    cluster.plane.compact_etcd()
    cluster.plane.start_api_server()


def away_for_a_while(cluster: Cluster) -> None:
    """Long enough that the pauses between tries have grown to half of it."""
    cluster.plane.stop_api_server()
    time.sleep(12.0)
    cluster.plane.start_api_server()


def compacted_alone(cluster: Cluster) -> None:
    cluster.plane.compact_etcd()


def frozen(cluster: Cluster) -> None:
    with cluster.plane.frozen(API_SERVER):
        time.sleep(6.0)


@pytest.mark.parametrize(
    "fault", [compacted_alone, restarted, restarted_and_compacted, frozen, away_for_a_while], ids=lambda f: f.__name__
)
def test_news_come_after_the_api_server_is_back(cluster: Cluster, fault):
    stays, turns = cluster.add_nodes(2)
    cluster.add_health_pods([stays, turns], ready=True)
    extender = cluster.start_extender()
    assert ask(extender.port, [stays, turns])["NodeNames"] == [stays, turns]

    fault(cluster)

    assert ask(extender.port, [stays, turns])["NodeNames"] == [stays, turns], "an outage opens and closes nothing"
    cluster.health_pods[turns].say(ready=False)
    told_s = told_after(extender.port, turns, is_open=False)
    print(f"{fault.__name__}: told after {told_s:.2f} s")
    assert ask(extender.port, [stays, turns])["NodeNames"] == [stays]
