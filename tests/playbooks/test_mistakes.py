"""What of the variables cannot be is said in words before a host is asked, and what can be is not."""

import pytest

from tests.playbooks.rendering import ADMIN_SERVER, plain, render

HOST = {"__readygate_node_looked": {"stdout": ""}}


@pytest.mark.parametrize(
    ("role", "given", "expected"),
    [
        pytest.param("agent", {}, [], id="nothing"),
        pytest.param("agent", {"readygate_agent_cni_conf_dir": "/etc/kube/cni/net.d"}, [], id="another folder"),
        pytest.param(
            "agent",
            {"readygate_agent_cni_conf_dir": "/etc/cni/net.d/"},
            ["readygate_agent_cni_conf_dir is /etc/cni/net.d/"],
            id="a folder whose parent is itself, as its mount would be",
        ),
        pytest.param(
            "agent",
            {"readygate_agent_cni_conf_dir": "/cni"},
            ["readygate_agent_cni_conf_dir is /cni"],
            id="a folder whose parent is the whole host",
        ),
        pytest.param(
            "agent",
            {"readygate_agent_cni_conf_dir": "/cni", "readygate_agent_cni_check": False, "readygate_agent_checks": []}
            | {"readygate_agent_check_profile": "minimal"},
            [],
            id="which is nobody's affair where it is not checked",
        ),
        pytest.param(
            "node",
            {"readygate_agent_cni_conf_dir": "/etc/cni/net.d/"},
            ["readygate_node_cni_conf_dir is /etc/cni/net.d/"],
            id="the same of the service",
        ),
        pytest.param("extender", {}, [], id="nothing of the extender"),
        pytest.param(
            "extender",
            {"readygate_extender_configuration": {"statusApi": {"port": 9400}}},
            ["readygate_extender_configuration has statusApi.port"],
            id="a port that no probe asks",
        ),
        pytest.param(
            "extender",
            {"readygate_extender_configuration": {"statusApi": {"hosts": ["gate.example"]}}},
            [],
            id="the rest of what serves people",
        ),
        pytest.param(
            "extender",
            {"readygate_extender_configuration": {"orders": {"configMap": "readygate-extender-orders"}}},
            ["readygate_extender_configuration.orders.configMap is readygate-extender-orders"],
            id="orders that no operator may write",
        ),
        pytest.param(
            "extender",
            {"readygate_extender_configuration": {"namespace": "other"}},
            ["readygate_extender_configuration.namespace is other"],
            id="a namespace without rights",
        ),
        pytest.param(
            "extender",
            {"readygate_extender_configuration": {"namespace": "readygate-system"}},
            [],
            id="the namespace that it is",
        ),
        pytest.param(
            "extender",
            {"readygate_extender_port": 9377},
            ["readygate_extender_port is 9377"],
            id="the status API's port",
        ),
        pytest.param(
            "extender", {"readygate_extender_port": 9379}, ["readygate_extender_port is 9379"], id="the port of metrics"
        ),
        pytest.param(
            "extender",
            {"readygate_extender_configuration": {"metrics": {"port": 9400}}},
            ["readygate_extender_configuration has metrics"],
            id="a port that no monitor asks",
        ),
    ],
)
def test_what_cannot_be_is_said(role, given, expected):
    told = plain(render(f"readygate_{role}", ADMIN_SERVER | HOST | given)(f"__readygate_{role}_mistakes"))
    assert expected == [one.partition(", ")[0].partition(":")[0] for one in told]
