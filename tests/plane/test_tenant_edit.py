"""What the ClusterRole `edit` of Kubernetes may do in readygate's namespace, and what an operator may.

The roles are the real ones: `edit` is the API server's own, `readygate-operator` is the chart's.
"""

import itertools
from collections.abc import Iterator

import pytest

from extender.outlets.kick import ANNOTATION_KICK
from kube import contract, paths
from tests.plane.cluster import Cluster
from tests.plane.confined import RBAC, Confined, bound_by, grant, impersonated, refused, token, unless_there
from tests.plane.load import ask
from tests.plane.writes import ELSEWHERE, NS
from tests.playbooks.rendering import ADMIN_SERVER, objects, plain
from tools.kit.waiting import wait_until
from tools.testbed.plane import identities
from tools.testbed.shared.api import Api, Object, condition

OPERATOR = "readygate-operator"
ORDERS = f"/api/v1/namespaces/{NS}/configmaps/readygate-orders"
MAPS = f"/api/v1/namespaces/{NS}/configmaps"
PODS = f"/api/v1/namespaces/{NS}/pods"
LEASES = paths.leases(NS)
HEALTH_POD = PODS + "/{health_pod}"
HEARTBEAT, LEADER = "tried-node", contract.NAME_EXTENDER
HOLD = {"data": {"all": '{"order":"hold"}'}}
OWN_STATUS = {"status": {"conditions": [{"type": contract.CONDITION_NODE_HEALTHY, "status": "True"}]}}


def lease(name: str, holder: str) -> Object:
    return {"metadata": {"name": name}, "spec": {"holderIdentity": holder, "leaseDurationSeconds": 12}}


@pytest.fixture(scope="module")
def cluster(policed: Cluster) -> Cluster:
    return policed


@pytest.fixture
def actors(confined: Confined, cluster: Cluster) -> Iterator[dict[str, Api]]:
    """An editor, an operator and a deployer; beside the orders, a heartbeat, the Lease and other objects of ours."""
    made: list[str] = []
    sent = objects("readygate_extender", {"readygate_image": "i"} | ADMIN_SERVER)
    unless_there(cluster, f"{RBAC}/clusterroles", plain(sent["ClusterRole", "", OPERATOR]), made)
    unless_there(cluster, MAPS, {"metadata": {"name": "readygate-orders"}}, made)
    unless_there(cluster, MAPS, {"metadata": {"name": "readygate-agent-0123456789"}}, made)
    unless_there(cluster, MAPS, {"metadata": {"name": "another"}}, made)
    unless_there(cluster, LEASES, lease(HEARTBEAT, HEARTBEAT), made)
    unless_there(cluster, LEASES, lease(LEADER, "host_0"), made)
    unless_there(cluster, LEASES, lease("another", "host_0"), made)
    leases = [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["*"]}]
    grant(cluster, "tried-leases", "deployer", leases, made)
    found = {
        "editor": bound_by(cluster, "editor", "edit", made),
        "operator": bound_by(cluster, "operator", OPERATOR, made),
        "deployer": confined.actors["deployer"],
        "collector": impersonated(
            cluster,
            "system:serviceaccount:kube-system:generic-garbage-collector",
            "system:serviceaccounts:kube-system",
        ),
    }
    try:
        wait_until(lambda: refused(found["editor"], "PATCH", ORDERS, HOLD), "policy in force", timeout_s=90)
        yield found
    finally:
        for path in reversed(made):
            cluster.api.delete(path)


DECIDES = "orders.readygate.dev"
RUNS = "may use the service account"
ORDER_WRITES = {
    "replaced": ("PUT", ORDERS, {"metadata": {"name": "readygate-orders"}} | HOLD),
    "patched": ("PATCH", ORDERS, HOLD),
    "deleted": ("DELETE", ORDERS, None),
    "created": ("POST", MAPS, {"metadata": {"name": "readygate-orders"}} | HOLD),  # the last: they are deleted before
}


