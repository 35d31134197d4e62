"""What a pod asks of its node, as it is read."""

from typing import Any

import msgspec
import pytest

from agent.wire.model import ContainerPort
from agent.wire.placement_model import NodeRequirement, NodeTerm, Placement, Toleration
from agent.wire.pod import parse_pod


def read(spec: dict[str, Any]) -> Any:
    return parse_pod(msgspec.json.encode({"metadata": {"name": "p", "namespace": "ns", "uid": "u"}, "spec": spec}))


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, Placement(), id="nothing"),
        pytest.param({"affinity": None, "tolerations": None, "os": None, "resources": None}, Placement(), id="nulls"),
        pytest.param({"affinity": {"nodeAffinity": {}}}, Placement(), id="an affinity that asks for nothing"),
        pytest.param(
            {"affinity": {"nodeAffinity": {REQUIRED: {}}}},
            Placement(node_terms=()),
            id="one without terms holds nowhere",
        ),
        pytest.param(
            {
                "nodeSelector": {"a": "b"},
                "affinity": {
                    "nodeAffinity": {
                        REQUIRED: {
                            "nodeSelectorTerms": [
                                {
                                    "matchExpressions": [{"key": "k", "operator": "Exists"}],
                                    "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}],
                                },
                                {},
                            ]
                        }
                    }
                },
                "tolerations": [{"key": "t", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}],
                "os": {"name": "linux"},
                "priority": 2000000000,
                "overhead": {"cpu": 1},
                "resources": {"requests": {"cpu": "2"}, "limits": {"memory": "1Gi"}},
            },
            Placement(
                {"a": "b"},
                (
                    NodeTerm((NodeRequirement("k", "Exists"),), (NodeRequirement("metadata.name", "In", ("n",)),)),
                    NodeTerm(),
                ),
                (Toleration("t", "Exists", "", "NoExecute"),),
                "linux",
                2000000000,
                {"cpu": "1"},
                (("limits", "memory", "1Gi"), ("requests", "cpu", "2")),
            ),
            id="everything",
        ),
    ],
)
def test_what_a_pod_asks_of_its_node(spec: dict[str, Any], expected: Placement) -> None:
    assert expected == read(spec).placement


def test_ports_of_the_host() -> None:
    port = {"containerPort": 80, "hostPort": 8080, "hostIP": "10.0.0.1", "protocol": "UDP"}
    (container,) = read({"containers": [{"name": "c", "ports": [port]}]}).containers
    assert (ContainerPort(80, "", 8080, "10.0.0.1", "UDP"),) == container.ports
