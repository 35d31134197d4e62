"""What the roles of agent and extender let the two read and write: to the word, and no more than the gates name."""

import json
from typing import Any

import pytest

from kube import contract
from tests.playbooks.rendering import ADMIN_SERVER, Objects, named, objects

NS = contract.NAMESPACE
AGENT = contract.NAME_AGENT
EXTENDER = contract.NAME_EXTENDER
CNI = {"namespace": "kube-system", "labelSelector": "k8s-app=cilium"}
PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}
DAEMON_SETS = {"apiGroups": ["apps"], "resources": ["daemonsets"], "verbs": ["list", "watch"]}
ORDERS = {
    "apiGroups": [""],
    "resources": ["configmaps"],
    "resourceNames": ["readygate-orders"],
    "verbs": ["list", "watch"],
}
LEASES = "coordination.k8s.io"
LEADER = [
    {"apiGroups": [LEASES], "resources": ["leases"], "verbs": ["create"]},
    {"apiGroups": [LEASES], "resources": ["leases"], "resourceNames": [EXTENDER], "verbs": ["get", "update"]},
]
NODES = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "watch", "patch"]}
NODE_STATUS = {"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch"]}
EVENTS = {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]}
OPERATOR = "readygate-operator"
OPERATES = [
    {
        "apiGroups": [""],
        "resources": ["configmaps"],
        "resourceNames": ["readygate-orders"],
        "verbs": ["get", "update", "patch", "delete"],
    },
    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]},
    {"apiGroups": [""], "resources": ["pods/portforward"], "verbs": ["get", "create"]},
    {"apiGroups": ["readygate.dev"], "resources": ["orders"], "verbs": ["write"]},
]
WRITES_NOTHING = {"nodeCondition": {"enabled": False}, "events": {"enabled": False}}


@pytest.fixture(scope="module")
def sent() -> Objects:
    return objects("readygate_agent", {}) | objects("readygate_extender", ADMIN_SERVER)


PEERS = [
    {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["get", "list"]},
    {"apiGroups": ["networking.k8s.io"], "resources": ["networkpolicies"], "verbs": ["list"]},
]
NO_LIST = {"readygate_agent_check_profile": ""}
POD_NETWORK = [{"name": "pods", "podNetwork": {}}]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({}, True, id="by the default list"),
        pytest.param(NO_LIST | {"readygate_agent_checks": POD_NETWORK}, True, id="in pods"),
        pytest.param(
            NO_LIST | {"readygate_agent_form": "both", "readygate_node_checks": POD_NETWORK}, True, id="beside them"
        ),
        pytest.param(NO_LIST | {"readygate_agent_form": "both"}, False, id="without the check"),
        pytest.param({"readygate_agent_leave_out": ["pod-network"]}, False, id="left out of the list"),
    ],
)
def test_agents_that_ask_one_another_may_list_each_other(given: dict[str, Any], expected: bool) -> None:
    made = objects("readygate_agent", {"readygate_image": "localhost/readygate:dev", **given})
    assert expected == (("Service", NS, AGENT) in made)
    assert (PEERS if expected else None) == made.get(("Role", NS, f"{AGENT}-peers"), {}).get("rules")
    policy = made["NetworkPolicy", NS, AGENT]["spec"]
    assert (["Ingress", "Egress"] if expected else ["Ingress"], 2 if expected else 1) == (
        policy["policyTypes"],
        len(policy["ingress"]),
    )


@pytest.mark.parametrize("asks", [True, False], ids=["with the check", "without it"])
def test_without_a_condition_the_token_is_for_the_check_alone(asks: bool) -> None:
    given = {"readygate_agent_publish_condition": False, "readygate_agent_heartbeat": False}
    made = objects("readygate_agent", given | NO_LIST | ({"readygate_agent_checks": POD_NETWORK} if asks else {}))
    assert asks == made["DaemonSet", NS, AGENT]["spec"]["template"]["spec"]["automountServiceAccountToken"]


def test_without_pods_of_ours_none_may_list_agents() -> None:
    made = objects("readygate_agent", {"readygate_agent_form": "node"})
    assert set() == {key for key in made if key[0] == "Service" or key[2].endswith("-peers")}