def test_orders_are_written_by_operators_and_not_by_edit(actors, cluster):
    found = {}
    for write, request in ORDER_WRITES.items():
        if write == "created":
            cluster.api.delete(ORDERS)
        found[write] = {name: refused(actors[name], *request) for name in ("editor", "operator", "deployer")}
    assert set() == {words for each in found.values() for name, words in each.items() if name != "editor"} - {""}
    for words in (each["editor"] for each in found.values()):
        assert DECIDES in words
        assert f"ClusterRole {OPERATOR}" in words


REFUSED_TO_EDIT = {
    "a collection": ("DELETE", f"{MAPS}?fieldSelector=metadata.name=readygate-orders", None, DECIDES),
    "a heartbeat, created": ("POST", LEASES, lease("new-node", "new-node"), DECIDES),
    "a heartbeat, renewed": ("PATCH", f"{LEASES}/{HEARTBEAT}", {"spec": {"renewTime": None}}, DECIDES),
    "its holder changed": ("PATCH", f"{LEASES}/{HEARTBEAT}", {"spec": {"holderIdentity": "x"}}, DECIDES),
    "made a heartbeat": ("PATCH", f"{LEASES}/another", {"spec": {"holderIdentity": "another"}}, DECIDES),
    "a heartbeat, deleted": ("DELETE", f"{LEASES}/{HEARTBEAT}", None, DECIDES),
    "all Leases": ("DELETE", LEASES, None, DECIDES),
    "the leader": ("PATCH", f"{LEASES}/{LEADER}", {"spec": {"holderIdentity": "x"}}, DECIDES),
    "the Lease of the leader": ("DELETE", f"{LEASES}/{LEADER}", None, DECIDES),
    "a configuration": ("DELETE", f"{MAPS}/readygate-agent-0123456789", None, RUNS),
    "the DaemonSet": ("DELETE", paths.daemon_set(NS, contract.NAME_AGENT), None, RUNS),
    "an account": ("DELETE", f"/api/v1/namespaces/{NS}/serviceaccounts/{LEADER}", None, RUNS),
    "its label": ("PATCH", HEALTH_POD, {"metadata": {"labels": {contract.LABEL_NAME: "x"}}}, RUNS),
    "its owner": ("PATCH", HEALTH_POD, {"metadata": {"ownerReferences": None}}, RUNS),
    "its speaker": ("PATCH", HEALTH_POD, {"metadata": {"annotations": {"readygate.dev/speaker": "node"}}}, RUNS),
}


def test_edit_writes_nothing_in_the_namespace_that_decides(actors, confined):
    found = {}
    for what, (method, path, body, words) in REFUSED_TO_EDIT.items():
        refusal = refused(actors["editor"], method, path.format(health_pod=confined.other), body)
        if words not in refusal:
            found[what] = refusal
    assert {} == found


TAKEN = {
    "another ConfigMap": ("editor", "PATCH", f"{MAPS}/another", {"data": {"a": "b"}}),
    "another ConfigMap, deleted": ("editor", "DELETE", f"{MAPS}/another", None),
    "another Lease": ("editor", "PATCH", f"{LEASES}/another", {"spec": {"holderIdentity": "x"}}),
    "another Lease, deleted": ("editor", "DELETE", f"{LEASES}/another", None),
    "an annotation": ("editor", "PATCH", HEALTH_POD, {"metadata": {"annotations": {"a": "b"}}}),
    "a controller collects a heartbeat": ("collector", "DELETE", f"{LEASES}/{HEARTBEAT}", None),
    "a deployer deletes the Lease": ("deployer", "DELETE", f"{LEASES}/{LEADER}", None),
    "and a configuration": ("deployer", "DELETE", f"{MAPS}/readygate-agent-0123456789", None),
}


def test_what_decides_nothing_is_written_as_rbac_says(actors, confined):
    found = {}
    for what, (actor, method, path, body) in TAKEN.items():
        refusal = refused(actors[actor], method, path.format(health_pod=confined.other), body)
        # RBAC of this plane gives the collector nothing.
        if DECIDES in refusal or RUNS in refusal or (refusal and actor != "collector"):
            found[what] = refusal
    assert {} == found


def test_edit_deletes_a_health_pod_and_that_is_all(actors, confined):
    assert refused(actors["editor"], "DELETE", f"{PODS}/{confined.other}") == ""


