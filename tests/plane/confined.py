"""Agent, extender and tenants under the playbooks' policies, on the real API server.

Tokens are real ones, bound to a pod or to none, as they are on a host.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from kube import contract
from kube.media_types import MERGE_PATCH
from tests.plane.cluster import Cluster
from tests.plane.writes import ELSEWHERE, NS, Write
from tests.playbooks.rendering import ADMIN_SERVER, objects, plain
from tools.kit.waiting import wait_until
from tools.testbed.plane import identities
from tools.testbed.shared.api import Api, ApiError, Object
from tools.testbed.shared.bare import pod_spec

BASE = "/apis/admissionregistration.k8s.io/v1"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
PATHS = {
    "ValidatingAdmissionPolicy": f"{BASE}/validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": f"{BASE}/validatingadmissionpolicybindings",
}
# All that a policy of ours might be asked about, so that it is the policies that say no.
EVERYTHING = [
    {
        "apiGroups": [""],
        "resources": ["pods", "pods/status", "pods/exec", "pods/ephemeralcontainers", "pods/resize"],
        "verbs": ["*"],
    },
    {"apiGroups": [""], "resources": ["nodes", "nodes/status", "configmaps", "secrets"], "verbs": ["*"]},
    {"apiGroups": [""], "resources": ["serviceaccounts/token", "replicationcontrollers"], "verbs": ["*"]},
    {"apiGroups": ["apps", "batch"], "resources": ["*"], "verbs": ["*"]},
]
USE = [
    {"apiGroups": [""], "resources": ["serviceaccounts"], "resourceNames": [contract.NAME_EXTENDER], "verbs": ["use"]}
]


@dataclass(frozen=True)
class Confined:
    """actors: an API client each; own: the pod of the agent, other: another health pod; node: of the first."""

    actors: dict[str, Api]
    own: str
    other: str
    node: str

    def refused(self, write: Write) -> str:
        """In whose words; "" if it was taken, or failed for another reason than that."""
        api = self.actors[write.actor]
        try:
            if write.method == "PATCH":
                api.patch(f"{write.path}?dryRun=All", write.body)
            else:
                api.create(f"{write.path}{'' if 'exec?' in write.path else '?dryRun=All'}", write.body)
        except ApiError as e:
            if e.status in (403, 422):
                return e.message
            if "exec?" not in write.path:
                raise
        return ""


def token(cluster: Cluster, account: str, pod: Object | None = None, *, namespace: str = NS) -> Api:
    """A client with a token of the account, bound to the pod."""
    spec: Object = {"expirationSeconds": 3600}
    if pod is not None:
        bound = {"kind": "Pod", "apiVersion": "v1", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
        spec["boundObjectRef"] = bound
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    said = cluster.api.create(f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token", body)
    return Api(cluster.plane.server, ca=cluster.plane._authority.certificate, token=said["status"]["token"])


def impersonated(cluster: Cluster, user: str, *groups: str) -> Api:
    plane = cluster.plane
    api = Api(plane.server, ca=plane._authority.certificate, token=plane.token_of(identities.ADMIN))
    api._pool.headers.update({"Impersonate-User": user} | ({"Impersonate-Group": groups[0]} if groups else {}))
    return api


def unless_there(cluster: Cluster, path: str, body: Object, made: list[str]) -> None:
    cluster.api.create_unless_there(path, body)
    made.append(f"{path}/{body['metadata']['name']}")


def grant(cluster: Cluster, name: str, user: str, rules: list[Object], made: list[str]) -> None:
    unless_there(cluster, f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": rules}, made)
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    }
    unless_there(cluster, f"{RBAC}/clusterrolebindings", binding, made)


def bound_by(cluster: Cluster, user: str, role: str, made: list[str]) -> Api:
    """A client of the user, to whom a RoleBinding gives the ClusterRole in readygate's namespace."""
    binding = {
        "metadata": {"name": f"tried-{user.replace(':', '-')}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    }
    unless_there(cluster, f"{RBAC}/namespaces/{NS}/rolebindings", binding, made)
    return impersonated(cluster, user)


def refused(api: Api, method: str, path: str, body: Object | None = None) -> str:
    """The words of the refusal, "" if the write is taken. A dry run."""
    form = MERGE_PATCH if method == "PATCH" else "application/json"
    try:
        api.request(method, f"{path}{'&' if '?' in path else '?'}dryRun=All", body, content_type=form)
    except ApiError as e:
        if e.status in (403, 422):
            return e.message
        raise
    return ""


def running(cluster: Cluster, account: str, node: str, made: list[str]) -> Object:
    """A pod of the account on the node."""
    path = f"/api/v1/namespaces/{NS}/pods"
    name = f"tried-{account}"
    cluster.api.create(
        path, {"metadata": {"name": name}, "spec": {**pod_spec(), "nodeName": node, "serviceAccountName": account}}
    )
    made.append(f"{path}/{name}?gracePeriodSeconds=0")
    conditions = [{"type": kind, "status": "True"} for kind in ("Ready", "ContainersReady", "Initialized")]
    return cluster.api.patch(f"{path}/{name}/status", {"status": {"phase": "Running", "conditions": conditions}})


@contextlib.contextmanager
def confine(cluster: Cluster) -> Iterator[Confined]:
    """Agent, extender, tenant and deployer under the policies of the playbooks; what it makes is deleted at its end."""
    made: list[str] = []
    nodes = cluster.add_nodes(2)
    cluster.api.patch(f"/api/v1/nodes/{nodes[0]}", {"metadata": {"annotations": {"there": "before"}}})
    accounts = f"/api/v1/namespaces/{NS}/serviceaccounts"
    cluster.add_health_pods(nodes, ready=True)
    for name in (contract.NAME_AGENT, contract.NAME_EXTENDER, "readygate-tried"):
        unless_there(cluster, accounts, {"metadata": {"name": name}}, made)
    unless_there(
        cluster, f"/api/v1/namespaces/{ELSEWHERE}/serviceaccounts", {"metadata": {"name": "readygate-tried"}}, made
    )
    writes_own = [{"apiGroups": [""], "resources": ["pods/status"], "verbs": ["patch"]}]
    grant(cluster, "tried-agent", identities.AGENT, writes_own, made)
    grant(cluster, "tried-tenant", "tenant", EVERYTHING, made)
    grant(cluster, "tried-deployer", "deployer", EVERYTHING + USE, made)
    sent = objects("readygate_agent", {"readygate_image": "i", "readygate_agent_heartbeat": True}) | objects(
        "readygate_extender", {"readygate_image": "i"} | ADMIN_SERVER
    )
    for (kind, _, _), one in sent.items():
        if kind in PATHS:
            unless_there(cluster, PATHS[kind], plain(one), made)
    agent, extender = (
        running(cluster, account, nodes[0], made) for account in (contract.NAME_AGENT, contract.NAME_EXTENDER)
    )
    own, other = agent["metadata"]["name"], cluster.health_pods[nodes[1]].name
    actors = {
        "agent": token(cluster, contract.NAME_AGENT, agent),
        "agent without a pod": token(cluster, contract.NAME_AGENT),
        "extender's pod": token(cluster, contract.NAME_EXTENDER, extender),
        "extender's host": token(cluster, contract.NAME_EXTENDER),
        "tenant": impersonated(cluster, "tenant"),
        "deployer": impersonated(cluster, "deployer"),
    }
    found = Confined(actors, own, other, nodes[0])
    try:
        in_force = (
            Write("agent", "PATCH", f"/api/v1/namespaces/{NS}/pods/{own}/status", {"status": {"reason": "x"}}, False),
            Write("extender's host", "PATCH", f"/api/v1/nodes/{nodes[0]}", {"metadata": {"labels": {"a": "b"}}}, False),
            Write("extender's host", "PATCH", f"/api/v1/nodes/{nodes[0]}/status", {"status": {"phase": "x"}}, False),
            Write(
                "tenant", "POST", f"/api/v1/namespaces/{NS}/serviceaccounts/readygate-tried/token", {"spec": {}}, False
            ),
        )
        for write in in_force:
            wait_until(lambda write=write: found.refused(write), f"in force: {write}", timeout_s=30)
        yield found
    finally:
        for path in reversed(made):
            cluster.api.delete(path)
