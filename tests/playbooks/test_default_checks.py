"""What the roles run where the inventory says nothing of checks, in pods and as a service beside them."""

from agent import settings as agent_settings
from tests.playbooks.rendering import objects, render
from tests.playbooks.test_node_plugin import ROLE, host
from tests.playbooks.test_roles import agent_configuration


def test_without_settings_it_runs_the_default_list_and_closes_for_these():
    made = agent_settings.parse(render(ROLE, host())("__readygate_node_configuration").encode())
    assert "cni runtime filesystem connection-tables kernel-log" == " ".join(
        check.name for check in made.checks if check.severity == "gate"
    )
    assert not {check.name for check in made.checks} & {"pod-network"}, "the health pod beside it examines that"


def test_what_the_inventory_says_of_checks_of_pods_alone_is_none_of_the_service():
    given = {
        "readygate_agent_checks": [{"name": "pod-network", "severity": "warn"}, {"name": "time", "severity": "gate"}]
    }
    made = agent_settings.parse(render(ROLE, host() | given)("__readygate_node_configuration").encode())
    assert {"time": "gate"} == {
        check.name: check.severity for check in made.checks if check.name in ("time", "pod-network")
    }
    in_pods = agent_configuration(objects("readygate_agent", given))
    assert {"pod-network": "warn", "time": "gate"} == {
        check.name: check.severity for check in in_pods.checks if check.name in ("time", "pod-network")
    }


def test_without_settings_pods_run_the_default_list_and_close_for_these():
    made = agent_configuration(objects("readygate_agent", {}))
    assert "cni pressure time runtime filesystem pod-network dns pod-addresses" == " ".join(
        check.name for check in made.checks
    )
    assert ["cni", "runtime", "filesystem", "pod-network"] == [
        check.name for check in made.checks if check.severity == "gate"
    ]
