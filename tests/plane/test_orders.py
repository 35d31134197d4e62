"""Operators' orders, from the command line through the real API server to what kube-scheduler does."""

import contextlib
import json
import time

import pytest

from cli.__main__ import main
from extender.policy import reasons
from kube import contract
from kube.times import parse_time
from tests.plane.cluster import Cluster
from tests.plane.load import told_after
from tools.kit.waiting import wait_until
from tools.testbed.shared.api import ApiError

PATH = f"/api/v1/namespaces/{contract.NAMESPACE}/configmaps/readygate-orders"


@pytest.fixture
def run(cluster: Cluster, capsys: pytest.CaptureFixture[str]):
    """A command as the plane's admin; its standard output. What was ordered is gone afterwards."""

    def command(*argv: str, code: int = 0) -> str:
        found = main([argv[0], "--kubeconfig", str(cluster.plane.kubeconfig), *argv[1:]])
        written = capsys.readouterr()
        assert (code, "" if code == 0 else written.err) == (found, written.err)
        return written.out + written.err

    cluster.plane.wait_namespace(contract.NAMESPACE)
    yield command
    with contextlib.suppress(ApiError):  # there is none if the test ended before it ordered anything
        cluster.api.delete(PATH)


def test_orders_are_obeyed_by_the_scheduler_and_their_author_is_whom_the_api_server_knows(cluster: Cluster, run):
    good, bad = cluster.add_nodes(2)
    cluster.add_health_pods([good], ready=True)
    cluster.add_health_pods([bad], ready=False)
    extender = cluster.start_extender()
    cluster.use_extender(extender.url, mode="enforce")

    run("hold", "--node", good, "--for", "1h", "--reason", "swapping its disk")
    told_after(extender.port, good, is_open=False)
    cluster.add_pod("waits", node=good)
    assert reasons.CLOSED_HELD in cluster.wait_refused("waits")
    entry = json.loads(cluster.api.get(PATH)["data"][f"hold-{good}"])
    assert ("admin", "swapping its disk") == (entry["author"], entry["reason"])

    run("lift", f"hold-{good}")
    assert good == cluster.wait_bound("waits")

    run("exempt", "--node", bad)
    told_after(extender.port, bad, is_open=True)
    cluster.add_pod("goes", node=bad)
    assert bad == cluster.wait_bound("goes")


def test_whose_clock_is_behind_orders_by_that_of_the_api_server(cluster: Cluster, run, monkeypatch):
    began = time.time()
    with monkeypatch.context() as changed:
        changed.setattr("time.time", lambda: began - 3600)
        run("pause", "--for", "30m")
    entry = json.loads(cluster.api.get(PATH)["data"]["pause"])
    created, expires = parse_time(entry["created"]), parse_time(entry["expires"])
    assert began - 1 <= created <= time.time()
    assert 1800 == expires - created


def test_a_hold_survives_a_restart_of_the_extender_and_a_broken_entry_beside_it(cluster: Cluster, run):
    (node,) = cluster.add_nodes(1)
    cluster.add_health_pods([node], ready=True)
    run("hold", "--node", node)
    cluster.api.patch(PATH, {"data": {"broken": "no order at all"}})
    first = cluster.start_extender()
    told_after(first.port, node, is_open=False)
    first.stop()
    second = cluster.start_extender()
    told_after(second.port, node, is_open=False)
    assert "ignored by the extenders: broken: " in run("orders", code=1)
    wait_until(lambda: "broken" in second.process.text(), "the line of the log")
    run("lift", f"hold-{node}")
    told_after(second.port, node, is_open=True)


def test_a_gate_in_shadow_refuses_when_it_is_armed_and_no_longer_when_it_is_disarmed(cluster: Cluster, run):
    good, bad = cluster.add_nodes(2)
    cluster.add_health_pods([good], ready=True)
    cluster.add_health_pods([bad], ready=False)
    extender = cluster.start_extender(gate={"enforcement": "shadow"})
    told_after(extender.port, bad, is_open=True)
    assert "takes precedence" not in run("arm", "--gate", "health")
    told_after(extender.port, bad, is_open=False)
    told_after(extender.port, good, is_open=True)
    run("disarm", "--gate", "health")
    told_after(extender.port, bad, is_open=True)
    run("arm", "--gate", "health")
    told_after(extender.port, bad, is_open=False)
    run("disarm")
    told_after(extender.port, bad, is_open=True)
