"""A set-up that cares for pods with GPUs only: kube-scheduler does not even ask about the others."""

import json

from extender.policy import reasons
from tests.plane.cluster import Cluster
from tools.testbed.plane.recorder import Recorder

GPU = "example.com/gpu"


def test_only_pods_that_ask_for_a_managed_resource_are_sent(cluster: Cluster):
    opened, closed = cluster.add_nodes(2)
    for node in (opened, closed):
        resources = {"cpu": "8", "memory": "32Gi", "pods": "110", GPU: "8"}
        status = {"status": {"capacity": resources, "allocatable": resources}}
        cluster.api.patch(f"/api/v1/nodes/{node}/status", status)
    cluster.add_health_pods([opened], ready=True)
    cluster.add_health_pods([closed], ready=False)
    extender = cluster.start_extender()
    with Recorder("127.0.0.1", extender.port) as recorder:
        cluster.use_extender(recorder.url, mode="enforce", managed_resources=[GPU], weight=1)
        for number in range(5):
            cluster.add_pod(f"plain-{number}")
            cluster.add_pod(f"gpu-{number}", containers=[with_gpu()])
        bound = {name: cluster.wait_bound(name) for name in names("plain") | names("gpu")}
        cluster.add_pod("gpu-pinned", node=closed, containers=[with_gpu()])
        cluster.add_pod("plain-pinned", node=closed)
        assert closed == cluster.wait_bound("plain-pinned")
        assert reasons.CLOSED_NOT_READY in cluster.wait_refused("gpu-pinned")
        cluster.plane.stop_scheduler()  # before its extender goes away
    asked = [json.loads(exchange.request)["Pod"]["metadata"]["name"] for exchange in recorder.exchanges]
    assert {opened} == {bound[name] for name in names("gpu")}
    assert "" not in bound.values()
    assert (names("gpu") | {"gpu-pinned"}, 0) == (set(asked), sum(name.startswith("plain") for name in asked))


def names(kind: str) -> set[str]:
    return {f"{kind}-{number}" for number in range(5)}


def with_gpu() -> dict[str, object]:
    return {"name": "main", "image": "registry.invalid/none:1", "resources": {"limits": {GPU: "1"}}}
