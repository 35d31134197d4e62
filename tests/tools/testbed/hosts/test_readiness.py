"""A cluster may be used when each node has reported since the start, and the controller manager works."""

import pytest

from tools.testbed.hosts import readiness
from tools.testbed.hosts.errors import HostsError
from tools.testbed.shared.api import ApiError

STARTED = 1_700_000_000.6
NOW, BEFORE = "2023-11-14T22:13:20Z", "2023-11-14T22:13:19Z"


def node(name="worker-1", status="True", reported=NOW, taints=()):
    ready = {"type": "Ready", "status": status, "lastHeartbeatTime": reported, "message": "no network"}
    spec = {"taints": [{"key": key, "effect": "NoSchedule"} for key in taints]} if taints else {}
    return {"metadata": {"name": name}, "spec": spec, "status": {"conditions": [ready]}}


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        pytest.param([node()], "", id="Ready in the second of the start"),
        pytest.param([node(taints=["node-role.kubernetes.io/control-plane"])], "", id="a role's taint is for good"),
        pytest.param([], "worker-1 has not joined", id="not there"),
        pytest.param([node(status="False")], "worker-1 is not Ready: no network", id="not Ready"),
        pytest.param([node(reported=BEFORE)], "worker-1 has not reported since the start", id="Ready in a snapshot"),
        pytest.param(
            [node(taints=["node.kubernetes.io/not-ready"])],
            "worker-1 is tainted: node.kubernetes.io/not-ready",
            id="the controller manager has not noticed",
        ),
        pytest.param(
            [{**node(), "status": {}}], "worker-1 is not Ready: no report", id="its kubelet has not reported anything"
        ),
    ],
)
def test_the_first_reason_why_a_node_is_unready(nodes, expected):
    assert expected == readiness.unready(nodes, ["worker-1"], STARTED)


class Scripted:
    """Answers to requests for nodes and for the service account, in this order."""

    def __init__(self, *answers):
        self.answers = list(answers)

    def items(self, _path):
        return self._next()

    def get(self, _path):
        return self._next()

    def _next(self):
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def error(status):
    return ApiError("GET", "/", status, "scripted", "")


@pytest.mark.parametrize(
    "first",
    [
        pytest.param([error(0)], id="no API server yet"),
        pytest.param([error(403)], id="an API server without its rules"),
        pytest.param([[node(status="False")]], id="a node that is not Ready"),
        pytest.param([[node()], error(404)], id="no service account yet"),
    ],
)
def test_it_waits_until_the_nodes_are_ready_and_pods_can_be_created(first, monkeypatch):
    monkeypatch.setattr(readiness.time, "sleep", lambda _: None)
    api = Scripted(*first, [node()], {})
    readiness.wait(api, ["worker-1"], STARTED)
    assert [] == api.answers


def test_a_cluster_that_is_not_ready_in_time_is_an_error_with_the_reason(monkeypatch):
    monkeypatch.setattr(readiness, "LIMIT_S", 0.0)
    with pytest.raises(HostsError, match=r"^the cluster is not ready after 0 s: worker-1 has not joined$"):
        readiness.wait(Scripted([], []), ["worker-1"], STARTED)