def test_without_those_who_collect_metrics_agents_alone_are_admitted() -> None:
    given = {"readygate_agent_metrics_from": [], "readygate_agent_checks": POD_NETWORK}
    (rule,) = objects("readygate_agent", given)["NetworkPolicy", NS, AGENT]["spec"]["ingress"]
    assert [{"podSelector": {"matchLabels": {"app.kubernetes.io/name": AGENT}}}] == rule["from"]


def test_rights_are_exactly_these(sent):
    rules = {key: o["rules"] for key, o in sent.items() if key[0] in ("Role", "ClusterRole")}
    assert rules == {
        ("Role", NS, AGENT): [{"apiGroups": [""], "resources": ["pods/status"], "verbs": ["patch"]}],
        ("Role", NS, f"{AGENT}-peers"): PEERS,
        ("ClusterRole", "", EXTENDER): [NODES, NODE_STATUS, EVENTS, PODS],
        ("ClusterRole", "", OPERATOR): OPERATES,
        ("Role", NS, EXTENDER): [PODS, DAEMON_SETS, ORDERS, *LEADER],
        ("Role", contract.NAMESPACE_NODE_LEASE, EXTENDER): [
            {"apiGroups": [LEASES], "resources": ["leases"], "verbs": ["list", "watch"]}
        ],
    }


def rights_of(*gates: dict[str, Any], **configuration: Any) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """By kind and namespace: the rules of the extender with these gates; the Lease's Role is always there."""
    given = {"readygate_extender_configuration": {"gates": [*gates]} | configuration}
    sent = objects("readygate_extender", given | ADMIN_SERVER)
    roles = {
        key[:2]: one["rules"] for key, one in sent.items() if key[0] in ("Role", "ClusterRole") and key[2] != OPERATOR
    }
    bindings = {
        key[0].removesuffix("Binding") + key[1] for key in sent if key[0] in ("RoleBinding", "ClusterRoleBinding")
    }
    assert {kind + namespace for kind, namespace in roles} == bindings
    del roles["Role", contract.NAMESPACE_NODE_LEASE]
    return roles


def test_each_namespace_with_health_pods_has_a_role_that_lets_them_be_read():
    rights = rights_of(
        {"name": "health"},
        {"name": "cni", "healthPods": {"namespace": "kube-system", "labelSelector": "", "daemonSet": "cilium"}},
        {"name": "disk", "healthPods": {"namespace": "storage", "labelSelector": "app=probe"}},
        {"name": "kernel", "healthPods": None, "conditions": {"allOf": [{"of": "node", "type": "Deadlock"}]}},
    )
    del rights["ClusterRole", ""]
    assert {
        ("Role", NS): [PODS, DAEMON_SETS, ORDERS, *LEADER],
        ("Role", "kube-system"): [PODS, DAEMON_SETS],
        ("Role", "storage"): [PODS],
    } == rights


def test_without_health_pods_of_ours_no_pod_of_ours_is_read():
    rights = rights_of(
        {"healthPods": {"namespace": "storage", "labelSelector": "app=probe"}},
        orders={"configMap": None},
        outlets=WRITES_NOTHING,
    )
    assert ("Role", NS) not in rights


@pytest.mark.parametrize(
    ("outlets", "expected"),
    [
        pytest.param({"events": {"enabled": False}}, [NODES, NODE_STATUS], id="no events"),
        pytest.param({"nodeCondition": {"enabled": False, "perSecond": 1}}, [NODES, EVENTS], id="no condition"),
        pytest.param(WRITES_NOTHING, [NODES], id="neither, and no lease"),
    ],
)
def test_what_is_not_written_may_not_be(outlets, expected):
    rights = rights_of({"name": "health"}, outlets=outlets)
    assert expected == rights["ClusterRole", ""]
    assert ([] if outlets == WRITES_NOTHING else LEADER) == [
        rule for rule in rights["Role", NS] if rule["apiGroups"] == [LEASES]
    ]


@pytest.mark.parametrize(("drivers", "expected"), [(None, 1), (["ebs.csi.aws.com"], 3)])
def test_volumes_are_read_only_where_a_gate_names_drivers(drivers, expected):
    rules = rights_of({"for": {"csiDrivers": drivers}} if drivers else {}, outlets=WRITES_NOTHING)["ClusterRole", ""]
    assert [["nodes"], ["persistentvolumeclaims", "persistentvolumes"], ["storageclasses"]][:expected] == [
        rule["resources"] for rule in rules
    ]


