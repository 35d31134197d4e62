"""A kubelet that stops renewing its Lease, with the real API server: when its node closes, what a start makes of it.

Two kubelets are the hard case: the one that lives moves its Lease each 10 s only. The kubelets are a thread here; what
many of them do, and for hours, is played by a fake clock in tests/extender/cluster/test_dead_kubelets.py.
"""

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

import pytest
import urllib3

from extender.policy.reasons import CLOSED_NODE_LOST
from kube import contract, paths
from kube.times import format_micro_time
from tests.plane.cluster import Cluster
from tools.kit.pid import children
from tools.kit.waiting import wait_for, wait_until
from tools.testbed.plane.programs import Extender
from tools.testbed.shared.api import Api

pytestmark = pytest.mark.timeout(600)

INTERVAL_S = 10.0
SUSPENDED_S = 20.0
LIMIT_S = 25.0
HEARTBEAT = {"limitSeconds": 24}


class Kubelets:
    """Each renews its Lease every ten seconds until it dies; `renewed` says when it last did, monotonic."""

    def __init__(self, api: Api, nodes: list[str]) -> None:
        self._api = api
        self.living = list(nodes)
        self.renewed: dict[str, float] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kubelets", daemon=True)
        for node in nodes:
            api.create(paths.leases(contract.NAMESPACE_NODE_LEASE), self._lease(node))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _lease(self, node: str) -> dict[str, object]:
        self.renewed[node] = time.monotonic()
        spec = {"holderIdentity": node, "leaseDurationSeconds": 40, "renewTime": format_micro_time(time.time())}
        return {"metadata": {"name": node}, "spec": spec}

    def _run(self) -> None:
        while not self._stopping.wait(0.1):
            for node in list(self.living):
                if time.monotonic() - self.renewed[node] >= INTERVAL_S:
                    self._api.patch(paths.lease(contract.NAMESPACE_NODE_LEASE, node), self._lease(node))


@pytest.fixture
def kubelets(cluster: Cluster) -> Iterator[Kubelets]:
    nodes = cluster.add_nodes(2)
    cluster.add_health_pods(nodes, ready=True)
    cluster.plane.wait_namespace(contract.NAMESPACE_NODE_LEASE)
    with Kubelets(cluster.api, nodes) as kubelets:
        yield kubelets
    for node in nodes:
        cluster.api.delete(paths.lease(contract.NAMESPACE_NODE_LEASE, node))


def first_refused(extender: Extender, nodes: list[str]) -> dict[str, str]:
    """Of these nodes, with the reason, by an extender that has just started and answers."""
    body = json.dumps({"Pod": {}, "Nodes": None, "NodeNames": nodes})
    reply = urllib3.request("POST", f"{extender.url}/filter", body=body, timeout=60.0, retries=False).json()
    assert "" == reply["Error"]
    return reply["FailedAndUnresolvableNodes"]


def refused(extender: Extender, nodes: list[str]) -> dict[str, str]:
    """The same of one that may not answer, or with an error: then empty."""
    try:
        return first_refused(extender, nodes)
    except (urllib3.exceptions.HTTPError, AssertionError):
        return {}


def suspend(extender: Extender) -> None:
    """All of it, as a host does that is stopped for a while; the Leases that move meanwhile wait to be read."""
    processes = [extender.process.pid, *children(extender.process.pid)]
    for pid in processes:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(SUSPENDED_S)
    for pid in processes:
        os.kill(pid, signal.SIGCONT)


def test_a_dead_kubelet_closes_its_node_and_a_start_knows_it(
    cluster: Cluster, kubelets: Kubelets, say: Callable[[str], None], artefacts: Path
) -> None:
    nodes = list(kubelets.living)
    dead, alive = nodes
    extender = cluster.start_extender(heartbeat=HEARTBEAT)
    suspend(extender)
    assert not wait_for(lambda: refused(extender, nodes), timeout_s=5.0, every_s=0.1)
    wait_until(extender.ready, "it answers again", timeout_s=60.0)
    before = kubelets.renewed[dead]
    wait_until(lambda: kubelets.renewed[dead] > before, "it renews, seen by the watch", timeout_s=60.0)
    kubelets.living.remove(dead)
    wait_until(lambda: refused(extender, nodes), "the node closes", timeout_s=120.0)
    took_s = time.monotonic() - kubelets.renewed[dead]
    assert {dead: CLOSED_NODE_LOST} == refused(extender, nodes)
    assert took_s > 23.9
    (artefacts / "dead_kubelet.json").write_text(json.dumps({"closed_after_s": round(took_s, 2)}))
    say(f"a dead kubelet of two closed its node {took_s:.1f} s after its last renewal")

    time.sleep(max(0.0, kubelets.renewed[dead] + 2 * LIMIT_S - time.monotonic()))
    started = cluster.start_extender(heartbeat=HEARTBEAT)
    first = first_refused(started, nodes)
    if not first:  # after a list that failed it gives kubelets time to return (extender/cluster/lease_age.py)
        log = started.process.text()
        assert "watch failed" in log, log
        wait_until(lambda: refused(started, nodes), "the node closes", timeout_s=120.0)
        first = refused(started, nodes)
    assert {dead: CLOSED_NODE_LOST} == first
    assert [alive] == kubelets.living
