"""The health pods of the agent as a service: which checks they name, and what is wrong with such names."""

import msgspec
import pytest
import yaml

from agent.opinion.settings import HealthPodsSection
from extender.config import settings as extender_settings
from extender.config.gates import HealthPods
from tests.playbooks.rendering import ADMIN_SERVER, extender_yaml, objects, plain, render
from tests.playbooks.test_node_plugin import HOST, ROLE, configuration
from tests.playbooks.test_roles import entries
from tests.test_docs import YAML_FILES

OURS = {"namespace": "readygate-system", "labelSelector": "app.kubernetes.io/name=readygate-agent"}
GPU = {"namespace": "g", "labelSelector": "app=gpu", "daemonSet": "gpu"}
LISTED = {"readygate_node_check_profile": "gpu"}


def mistakes(given):
    return plain(render(ROLE, HOST | given)("__readygate_node_mistakes"))


def pods(*checks):
    return {"readygate_node_health_pods": [OURS, {**GPU, "checks": list(checks)}]}


def test_an_entry_may_name_checks_of_the_ready_made_list_and_of_the_inventory():
    own = {"readygate_node_checks": [{"name": "mine", "tcpSocket": {"port": 1}}]}
    given = LISTED | own | pods("gpu", "mine")
    section = configuration(**given).node
    assert section is not None
    assert [None, ("gpu", "mine")] == [one.checks for one in section.health_pods]
    assert [] == mistakes(given)


def test_no_checks_said_by_name_are_as_none_said():
    assert [] == mistakes({"readygate_node_health_pods": [{**GPU, "checks": None}]})


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(
            pods("cni", "gpuu"),
            "checks of readygate_node_health_pods must be of cni, which these are not: gpuu",
            id="a check that there is not",
        ),
        pytest.param(
            LISTED | {"readygate_node_leave_out": ["gpu"]} | pods("gpu"), "which these are not: gpu", id="one left out"
        ),
        pytest.param(
            LISTED | {"readygate_node_cni_check": False} | pods("cni"),
            "which these are not: cni",
            id="one switched off",
        ),
        pytest.param(pods(), "must name one, or not be there", id="none"),
    ],
)
def test_a_mistake_in_names_is_told(given, expected):
    (told,) = mistakes(given)
    assert expected in told


def test_an_entry_of_the_inventory_has_the_keys_of_the_agents_own():
    (options,) = [entries(ROLE)["main"]["readygate_node_health_pods"]["options"]]
    assert {field.encode_name for field in msgspec.structs.fields(HealthPodsSection)} == options.keys()


def test_the_documented_gate_of_gpus_closes_by_the_pods_whose_checks_the_agent_counts_for_them_alone():
    """The variables of docs/node-plugin.md, through both roles and both readers of settings."""
    given = yaml.safe_load(YAML_FILES["gpu-nodes.yml"])
    section = configuration(**given).node
    assert section is not None
    sent = objects("readygate_extender", given | ADMIN_SERVER)
    text = extender_yaml(sent)
    gates = {gate.name: gate for gate in extender_settings.parse(text).gates}
    assert [] == mistakes(given)
    assert [(None, gates["health"].health_pods), (("gpu", "gpu-xid"), gates["gpu"].health_pods)] == [
        (one.checks, HealthPods(one.namespace, one.label_selector, one.daemon_set)) for one in section.health_pods
    ]
    assert [None, ("nvidia.com/gpu",)] == [gate.pods_for.resources for gate in gates.values()]
