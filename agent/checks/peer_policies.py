"""Which NetworkPolicies keep the agents' packets from one another, or from Services. Pure.

Policies add up: one that admits is enough, whatever others leave out. What the policies of one namespace do not show,
as a block of addresses or labels of namespaces, is taken as not admitting: then policies are named and no node fails.
Policies of other kinds (of Cilium, Calico, administrators) are not read.
"""

from collections.abc import Mapping, Sequence

from agent.wire.network_policy import LabelSelector, NetworkPolicy, PolicyPort, PolicyRule
from kube.selector import Requirement, Selector, SelectorError, requirement

INGRESS, EGRESS = "Ingress", "Egress"
NAMESPACE_LABEL = "kubernetes.io/metadata.name"


def stopping_peers(
    policies: Sequence[NetworkPolicy], labels: Mapping[str, str], namespace: str, port: int
) -> tuple[str, ...]:
    """Names of those that select pods with these labels, in a direction where none admits such a pod at that port."""
    stopping: list[str] = []
    for direction in (INGRESS, EGRESS):
        selecting = [one for one in policies if direction in _types(one) and _selects(one.spec.pod_selector, labels)]
        rules = [rule for one in selecting for rule in _rules(one, direction)]
        if not any(_admits(rule, labels, namespace) and _has_port(rule.ports, port) for rule in rules):
            stopping += [one.metadata.name for one in selecting]
    return tuple(dict.fromkeys(stopping))


def stopping_services(policies: Sequence[NetworkPolicy], labels: Mapping[str, str]) -> tuple[str, ...]:
    """Names of those that select pods with these labels for what they send, where none admits every address."""
    selecting = [one for one in policies if EGRESS in _types(one) and _selects(one.spec.pod_selector, labels)]
    rules = [rule for one in selecting for rule in _rules(one, EGRESS)]
    if any(not rule.peers and not rule.ports for rule in rules):
        return ()
    return tuple(one.metadata.name for one in selecting)


def _types(policy: NetworkPolicy) -> tuple[str, ...]:
    """As the API server defaults them."""
    return policy.spec.policy_types or ((INGRESS, EGRESS) if policy.spec.egress else (INGRESS,))


def _rules(policy: NetworkPolicy, direction: str) -> tuple[PolicyRule, ...]:
    return (policy.spec.ingress if direction == INGRESS else policy.spec.egress) or ()


def _admits(rule: PolicyRule, labels: Mapping[str, str], namespace: str) -> bool:
    if not rule.peers:
        return True
    for peer in rule.peers:
        if peer.ip_block is not None or not _is_in(peer.namespace_selector, namespace):
            continue
        if peer.pod_selector is None or _selects(peer.pod_selector, labels):
            return True
    return False


def _is_in(selector: LabelSelector | None, namespace: str) -> bool:
    """Of a namespace no label is known but that with its name."""
    return selector is None or _selects(selector, {NAMESPACE_LABEL: namespace})


def _has_port(ports: Sequence[PolicyPort] | None, port: int) -> bool:
    if not ports:
        return True
    return any(
        one.protocol == "TCP"
        and (one.port is None or (isinstance(one.port, int) and one.port <= port <= (one.end_port or one.port)))
        for one in ports
    )


def _selects(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """Also where a selector cannot be read: what it selects is unknown."""
    try:
        return Selector(tuple(_requirements(selector))).matches(labels)
    except SelectorError:
        return False


def _requirements(selector: LabelSelector) -> list[Requirement]:
    found = [requirement(key, "In", [value]) for key, value in (selector.match_labels or {}).items()]
    return found + [requirement(r.key, r.operator, r.values or ()) for r in selector.match_expressions or ()]