@pytest.mark.usefixtures("actors", "wide")
def test_edit_that_impersonates_the_extender_gets_no_further_than_the_extender(confined, cluster):
    """Kubernetes lets `edit` impersonate the accounts of the namespace. Admission sees the account alone."""
    made: list[str] = []
    account = f"system:serviceaccount:{ELSEWHERE}:readygate-tried"
    bound_by(cluster, account, "edit", made)
    node = f"/api/v1/nodes/{confined.node}"
    found = {}
    try:
        for name, path, body in (
            ("kick", node, {"metadata": {"annotations": {ANNOTATION_KICK: "1"}}}),
            ("cordon", node, {"spec": {"unschedulable": True}}),
            ("label", node, {"metadata": {"labels": {"a": "b"}}}),
            ("Lease", f"{LEASES}/{LEADER}", {"spec": {"holderIdentity": "x"}}),
            ("heartbeat", f"{LEASES}/{HEARTBEAT}", {"spec": {"renewTime": None}}),
            ("orders", ORDERS, HOLD),
        ):
            editor = token(cluster, "readygate-tried", namespace=ELSEWHERE)
            editor._pool.headers["Impersonate-User"] = identities.EXTENDER
            wait_until(lambda editor=editor: "impersonate" not in refused(editor, "PATCH", ORDERS, HOLD), "the role")
            found[name] = refused(editor, "PATCH", path, body) == ""
            editor._pool.headers["Impersonate-User"] = identities.AGENT
            assert refused(editor, "PATCH", f"{PODS}/{confined.own}/status", OWN_STATUS), (
                "a token of the pod is missing"
            )
    finally:
        for path in reversed(made):
            cluster.api.delete(path)
    assert {"kick", "Lease"} == {name for name, taken in found.items() if taken}


# What the tokens of agent and extender could put text into, beside conditions and annotations (test_policy_changes.py).

EVENTS = "/api/v1/namespaces/default/events"


def event(**more: object) -> Object:
    about = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}
    own = {"source": {"component": LEADER}, "reportingComponent": LEADER, "type": "Warning", "reason": "NodeClosed"}
    return {"metadata": {"name": "n.1"}, "involvedObject": about, "message": "m" * 1000} | own | more


LONG = "x" * 200_000
AGENT, HOST = "agent", "extender's host"


TEXTS = {
    "an Event of the extender": (HOST, "POST", EVENTS, event(), True),
    "a long message": (HOST, "POST", EVENTS, event(message="m" * 1001), False),
    "a long reason": (HOST, "POST", EVENTS, event(reason="R" * 65), False),
    "in the kubelet's name": (HOST, "POST", EVENTS, event(source={"component": "kubelet"}), False),
    "reported by the kubelet": (HOST, "POST", EVENTS, event(reportingComponent="kubelet"), False),
    "a long type": (HOST, "POST", EVENTS, event(type=LONG), False),
    "a long name": (HOST, "POST", EVENTS, event(metadata={"name": "n" * 254}), False),
    "a long name to generate from": (HOST, "POST", EVENTS, event(metadata={"generateName": "n" * 254}), False),
    "an action": (HOST, "POST", EVENTS, event(action=LONG), False),
    "annotations": (HOST, "POST", EVENTS, event(metadata={"name": "n.1", "annotations": {"a": LONG}}), False),
    "a heartbeat by the extender": (HOST, "POST", LEASES, lease("new-node", "new-node"), False),
    "or renewed": (HOST, "PATCH", f"{LEASES}/{HEARTBEAT}", {"spec": {"renewTime": None}}, False),
    "its Lease": (HOST, "PATCH", f"{LEASES}/{LEADER}", {"spec": {"holderIdentity": "h_1"}}, True),
    "long": (HOST, "PATCH", f"{LEASES}/{LEADER}", {"spec": {"holderIdentity": "h" * 101}}, False),
    "annotated": (HOST, "PATCH", f"{LEASES}/{LEADER}", {"metadata": {"annotations": {"a": LONG}}}, False),
    "labelled": (HOST, "PATCH", f"{LEASES}/{LEADER}", {"metadata": {"labels": {"a": "b"}}}, False),
    "an agent's heartbeat": (AGENT, "POST", LEASES, "own", True),
    "an annotated heartbeat": (AGENT, "POST", LEASES, "own, annotated", False),
    "a heartbeat with another owner": (AGENT, "POST", LEASES, "own, of another owner", False),
    "a heartbeat whose owner has a long uid": (AGENT, "POST", LEASES, "own, of a long owner", False),
    "a heartbeat with another field": (AGENT, "POST", LEASES, "own, with transitions", False),
}


