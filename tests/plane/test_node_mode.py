"""Mode node against the real API server: Node authorizer, NodeRestriction, and the policy that confines the agent.

The kubelet is the test: its certificate is real, its pods are bound and say what the test lets them say. It is one that
has stopped as long as it says nothing.
"""

import http.server
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import urllib3

from agent.identity.token import BoundToken
from agent.report.condition import Condition, ConditionPublisher
from agent.wire.condition import ANNOTATION_SPEAKER
from extender.policy import reasons
from kube import auth, contract, paths
from kube.client import Client
from kube.errors import CredentialsInvalid, Forbidden, Invalid, KubeError
from kube.media_types import MERGE_PATCH, STRATEGIC_MERGE_PATCH
from kube.times import format_micro_time
from tests.charts import rendering as chart
from tests.plane.cluster import Cluster
from tools.kit.ports import free_port
from tools.kit.programs import Program
from tools.kit.scope import WHOLE
from tools.kit.waiting import wait_until
from tools.testbed.plane import identities
from tools.testbed.plane.programs import Extender
from tools.testbed.shared.api import Object, condition

NS = contract.NAMESPACE
PODS = f"/api/v1/namespaces/{NS}/pods"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
POLICIES = {
    "ValidatingAdmissionPolicy": f"{ADMISSION}/validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": f"{ADMISSION}/validatingadmissionpolicybindings",
}
LEASES = paths.leases(contract.NAMESPACE_NODE_LEASE)
LIMIT_S = 90.0
# period 1 s, three failures, timeout 1 s
PROBE = {"periodSeconds": 1, "failureThreshold": 3, "timeoutSeconds": 1}
BUDGET_S = 4.0


class Port:
    """An HTTP port on loopback that answers as it is told: 200, 500, or not at all (None)."""

    def __init__(self) -> None:
        owner = self
        self.status: int | None = 200
        self.changed_at = 0.0

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if owner.status is None:
                    time.sleep(3)
                    return
                self.send_response(owner.status)
                self.end_headers()

            def log_message(self, *_: object) -> None: ...

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.number = self._server.server_port
        threading.Thread(target=self._server.serve_forever, name="port", daemon=True).start()

    def turn(self, status: int | None) -> None:
        self.status, self.changed_at = status, time.monotonic()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@dataclass
class Node:
    """One node with a health pod, the kubelet's certificate, and what its ports say. `agent`: in mode node. `other`: a
    node that is not its own."""

    cluster: Cluster
    name: str
    pod: Object
    certificate: Path
    key: Path
    app: Port
    kubelet: Port
    agent: Program
    other: str
    renews: threading.Event = field(default_factory=threading.Event)

    @property
    def path(self) -> str:
        return f"{PODS}/{self.pod['metadata']['name']}"

    def connection(self) -> auth.Connection:
        plane = self.cluster.plane
        return auth.by_certificate(
            plane.server, authority=plane._authority.certificate, certificate=self.certificate, key=self.key
        )

    def client(self) -> Client:
        return Client(self.connection(), user_agent="t")

    def token_client(self, pod: Object | None = None) -> Client:
        """As whoever has stolen the certificate gets a token for a pod of the node."""
        meta = (pod or self.pod)["metadata"]
        token = BoundToken(
            self.client(), namespace=NS, account=contract.NAME_AGENT, pod_name=meta["name"], pod_uid=meta["uid"]
        )
        plane = self.cluster.plane
        return Client(
            auth.by_credentials(plane.server, authority=plane._authority.certificate, credentials=token), user_agent="t"
        )

    def condition(self) -> tuple[str, str]:
        """Status and reason of ours."""
        found = condition(self.cluster.api.get(self.path), contract.CONDITION_NODE_HEALTHY) or {}
        return found.get("status", ""), found.get("reason", "")

    def wait(self, status: str, reason: str, *, timeout_s: float = LIMIT_S) -> None:
        wait_until(
            lambda: self.condition() == (status, reason),
            lambda: f"{status} {reason}, is {self.condition()}: {self.agent.get('/readyz')}",
            timeout_s=timeout_s,
        )

    def annotate(self, speaker: str | None) -> None:
        self.cluster.api.patch(self.path, {"metadata": {"annotations": {ANNOTATION_SPEAKER: speaker}}})


