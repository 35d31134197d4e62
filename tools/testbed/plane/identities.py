"""Who may speak with the plane's API server, and what the identities of extender and agent may do there."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from kube import contract
from tools.testbed.shared.api import Api, Object

ADMIN = "admin"
EXTENDER = f"system:serviceaccount:{contract.NAMESPACE}:{contract.NAME_EXTENDER}"
AGENT = f"system:serviceaccount:{contract.NAMESPACE}:{contract.NAME_AGENT}"
NODES_GROUP = "system:nodes"
_RBAC = "/apis/rbac.authorization.k8s.io/v1"


@dataclass(frozen=True)
class Identity:
    user: str
    groups: tuple[str, ...] = ()


def node(name: str) -> Identity:
    """The identity of a kubelet: the Node authorizer and NodeRestriction confine it to its node."""
    return Identity(f"system:node:{name}", (NODES_GROUP,))


def standard(nodes: Sequence[str]) -> list[Identity]:
    return [
        Identity(ADMIN, ("system:masters",)),
        Identity("system:kube-controller-manager"),
        Identity("system:kube-scheduler"),
        Identity(EXTENDER),
        *(node(name) for name in nodes),
    ]


def token_file(identities: Sequence[Identity]) -> tuple[str, dict[str, str]]:
    """(text of --token-auth-file, token of each user)."""
    tokens = {identity.user: secrets.token_hex(16) for identity in identities}
    lines = [
        f'{tokens[identity.user]},{identity.user},{number},"{",".join(identity.groups)}"'
        for number, identity in enumerate(identities)
    ]
    return "\n".join(lines) + "\n", tokens


def grant_extender(api: Api, *, namespace: str = contract.NAMESPACE) -> None:
    """Health pods and DaemonSets of one namespace, kubelet Leases and the orders to read, nodes to read and to kick;
    what is written for people: the nodes' condition, Events, the Lease of who writes. Nothing else."""
    for name in (namespace, contract.NAMESPACE_NODE_LEASE):
        api.create_unless_there("/api/v1/namespaces", {"metadata": {"name": name}})
    read = ["get", "list", "watch"]
    lease = _rule("coordination.k8s.io", "leases", read)
    _role(api, contract.NAMESPACE_NODE_LEASE, contract.NAME_EXTENDER, EXTENDER, [lease])
    orders = {**_rule("", "configmaps", read), "resourceNames": ["readygate-orders"]}
    leader = _rule("coordination.k8s.io", "leases", [*read, "create", "update"])  # and the agents' heartbeats
    seen = [_rule("", "pods", read), _rule("apps", "daemonsets", read), orders]
    _role(api, namespace, contract.NAME_EXTENDER, EXTENDER, [*seen, leader])
    nodes = [_rule("", "nodes", [*read, "patch"]), _rule("", "nodes/status", ["patch"])]
    _role(api, None, contract.NAME_EXTENDER, EXTENDER, [*nodes, _rule("", "events", ["create"])])


def grant_agent(api: Api, *, namespace: str = contract.NAMESPACE) -> None:
    """What the playbooks give an agent in mode pod: to write its condition. (There a policy confines it to its pod.)"""
    _role(api, namespace, contract.NAME_AGENT, AGENT, [_rule("", "pods/status", ["patch"])])


def _rule(group: str, resource: str, verbs: list[str]) -> Object:
    return {"apiGroups": [group], "resources": [resource], "verbs": verbs}


def _role(api: Api, namespace: str | None, name: str, user: str, rules: list[Object]) -> None:
    """A role and its binding to the user; cluster-wide without a namespace."""
    kind = "Role" if namespace else "ClusterRole"
    base = f"{_RBAC}/namespaces/{namespace}" if namespace else _RBAC
    metadata = {"name": name}
    api.create(f"{base}/{kind.lower()}s", {"metadata": metadata, "rules": rules})
    api.create(
        f"{base}/{kind.lower()}bindings",
        {
            "metadata": metadata,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
        },
    )