@pytest.mark.usefixtures("wide", "actors")
def test_text_of_agent_and_extender_is_bounded(confined):
    own = lease(confined.node, confined.node)
    beats = {
        "own": own,
        "own, annotated": own | {"metadata": own["metadata"] | {"annotations": {"a": LONG}}},
        "own, of another owner": own | {"metadata": own["metadata"] | {"ownerReferences": [POD_OWNER]}},
        "own, of a long owner": own | {"metadata": own["metadata"] | {"ownerReferences": [node_owner(confined.node)]}},
        "own, with transitions": own | {"spec": own["spec"] | {"leaseTransitions": 1}},
    }
    found = {}
    for what, (actor, method, path, body, allowed) in TEXTS.items():
        refusal = refused(confined.actors[actor], method, path, beats[body] if isinstance(body, str) else body)
        if allowed != (refusal == "") or (refusal and "the readygate " not in refusal):
            found[what] = refusal or "taken"
    assert {} == found


def node_owner(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Node", "name": name, "uid": LONG}


POD_OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}


@pytest.fixture
def wide(cluster: Cluster) -> Iterator[None]:
    """RBAC lets agent and extender write Leases and Events as they like, so that it is the policies that refuse."""
    made: list[str] = []
    rules = [
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]},
    ]
    for name, user in (("agent", identities.AGENT), ("extender", identities.EXTENDER)):
        grant(cluster, f"tried-leases-of-{name}", user, rules, made)
    yield
    for path in reversed(made):
        cluster.api.delete(path)


def test_the_extender_does_all_its_writes_under_its_policies(confined: Confined, cluster: Cluster):
    """With a token of its account: condition, Events, Lease and kick."""
    node = confined.node
    extender = cluster.start_extender(outlets={"nodeCondition": {"enabled": True}, "events": {"enabled": True}})
    assert token(cluster, LEADER)  # the account is there
    path = f"/api/v1/nodes/{node}"

    def says(status: str) -> bool:
        return condition(cluster.api.get(path), contract.CONDITION_NODE_HEALTHY).get("status") == status

    wait_until(lambda: says("True"), "the condition", timeout_s=90)
    cluster.health_pods[node].say(ready=False)
    wait_until(lambda: says("False"), "the condition of a closed node", timeout_s=90)
    assert ask(extender.port, [node])["FailedAndUnresolvableNodes"]
    cluster.health_pods[node].say(ready=True)
    # Each time as another pod: a kick from before the opening settles what was refused until then, and a pod that finds
    # the node open waits for none.
    numbers = itertools.count()

    def is_open() -> bool:
        pod = {"metadata": {"name": f"asks-{next(numbers)}", "namespace": "default"}, "spec": {}}
        return not ask(extender.port, [node], pod=pod)["FailedAndUnresolvableNodes"]

    wait_until(is_open, "it opens", timeout_s=90)
    wait_until(lambda: says("True"), "the condition of a node that opened", timeout_s=90)
    wait_until(lambda: ANNOTATION_KICK in cluster.api.get(path)["metadata"]["annotations"], "the kick", timeout_s=90)

    def reasons() -> set[str]:
        return {one["reason"] for one in cluster.api.items(EVENTS) if one["involvedObject"]["name"] == node}

    wait_until(lambda: {"NodeClosed", "NodeOpened"} <= reasons(), lambda: f"Events: {reasons()}", timeout_s=90)
    assert cluster.api.get(f"{LEASES}/{LEADER}")["spec"]["holderIdentity"]
    assert "forbidden" not in extender.process.text()
    cluster.api.delete(f"{LEASES}/{LEADER}")
