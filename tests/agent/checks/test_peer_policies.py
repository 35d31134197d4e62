"""Which NetworkPolicies of the agents' namespace stop the agents' packets: those that no other policy makes up for."""

from typing import Any

import msgspec

from agent.checks.peer_policies import stopping_peers, stopping_services
from agent.wire.network_policy import NetworkPolicy
from tools.kit.cases import cases

LABELS = {"app.kubernetes.io/name": "readygate-agent"}
AGENTS = {"podSelector": {"matchLabels": LABELS}}
DENY_ALL = {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
DENY_INGRESS = {"podSelector": {}, "policyTypes": ["Ingress"]}
OURS = {
    "podSelector": {"matchLabels": LABELS},
    "policyTypes": ["Ingress", "Egress"],
    "ingress": [{"from": [AGENTS], "ports": [{"protocol": "TCP", "port": 9375}]}],
    "egress": [{}],
}


def policies(*specs: dict[str, Any]) -> list[NetworkPolicy]:
    found = [{"metadata": {"name": f"policy-{place}"}, "spec": spec} for place, spec in enumerate(specs)]
    return msgspec.convert(found, list[NetworkPolicy])


def ingress(rule: dict[str, Any]) -> dict[str, Any]:
    return {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [rule]}


@cases(
    "specs, expected",
    ("no policy", [], ()),
    ("a policy for other pods", [{"podSelector": {"matchLabels": {"app": "web"}}}], ()),
    ("the operator's default", [DENY_ALL], ("policy-0",)),
    ("the operator's default beside our own", [DENY_ALL, OURS], ()),
    ("incoming packets alone", [DENY_INGRESS], ("policy-0",)),
    ("a policy without types is for incoming packets", [{"podSelector": {}}], ("policy-0",)),
    ("a rule for all pods of the namespace", [ingress({"from": [{"podSelector": {}}]})], ()),
    ("a rule for everybody", [ingress({})], ()),
    ("a rule for another port", [ingress({"ports": [{"port": 80}]})], ("policy-0",)),
    ("a rule for a range of ports", [ingress({"ports": [{"port": 9000, "endPort": 10000}]})], ()),
    ("a rule for UDP", [ingress({"ports": [{"port": 9375, "protocol": "UDP"}]})], ("policy-0",)),
    ("a rule for a port's name is not looked up", [ingress({"ports": [{"port": "health"}]})], ("policy-0",)),
    ("a rule for a block of addresses", [ingress({"from": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]})], ("policy-0",)),
    (
        "a rule for another namespace",
        [ingress({"from": [{"namespaceSelector": {"matchLabels": {"a": "b"}}}]})],
        ("policy-0",),
    ),
    (
        "a rule for the namespace by its name",
        [
            ingress(
                {"from": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "readygate-system"}}}]}
            )
        ],
        (),
    ),
    ("a selector by expressions", [{"podSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}], ()),
)
def test_policies_between_agents(specs: list[dict[str, Any]], expected: tuple[str, ...]) -> None:
    assert stopping_peers(policies(*specs), LABELS, "readygate-system", 9375) == expected


@cases(
    "specs, expected",
    ("no policy", [], ()),
    ("incoming packets alone", [DENY_INGRESS], ()),
    ("the operator's default", [DENY_ALL], ("policy-0",)),
    ("the operator's default beside our own", [DENY_ALL, OURS], ()),
    ("an exception for DNS", [{**DENY_ALL, "egress": [{"ports": [{"port": 53, "protocol": "UDP"}]}]}], ("policy-0",)),
)
def test_policies_to_services(specs: list[dict[str, Any]], expected: tuple[str, ...]) -> None:
    assert stopping_services(policies(*specs), LABELS) == expected