def made_pod(cluster: Cluster, node: str, name: str, port: int) -> Object:
    """Bound, running and ready, as a kubelet says it."""
    probe = {"httpGet": {"host": "127.0.0.1", "port": port, "path": "/"}, **PROBE}
    spec = {
        "nodeName": node,
        "serviceAccountName": contract.NAME_AGENT,
        "terminationGracePeriodSeconds": 0,
        "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "main", "image": "registry.invalid/none:1", "readinessProbe": probe}],
    }
    labels = {contract.LABEL_NAME: contract.NAME_AGENT}
    metadata = {"name": name, "labels": labels, "annotations": {ANNOTATION_SPEAKER: "node"}}
    cluster.api.create(PODS, {"metadata": metadata, "spec": spec})
    running = {
        "name": "main",
        "ready": True,
        "started": True,
        "restartCount": 0,
        "image": "none",
        "imageID": "",
        "containerID": f"test://{name}",
        "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
    }
    conditions = [{"type": kind, "status": "True"} for kind in ("Ready", "ContainersReady", "Initialized")]
    status = {"phase": "Running", "conditions": conditions, "containerStatuses": [running], "podIP": "127.0.0.1"}
    return cluster.api.patch(f"{PODS}/{name}/status", {"status": status})


@contextmanager
def granted(cluster: Cluster) -> Iterator[None]:
    """The agent's account, what it may do, and the policy that leaves it one condition of its own pod."""
    cluster.plane.wait_namespace(NS)
    made: list[str] = []
    accounts = f"/api/v1/namespaces/{NS}/serviceaccounts"
    cluster.api.create_unless_there(accounts, {"metadata": {"name": contract.NAME_AGENT}})
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NS}"
    for (kind, _, name), body in chart.objects(given=['image.repository="readygate"', "agent.heartbeat=true"]).items():
        found = {"Role": f"{rbac}/roles", "RoleBinding": f"{rbac}/rolebindings", **POLICIES}.get(kind)
        if found is not None and name.startswith(contract.NAME_AGENT):
            cluster.api.create_unless_there(found, body)
            made.append(f"{found}/{name}")
    try:
        yield
    finally:
        for path in reversed(made):
            cluster.api.delete(path)