DEVICES = ["resourceclaims", "resourceclaimtemplates", "deviceclasses"]


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param({"deviceClasses": ["gpu.nvidia.com"]}, [["nodes"], DEVICES], id="a class of devices"),
        pytest.param({"resources": ["cpu", "nvidia.com/gpu"]}, [["nodes"], DEVICES], id="a resource of devices"),
        pytest.param({"resources": ["cpu", "memory"]}, [["nodes"]], id="resources that no driver of devices serves"),
        pytest.param({"deviceClasses": None, "resources": None}, [["nodes"]], id="null is without"),
        pytest.param({"namespaces": ["a"]}, [["nodes"]], id="without"),
    ],
)
def test_claims_of_devices_are_read_only_where_a_gate_names_a_device(pods, expected):
    rules = rights_of({"name": "health"}, {"for": pods}, outlets=WRITES_NOTHING)["ClusterRole", ""]
    assert expected == [rule["resources"] for rule in rules]


@pytest.mark.parametrize(
    ("starts", "expected"),
    [
        pytest.param({"podStarts": {}}, [["nodes"], ["pods"]], id="with it"),
        pytest.param({"podStarts": None}, [["nodes"]], id="null is without"),
        pytest.param({}, [["nodes"]], id="without"),
    ],
)
def test_all_pods_are_read_only_where_a_gate_goes_by_how_they_start(starts, expected):
    rules = rights_of(starts, outlets=WRITES_NOTHING)["ClusterRole", ""]
    assert expected == [rule["resources"] for rule in rules]


def test_every_binding_gives_a_role_to_the_account_of_the_same_name(sent):
    bindings = {key: o for key, o in sent.items() if key[0] in ("RoleBinding", "ClusterRoleBinding")}
    assert len(bindings) == 5
    for (kind, namespace, name), binding in bindings.items():
        role = kind.removesuffix("Binding")
        assert {"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": name} == binding["roleRef"]
        account = {"kind": "ServiceAccount", "name": name.removesuffix("-peers"), "namespace": NS}
        assert [account] == binding["subjects"]
        assert (role, namespace, name) in sent


@pytest.mark.parametrize("form", ["daemonset", "static"])
@pytest.mark.parametrize("name", ["readygate-orders", "our-orders", None])
def test_operators_write_the_orders_by_the_name_of_the_configuration(form, name):
    given = {"readygate_extender_form": form, "readygate_extender_configuration": {"orders": {"configMap": name}}}
    sent = objects("readygate_extender", given | ADMIN_SERVER)
    read = name or "readygate-orders"  # what nobody reads is left to operators too
    assert [read] == sent["ClusterRole", "", OPERATOR]["rules"][0]["resourceNames"]
    policy = sent["ValidatingAdmissionPolicy", "", f"{EXTENDER}-orders"]
    assert {"name": "orders", "expression": f"'{read}'"} == policy["spec"]["variables"][0]


def test_no_role_of_kubernetes_aggregates_the_rights_of_an_operator(sent):
    labels = sent["ClusterRole", "", OPERATOR]["metadata"]["labels"]
    assert not [label for label in labels if "aggregate" in label]
    assert not [key for key, one in sent.items() if one.get("roleRef", {}).get("name") == OPERATOR]


def test_what_earlier_gates_let_be_read_is_unwanted():
    """Of what has our label: what is in a namespace that no gate names any more, and nothing else."""
    kinds = ("Role", "RoleBinding")
    found = [
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": EXTENDER, "namespace": there}}
        for there in (NS, contract.NAMESPACE_NODE_LEASE, "kube-system", "storage")
        for kind in kinds
    ]
    given = {
        "readygate_extender_configuration": {"gates": [{"name": "cni", "healthPods": CNI}]},
        "__readygate_extender_rights": {"stdout": json.dumps({"items": found})},
    }
    unwanted = named("readygate_extender", given | ADMIN_SERVER, "unwanted")
    assert {(kind, "storage", EXTENDER) for kind in kinds} == set(unwanted)
