"""`readygate sweep` removes what an uninstalled readygate left, and nothing else."""

import pytest

from cli.__main__ import main
from extender.outlets.kick import ANNOTATION_KICK
from kube import contract
from tests.cli.orders.ordering import NAMESPACE

OURS = {"type": contract.CONDITION_NODE_HEALTHY, "status": "False"}
READY = {"type": "Ready", "status": "True"}


def write(api, name, conditions=(READY,), **annotations):
    node = api.get("Node", name)
    node["metadata"]["annotations"] = {"of": "others", **annotations}
    node["status"]["conditions"] = list(conditions)
    api.put(node)


def what_is_there(api):
    return {
        node["metadata"]["name"]: (
            sorted(node["metadata"]["annotations"]),
            [one["type"] for one in node["status"]["conditions"]],
        )
        for node in api.objects("Node")
    }


@pytest.fixture
def marked(api):
    write(api, "n-1", (READY, OURS))
    write(api, "n-2", (OURS, READY), **{ANNOTATION_KICK: "1"})
    write(api, "n-3")
    lease = {"kind": "Lease", "metadata": {"name": contract.NAME_EXTENDER, "namespace": NAMESPACE}}
    api.put({"apiVersion": "coordination.k8s.io/v1", **lease})
    api.put({"kind": "Pod", "metadata": {"name": "readygate-test", "namespace": NAMESPACE}, "spec": {}})
    return api


def test_sweep_removes_conditions_kicks_lease_and_test_pod_and_nothing_else(marked, capsys):
    assert main(["sweep"]) == 0
    assert what_is_there(marked) == dict.fromkeys(("n-1", "n-2", "n-3"), (["of"], ["Ready"]))
    assert marked.get("Lease", contract.NAME_EXTENDER, NAMESPACE) is None
    assert marked.get("Pod", "readygate-test", NAMESPACE) is None
    assert capsys.readouterr().out == f"swept: 2 nodes, and namespace {NAMESPACE}\n"


@pytest.mark.usefixtures("marked")
def test_a_second_sweep_finds_nothing(capsys):
    assert [main(["sweep"]), main(["sweep"])] == [0, 0]
    assert "swept: 0 nodes" in capsys.readouterr().out


def test_a_node_deleted_during_the_sweep_is_no_error(marked, capsys):
    marked.answer_next(404, reason="NotFound", method="PATCH", path="n-1")
    assert main(["sweep"]) == 0
    assert "swept: 1 node," in capsys.readouterr().out


@pytest.mark.parametrize(
    ("method", "path", "said"),
    [
        pytest.param("GET", "/nodes", "you may not list nodes", id="to list nodes"),
        pytest.param("PATCH", "/status", "you may not patch the status of node n-1", id="to write their status"),
        pytest.param("DELETE", "/leases", "you may not delete the Lease readygate-extender", id="to delete the Lease"),
        pytest.param("DELETE", "/pods", "you may not delete the pod readygate-test", id="to delete the pod"),
    ],
)
def test_a_missing_right_is_named(marked, capsys, method, path, said):
    marked.answer_next(403, reason="Forbidden", method=method, path=path)
    assert main(["sweep"]) == 1
    assert said in capsys.readouterr().err


def test_each_refusal_is_reported_and_the_sweep_goes_on(marked, capsys):
    marked.answer_next(403, reason="Forbidden", message="a policy", method="PATCH", path="n-1")
    marked.answer_next(422, reason="Invalid", message="a webhook", method="DELETE", path="/leases")
    assert main(["sweep"]) == 1
    there = what_is_there(marked)
    assert (["Ready", OURS["type"]], ["Ready"]) == (there["n-1"][1], there["n-2"][1])
    assert marked.get("Pod", "readygate-test", NAMESPACE) is None
    out, err = capsys.readouterr()
    node, lease = err.splitlines()
    assert out == f"swept: 1 node, and namespace {NAMESPACE}; 2 refused\n"
    assert node.startswith("readygate sweep: you may not patch the status of node n-1: a policy")
    assert lease.startswith(f"readygate sweep: cannot delete the Lease {contract.NAME_EXTENDER} in {NAMESPACE}")
    assert main(["sweep"]) == 0


def test_invalid_credentials_end_the_sweep_at_the_first_node(marked, capsys):
    marked.answer_next(401, reason="Unauthorized", method="PATCH", times=9)
    assert main(["sweep"]) == 1
    assert capsys.readouterr().err.count("readygate sweep: ") == 1


def test_all_pages_of_nodes_are_swept(marked, monkeypatch):
    monkeypatch.setattr("cli.sweep.command.PAGE", "1")
    assert main(["sweep"]) == 0
    assert what_is_there(marked)["n-2"] == (["of"], ["Ready"])
