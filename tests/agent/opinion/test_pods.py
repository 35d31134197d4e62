"""Which objects of a list are health pods of this node, also from a server that sends more than it was asked for."""

import json

import msgspec
import pytest

from agent.opinion.pods import HealthPodTable
from agent.opinion.selection import HealthPods
from agent.wire.pod import PodObject

OWNER = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "health", "uid": "d", "controller": True}


def item(uid: str = "u", *, node: str = "n", namespace: str = "ns", owner: str = "health", **more: object) -> PodObject:
    owners = [OWNER | {"name": owner}] if owner else []
    meta = {"name": f"p-{uid}", "namespace": namespace, "uid": uid, "ownerReferences": owners, **more}
    return msgspec.json.decode(json.dumps({"metadata": meta, "spec": {"nodeName": node}}), type=PodObject)


def table(daemon_set: str = "health") -> HealthPodTable:
    return HealthPodTable(HealthPods("ns", "app=health", daemon_set), "n", lambda: None)


@pytest.mark.parametrize(
    ("one", "daemon_set", "expected"),
    [
        pytest.param(item(), "health", 1, id="of the DaemonSet"),
        pytest.param(item(owner="other"), "health", 0, id="of another one"),
        pytest.param(item(owner=""), "health", 0, id="of nobody"),
        pytest.param(item(owner=""), "", 1, id="of nobody, where the selector alone decides"),
        pytest.param(item(node="m"), "health", 0, id="of another node"),
        pytest.param(item(namespace="x"), "health", 0, id="of another namespace"),
        pytest.param(
            item(annotations={"kubernetes.io/config.mirror": "h"}), "", 0, id="the mirror of a static pod: no token"
        ),
    ],
)
def test_what_is_a_health_pod_of_ours(one: PodObject, daemon_set: str, expected: int) -> None:
    listed, watched = table(daemon_set), table(daemon_set)
    listed.replace([one])
    watched.upsert(one)
    assert (expected, expected) == (len(listed.pods()), len(watched.pods()))


def test_a_list_takes_the_place_of_the_last_and_a_line_removes_one() -> None:
    found = table()
    found.replace([item("a"), item("b")])
    found.replace([item("b"), item("c")])
    found.remove(item("c"))
    assert ["b"] == [pod.uid for pod in found.pods()]
