"""The filter call of the real kube-scheduler: what it sends, what it makes of the answer, what a person reads."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

from extender.policy import reasons
from kube.contract import CONDITION_POD_SCHEDULED
from tests.plane.cluster import Cluster
from tools.kit.ports import free_port
from tools.kit.waiting import wait_for
from tools.testbed.plane.recorder import Recorder
from tools.testbed.shared import bare, binaries
from tools.testbed.shared.api import condition

# Held against what the scheduler really sends; READYGATE_RENEW_GOLDEN=1 writes it anew.
GOLDEN = Path(__file__).resolve().parents[1] / "contract" / "filter_request.json"
# kube-scheduler drops them as a pod comes in (pkg/scheduler/scheduler.go, newPodInformer). Up to 1.35 the factory of
# its informers puts its own transform in that one's place: none (client-go/informers/factory.go, InformerFor).
WITH_MANAGED_FIELDS = binaries.kubernetes_version() == binaries.VERSIONS["1.35"]


def test_the_event_of_a_pod_that_fits_nowhere_carries_the_constant_reason(cluster: Cluster):
    nodes = cluster.add_nodes(3)
    cluster.add_health_pods(nodes, ready=False)
    cluster.use_extender(cluster.start_extender().url)
    cluster.add_pod("fits-nowhere")

    condition_text = cluster.wait_refused("fits-nowhere")
    events = wait_for(lambda: bare.scheduling_events(cluster.api, "fits-nowhere"), timeout_s=10)

    assert condition_text.startswith(f"0/3 nodes are available: 3 {reasons.CLOSED_NOT_READY}. ")
    assert condition_text.endswith("preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.")
    # It is refused twice: the first refusal, written into the pod, is itself an event that wakes it.
    assert {condition_text} == set(events)


def test_reasons_are_counted_apart(cluster: Cluster):
    nodes = cluster.add_nodes(3)
    cluster.add_health_pods(nodes[:2], ready=False)
    cluster.use_extender(cluster.start_extender().url)
    cluster.add_pod("two-reasons")

    text = cluster.wait_refused("two-reasons")

    assert text.startswith(f"0/3 nodes are available: 1 {reasons.CLOSED_NO_HEALTH_POD}, 2 {reasons.CLOSED_NOT_READY}. ")


def test_a_pod_lands_on_the_only_healthy_node_and_the_exchange_is_as_the_contract_says(
    cluster: Cluster, artefacts: Path
):
    nodes = cluster.add_nodes(3)
    cluster.add_health_pods(nodes[:1], ready=True)
    cluster.add_health_pods(nodes[1:], ready=False)
    extender = cluster.start_extender()
    with Recorder("127.0.0.1", extender.port) as recorder:
        cluster.use_extender(recorder.url)
        cluster.add_pod("web")
        assert cluster.wait_bound("web") == nodes[0]
        cluster.plane.stop_scheduler()  # before its extender goes away
    exchange = next(e for e in recorder.exchanges if json.loads(e.request)["Pod"]["metadata"]["name"] == "web")
    request, reply = json.loads(exchange.request), json.loads(exchange.reply)
    (artefacts / "filter_request.json").write_bytes(exchange.request)
    (artefacts / "filter_reply.json").write_bytes(exchange.reply)
    (artefacts / "filter_headers.json").write_text(json.dumps(exchange.headers, indent=1))

    assert list(request) == ["Pod", "Nodes", "NodeNames"]
    assert request["Nodes"] is None
    assert sorted(nodes) == sorted(request["NodeNames"])
    assert WITH_MANAGED_FIELDS == ("managedFields" in request["Pod"]["metadata"])
    request["Pod"]["metadata"].pop("managedFields", None)
    assert exchange.status == 200
    assert reply["NodeNames"] == nodes[:1]
    assert dict.fromkeys(nodes[1:], reasons.CLOSED_NOT_READY) == reply["FailedAndUnresolvableNodes"]
    if os.environ.get("READYGATE_RENEW_GOLDEN"):
        GOLDEN.write_bytes(exchange.request)
    assert sorted(_paths(json.loads(GOLDEN.read_bytes()))) == sorted(_paths(request))


def test_a_dead_extender_in_mode_protect_does_not_stop_scheduling(cluster: Cluster):
    nodes = cluster.add_nodes(1)
    cluster.use_extender(f"http://127.0.0.1:{free_port()}", mode="protect")
    cluster.add_pod("unprotected")

    assert nodes[0] == cluster.wait_bound("unprotected")


def test_a_dead_extender_in_mode_enforce_lets_nothing_through(cluster: Cluster):
    cluster.add_nodes(1)
    cluster.use_extender(f"http://127.0.0.1:{free_port()}", mode="enforce")
    cluster.add_pod("unfiltered")

    assert "connection refused" in cluster.wait_refused("unfiltered")
    scheduled = condition(bare.pod(cluster.api, "unfiltered"), CONDITION_POD_SCHEDULED)
    assert scheduled["reason"] == "SchedulerError"


def _paths(value: object, path: str = "") -> Iterator[str]:
    """Where there is what kind of value; the entries of a list count as one."""
    yield f"{path}: {type(value).__name__}"
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _paths(inner, f"{path}.{key}")
    elif isinstance(value, list):
        yield from {line for inner in value for line in _paths(inner, f"{path}[]")}
