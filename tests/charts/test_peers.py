"""What the check podNetwork takes of a cluster: a list of peers, and packets between agents; nothing without it."""

import json

import msgspec
import pytest

from agent.checks.builtin.pod_network import Settings
from agent.checks.peer_policies import stopping_peers, stopping_services
from agent.modes.peer_source import SERVICE_LABEL
from agent.wire.network_policy import NetworkPolicy
from kube import contract
from tests.charts.rendering import Objects, objects

NAME, NAMESPACE = contract.NAME_AGENT, contract.NAMESPACE
IMAGE = 'image={"repository":"localhost/readygate","tag":"dev"}'
NO_LIST = 'agent.checkProfile=""'
CHECKS = f"agent.checks={json.dumps([{'name': 'pods', 'podNetwork': {}}])}"


@pytest.fixture(
    scope="module",
    params=[pytest.param([], id="by the default list"), pytest.param([NO_LIST, CHECKS], id="by a check of one's own")],
)
def sent(request: pytest.FixtureRequest) -> Objects:
    return objects(given=[IMAGE, *request.param])


def rules(sent: Objects) -> list[dict[str, list[str]]]:
    found = sent["Role", NAMESPACE, f"{NAME}-peers"]["rules"]
    assert isinstance(found, list)
    return found


def test_agents_read_two_kinds_in_their_own_namespace(sent: Objects) -> None:
    assert rules(sent) == [
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["get", "list"]},
        {"apiGroups": ["networking.k8s.io"], "resources": ["networkpolicies"], "verbs": ["list"]},
    ]
    binding = sent["RoleBinding", NAMESPACE, f"{NAME}-peers"]
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}]


def test_the_service_selects_the_agents_and_has_no_address(sent: Objects) -> None:
    spec = sent["Service", NAMESPACE, Settings().service]["spec"]
    labels = sent["DaemonSet", NAMESPACE, NAME]["spec"]["template"]["metadata"]["labels"]
    assert (spec["clusterIP"], spec["selector"].items() <= labels.items()) == ("None", True)
    assert spec["ports"][0]["port"] == Settings().port
    assert SERVICE_LABEL == "kubernetes.io/service-name"  # by which EndpointSlices of a Service are found


def test_the_agents_policy_admits_agents_also_beside_a_default_deny_policy(sent: Objects) -> None:
    ours = sent["NetworkPolicy", NAMESPACE, NAME]
    deny = {"metadata": {"name": "deny"}, "spec": {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}}
    policies = msgspec.convert([ours, deny], list[NetworkPolicy])
    labels = sent["DaemonSet", NAMESPACE, NAME]["spec"]["template"]["metadata"]["labels"]
    assert stopping_peers(policies, labels, NAMESPACE, Settings().port) == ()
    assert stopping_services(policies, labels) == ()


def test_the_agent_knows_its_hosts_address(sent: Objects) -> None:
    """By which it sees that it has the host's network."""
    (agent,) = sent["DaemonSet", NAMESPACE, NAME]["spec"]["template"]["spec"]["containers"]
    fields = {one["name"]: one["valueFrom"]["fieldRef"]["fieldPath"] for one in agent["env"]}
    assert (fields["POD_IP"], fields["HOST_IP"], fields["NODE_NAME"]) == (
        "status.podIP",
        "status.hostIP",
        "spec.nodeName",
    )


def test_without_a_condition_the_token_is_there_all_the_same() -> None:
    made = objects(given=[IMAGE, CHECKS, "agent.publishCondition=false"])
    assert made["DaemonSet", NAMESPACE, NAME]["spec"]["template"]["spec"]["automountServiceAccountToken"] is True


@pytest.mark.parametrize(
    "given", [pytest.param(NO_LIST, id="no list"), pytest.param('agent.leaveOut=["pod-network"]', id="left out")]
)
def test_without_the_check_nothing_is_granted(given: str) -> None:
    made = objects(given=[IMAGE, given])
    assert {
        (kind, name) for kind, _, name in made if name == f"{NAME}-peers" or (kind == "Service" and name == NAME)
    } == set()
    assert made["NetworkPolicy", NAMESPACE, NAME]["spec"]["policyTypes"] == ["Ingress"]
