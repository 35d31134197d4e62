"""What the playbooks' policies leave of the extender's rights on nodes, with the real API server: one annotation, and
one condition of the status.
"""

import time
from collections.abc import Iterator

import pytest

from extender.outlets.kick import ANNOTATION_KICK
from kube import contract
from tests.plane.cluster import Cluster
from tests.playbooks.rendering import objects, plain
from tools.kit.waiting import wait_until
from tools.testbed.plane import identities
from tools.testbed.shared.api import Api, ApiError, Object, condition

KIND = contract.CONDITION_NODE_HEALTHY
BASE = "/apis/admissionregistration.k8s.io/v1"
PATHS = {
    "ValidatingAdmissionPolicy": f"{BASE}/validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": f"{BASE}/validatingadmissionpolicybindings",
}


def ours(status: str = "False") -> Object:
    return {"type": KIND, "status": status, "reason": "R", "message": "m"}


@pytest.fixture
def confined(cluster: Cluster) -> Iterator[tuple[Api, str]]:
    """The extender, confined, and a node."""
    (node,) = cluster.add_nodes(1)
    sent = objects("readygate_extender", {"__readygate_extender_admin_server": "https://192.0.2.11:6443"})
    made = []
    for (kind, _, name), one in sent.items():
        if kind in PATHS:
            cluster.api.create(PATHS[kind], plain(one))
            made.append(f"{PATHS[kind]}/{name}")
    plane = cluster.plane
    extender = Api(plane.server, ca=plane._authority.certificate, token=plane.token_of(identities.EXTENDER))
    try:
        for path in (node, f"{node}/status"):
            wait_until(lambda path=path: in_force(extender, path), "policies in force", timeout_s=90)
        yield extender, node
    finally:
        for one in made:
            cluster.api.delete(one)


def denied(extender: Api, path: str, body: Object) -> str:
    """In whose words; "" if it was taken."""
    try:
        extender.patch(f"/api/v1/nodes/{path}", body)
    except ApiError as e:
        if e.status in (403, 422):
            return e.message
        raise
    return ""


def in_force(extender: Api, path: str) -> bool:
    """Whether a change is denied that nobody has made before."""
    return bool(denied(extender, path, {"metadata": {"annotations": {"tried": f"{time.monotonic()}"}}}))


def test_the_extender_may_write_its_condition_change_it_and_take_it_away(confined, cluster: Cluster):
    extender, node = confined
    for status in ("True", "False"):
        assert "" == denied(extender, f"{node}/status", {"status": {"conditions": [ours(status)]}})
        assert status == condition(cluster.api.get(f"/api/v1/nodes/{node}"), KIND)["status"]
    assert "" == denied(extender, f"{node}/status", {"status": {"conditions": [{"type": KIND, "$patch": "delete"}]}})
    assert {} == condition(cluster.api.get(f"/api/v1/nodes/{node}"), KIND)
    assert "" == denied(extender, node, {"metadata": {"annotations": {ANNOTATION_KICK: "x"}}})


def test_and_nothing_else_of_a_node(confined, cluster: Cluster):
    extender, node = confined
    before = cluster.api.get(f"/api/v1/nodes/{node}")
    bodies = {
        "the kubelet's Ready": {"status": {"conditions": [{"type": "Ready", "status": "False"}]}},
        "a condition of nobody's": {"status": {"conditions": [{"type": "x.example/y", "status": "True"}]}},
        "taking the kubelet's away": {"status": {"conditions": [{"type": "Ready", "$patch": "delete"}]}},
        "ours and another one": {"status": {"conditions": [ours(), {"type": "Ready", "status": "False"}]}},
        "what it can run": {"status": {"allocatable": {"cpu": "1000"}}},
        "its addresses": {"status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.66"}]}},
        "a label": {"metadata": {"labels": {"a": "b"}}},
        "an annotation": {"metadata": {"annotations": {"a": "b"}}},
        "a finalizer": {"metadata": {"finalizers": ["x.example/y"]}},
    }
    taken = [what for what, body in bodies.items() if not denied(extender, f"{node}/status", body)]
    assert [] == taken
    after = cluster.api.get(f"/api/v1/nodes/{node}")
    assert before["status"]["allocatable"] == after["status"]["allocatable"]
    assert condition(before, "Ready") == condition(after, "Ready")