@contextmanager
def renewing(cluster: Cluster, node: str, renews: threading.Event) -> Iterator[None]:
    """The Lease of a kubelet, renewed each second while `renews` is set."""
    stopping = threading.Event()

    def body() -> Object:
        spec = {"holderIdentity": node, "leaseDurationSeconds": 40, "renewTime": format_micro_time(time.time())}
        return {"metadata": {"name": node}, "spec": spec}

    def run() -> None:
        while not stopping.wait(1.0):
            if renews.is_set():
                cluster.api.patch(f"{LEASES}/{node}", body())

    cluster.plane.wait_namespace(contract.NAMESPACE_NODE_LEASE)
    cluster.api.create(LEASES, body())
    thread = threading.Thread(target=run, name="kubelet", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()
        cluster.api.delete(f"{LEASES}/{node}")


@pytest.fixture
def node(cluster: Cluster, tmp_path: Path) -> Iterator[Node]:
    """With the agent on it, which has said that all is well."""
    name, other = cluster.add_nodes(2)
    app, kubelet = Port(), Port()
    identity = identities.node(name)
    certificate, key = cluster.plane._authority.client(identity.user, identity.groups)
    with granted(cluster):
        pod = made_pod(cluster, name, f"{name}-health", app.number)
        settings = {
            "mode": "node",
            "listen": {"address": "127.0.0.1", "port": free_port()},
            "node": {
                "name": name,
                "server": cluster.plane.server,
                "certificateAuthority": str(cluster.plane._authority.certificate),
                "certificate": str(certificate),
                "key": str(key),
                "healthPods": [{"namespace": NS, "daemonSet": None}],
                "kubeletHealthz": f"http://127.0.0.1:{kubelet.number}/healthz",
                "disagreementSeconds": 4,
                "heartbeat": {"periodSeconds": 1},
            },
        }
        agent = Program("agent", settings, tmp_path, name=f"agent-{name}", launch=cluster.plane.run.process)
        found = Node(cluster, name, pod, certificate, key, app, kubelet, agent, other)
        found.renews.set()
        with renewing(cluster, name, found.renews):
            try:
                agent.start()
                found.wait("True", "ChecksPassed")
                yield found
            finally:
                agent.process.stop()
                for path in [p["metadata"]["name"] for p in cluster.api.get(PODS)["items"]]:
                    cluster.api.delete(f"{PODS}/{path}", grace_s=0)
                app.close()
                kubelet.close()


def test_a_probe_that_fails_beside_a_stopped_kubelet_closes_within_its_budget_and_opens_again(
    node: Node, artefacts: Path, say: Callable[[str], None]
) -> None:
    node.app.turn(500)
    node.wait("False", "ProbesFailed")
    closed_s = time.monotonic() - node.app.changed_at
    if WHOLE:
        assert closed_s <= 2 * BUDGET_S
    node.wait("False", "KubeletDisagrees")
    node.app.turn(200)
    node.wait("True", "ChecksPassed")
    opened_s = time.monotonic() - node.app.changed_at
    figures = {"budget_s": BUDGET_S, "closed_s": round(closed_s, 2), "opened_s": round(opened_s, 2)}
    (artefacts / "node_mode.json").write_text(json.dumps(figures))
    say(f"a failing probe closed its node after {closed_s:.1f} s of {BUDGET_S:g} s; it opened after {opened_s:.1f} s")


def test_a_kubelet_that_is_silent_closes_and_one_that_is_heard_again_opens(node: Node) -> None:
    node.kubelet.turn(None)
    node.renews.clear()
    node.wait("False", "KubeletSilent", timeout_s=LIMIT_S)
    node.kubelet.turn(200)
    node.renews.set()
    node.wait("True", "ChecksPassed")


def test_an_agent_that_dies_closes_its_node_though_its_kubelet_lives(
    node: Node, artefacts: Path, say: Callable[[str], None]
) -> None:
    """Nobody can change the words of its health pod any more, so its silence has to do."""
    wait_until(lambda: node.name in node.cluster.leases(NS), "its first beat", timeout_s=LIMIT_S)
    gate = {"healthPods": {"namespace": NS, "labelSelector": f"{contract.LABEL_NAME}={contract.NAME_AGENT}"}}
    extender = node.cluster.start_extender(gate=gate, heartbeat={"limitSeconds": 0, "agents": {"limitSeconds": 8}})
    wait_until(lambda: refused_by(extender, node.name) == {}, "it is open", timeout_s=LIMIT_S)
    died = time.monotonic()
    node.agent.process.kill()
    wait_until(
        lambda: refused_by(extender, node.name) == {node.name: reasons.CLOSED_UNKNOWN}, "it closes", timeout_s=LIMIT_S
    )
    took_s = time.monotonic() - died
    (artefacts / "dead_agent.json").write_text(json.dumps({"closed_after_s": round(took_s, 2)}))
    say(f"a dead agent closed its node after {took_s:.1f} s")
    node.agent.start()
    wait_until(lambda: refused_by(extender, node.name) == {}, "it opens again", timeout_s=LIMIT_S)


def refused_by(extender: Extender, name: str) -> dict[str, str] | None:
    """What the extender says of the node; None where it does not answer."""
    body = json.dumps({"Pod": {}, "Nodes": None, "NodeNames": [name]})
    try:
        reply = urllib3.request("POST", f"{extender.url}/filter", body=body, timeout=2.0, retries=False)
    except urllib3.exceptions.HTTPError:
        return None
    return reply.json()["FailedAndUnresolvableNodes"] or {}


def test_a_health_pod_that_is_replaced_gets_a_token_of_its_own_and_the_last_one_is_dead(node: Node) -> None:
    stolen = node.token_client()
    stolen.patch(f"{node.path}/status", b"{}", content_type=MERGE_PATCH)
    node.cluster.api.delete(node.path, grace_s=0)
    node.pod = made_pod(node.cluster, node.name, node.pod["metadata"]["name"], node.app.number)
    node.wait("True", "ChecksPassed")
    with pytest.raises((KubeError, CredentialsInvalid)):
        stolen.patch(f"{node.path}/status", b"{}", content_type=MERGE_PATCH)


def test_of_two_agents_the_one_speaks_that_the_pod_names_and_never_both(node: Node) -> None:
    """The one in the pod is a publisher with the pod's own token, as in mode pod."""
    meta = node.pod["metadata"]
    inside = ConditionPublisher(
        node.token_client(), namespace=NS, pod_name=meta["name"], pod_uid=meta["uid"], farewell=False
    )
    inside.start()
    try:
        inside.publish(Condition("False", "CheckFailed", "in the pod", "in the pod"))
        wait_until(lambda: inside.silenced, "the one in the pod is silent", timeout_s=LIMIT_S)
        assert (("True", "ChecksPassed"), 0) == (node.condition(), inside.writes)
        node.annotate(None)
        again = ConditionPublisher(
            node.token_client(), namespace=NS, pod_name=meta["name"], pod_uid=meta["uid"], farewell=False
        )
        again.start()
        again.publish(Condition("False", "CheckFailed", "in the pod", "in the pod"))
        node.wait("False", "CheckFailed")
        node.app.turn(500)  # what the one on the node would say
        wait_until(
            lambda: "ProbesFailed" in node.agent.get("/readyz")[1], "the one on the node sees it", timeout_s=LIMIT_S
        )
        time.sleep(2.0)
        assert ("False", "CheckFailed") == node.condition()
        again.stop()
        node.annotate("node")
        node.wait("False", "KubeletDisagrees")
    finally:
        inside.stop()


def refused(call: Callable[[], object]) -> str:
    """In whose words; "" if it was done."""
    try:
        call()
    except (Forbidden, Invalid, CredentialsInvalid) as e:
        return str(e)
    return ""


def of_condition(kind: str, status: str = "True") -> bytes:
    return json.dumps({"status": {"conditions": [{"type": kind, "status": status}]}}).encode()


def test_who_has_stolen_the_certificate_and_the_token_gets_no_further(node: Node) -> None:
    """Another node's pod, another condition, another Lease, another's token: each refused, in the words of who does."""
    cluster = node.cluster
    other_node = node.other
    other = made_pod(cluster, other_node, f"{other_node}-health", node.app.number)
    second = made_pod(cluster, node.name, f"{node.name}-second", node.app.number)
    names = [one["metadata"]["name"] for one in (other, second)]
    kubelet, token = node.client(), node.token_client()
    ours = of_condition(contract.CONDITION_NODE_HEALTHY)
    wait_until(lambda: node.name in cluster.leases(NS), "its first beat", timeout_s=LIMIT_S)
    lease = json.dumps({"metadata": {"name": other_node}, "spec": {"holderIdentity": other_node}}).encode()

    def patch(client: Client, path: str, body: bytes) -> Callable[[], object]:
        return lambda: client.patch(path, body, content_type=STRATEGIC_MERGE_PATCH)

    tried = {
        "kubelet: another node's pod": patch(kubelet, f"{PODS}/{names[0]}/status", ours),
        "kubelet: a token for another node's pod": lambda: node.token_client(other).get(node.path),
        "kubelet: another node's Lease": lambda: kubelet.create(LEASES, lease),
        "kubelet: a Lease elsewhere": lambda: kubelet.create(paths.leases(NS), lease),
        "kubelet: another Node": patch(kubelet, paths.node_status(other_node), of_condition("Ready", "False")),
        "token: another node's pod": patch(token, f"{PODS}/{names[0]}/status", ours),
        "token: another pod of this node": patch(token, f"{PODS}/{names[1]}/status", ours),
        "token: another condition": patch(token, f"{node.path}/status", of_condition("Ready", "False")),
        "token: the phase": patch(token, f"{node.path}/status", b'{"status": {"phase": "Failed"}}'),
        "token: a label": patch(token, f"{node.path}/status", b'{"metadata": {"labels": {"a": "b"}}}'),
        "token: the kubelet's Lease": patch(token, f"{LEASES}/{node.name}", b'{"spec": {"holderIdentity": "x"}}'),
        "token: another node's heartbeat": lambda: token.create(paths.leases(NS), lease),
        "token: its own in another's name": patch(
            token, f"{paths.leases(NS)}/{node.name}", b'{"spec": {"holderIdentity": "x"}}'
        ),
        "token: the Lease by which extenders choose": lambda: token.create(
            paths.leases(NS), lease.replace(other_node.encode(), contract.NAME_EXTENDER.encode())
        ),
        "token: the Node": patch(token, paths.node_status(node.name), of_condition("Ready", "False")),
        "token: the pods": lambda: token.get(PODS),
    }
    assert {} == {what: "done" for what, call in tried.items() if not refused(call)}
    assert "" == refused(patch(token, f"{node.path}/status", ours))
