"""What people see of readygate in the cluster, with the real API server: condition and Events of the nodes, by one of
two extenders whatever becomes of it; Events of pods; and that nothing of it stays.
"""

import json
import os
import re
import signal
import statistics
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from kube import contract
from tests.plane.cluster import Cluster
from tools.kit.programs import CHECKOUT
from tools.kit.scope import draws
from tools.kit.waiting import wait_for, wait_until
from tools.testbed.plane.programs import Extender
from tools.testbed.shared.api import condition

pytestmark = pytest.mark.timeout(600)

LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{contract.NAMESPACE}/leases/{contract.NAME_EXTENDER}"
KIND = contract.CONDITION_NODE_HEALTHY
SOON_S = 60.0  # by itself a look a second
BOTH = {"nodeCondition": {"enabled": True}, "events": {"enabled": True}}


@pytest.fixture
def seen(cluster: Cluster) -> Iterator[Cluster]:
    """A cluster whose Lease goes with it."""
    yield cluster
    cluster.api.delete(LEASE)


def says(cluster: Cluster, node: str) -> tuple[str, str]:
    """Status and reason of our condition, "" where there is none."""
    found = condition(cluster.api.get(f"/api/v1/nodes/{node}"), KIND)
    return found.get("status", ""), found.get("reason", "")


def written_at(cluster: Cluster, node: str) -> tuple[str, str]:
    """When our condition was written last, and when it became what it is."""
    found = condition(cluster.api.get(f"/api/v1/nodes/{node}"), KIND)
    return found["lastHeartbeatTime"], found["lastTransitionTime"]


def wait_says(cluster: Cluster, node: str, expected: tuple[str, str], *, timeout_s: float = SOON_S) -> float:
    """The seconds it took."""
    began = time.monotonic()
    wait_until(lambda: says(cluster, node) == expected, lambda: f"{node}: {says(cluster, node)}", timeout_s=timeout_s)
    return time.monotonic() - began


def writer_of(cluster: Cluster, extenders: list[Extender]) -> Extender:
    """The one whose name is in the Lease."""

    def found() -> Extender | None:
        holder = cluster.api.get(LEASE)["spec"].get("holderIdentity") or "-"
        return next((one for one in extenders if f'holder="{holder}"' in one.process.text()), None)

    writer = wait_for(found, timeout_s=SOON_S)
    assert writer is not None
    return writer


def two(cluster: Cluster) -> tuple[Extender, Extender]:
    """Two extenders: who writes, and the other one."""
    extenders = [cluster.start_extender(outlets=BOTH) for _ in range(2)]
    writer = writer_of(cluster, extenders)
    return writer, next(one for one in extenders if one is not writer)


def ready(count: int, cluster: Cluster) -> list[str]:
    nodes = cluster.add_nodes(count)
    cluster.add_health_pods(nodes, ready=True)
    return nodes


def describe(cluster: Cluster, kind: str, name: str) -> str:
    plane = cluster.plane
    command = [plane.kubectl, "--kubeconfig", plane.kubeconfig_for("admin"), "describe", kind, name]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout


def test_kubectl_describe_node_shows_the_condition_and_each_change(seen: Cluster):
    node, other = ready(2, seen)
    seen.start_extender(outlets=BOTH)
    wait_says(seen, node, ("True", "Healthy"), timeout_s=SOON_S)
    seen.health_pods[node].say(ready=False)
    closed_s = wait_says(seen, node, ("False", "HealthPodNotReady"))
    seen.health_pods[node].say(ready=True)
    opened_s = wait_says(seen, node, ("True", "Healthy"))
    assert ("True", "Healthy") == says(seen, other)

    def shown() -> str | None:
        text = describe(seen, "node", node)
        return text if "NodeOpened" in text else None

    text = wait_for(shown, timeout_s=SOON_S) or describe(seen, "node", node)
    print(f"condition written {closed_s:.1f} s and {opened_s:.1f} s after the change")
    assert re.search(rf"{KIND}\s+True\s.*Healthy\s+open at gate health", text), text
    assert re.search(r"Warning\s+NodeClosed\s.*readygate-extender\s+closed: gate health: with a health pod that", text)
    assert re.search(r"Normal\s+NodeOpened\s.*readygate-extender\s+open at gate health", text), text
    assert "Ready " in text, "the kubelet's own condition is as it was"


def test_kubectl_describe_pod_shows_once_that_it_was_refused_everywhere(seen: Cluster):
    nodes = seen.add_nodes(5)
    seen.add_health_pods(nodes, ready=False)
    extender = seen.start_extender(outlets=BOTH)
    seen.use_extender(extender.url, mode="enforce")
    seen.add_pod("refused")
    seen.wait_refused("refused")

    def shown() -> str | None:
        text = describe(seen, "pod", "refused")
        return text if "RefusedOnAllNodes" in text else None

    text = wait_for(shown, timeout_s=SOON_S) or describe(seen, "pod", "refused")
    names = ", ".join(sorted(nodes)[:3])
    assert (
        f"readygate refused all 5 nodes that kube-scheduler asked about: gate health: {names} and 2 more: with a"
        in text
    )
    assert "See: readygate why pod default/refused" in text
    for _ in range(10):  # each is an event that wakes it
        seen.health_pods[nodes[0]].say(ready=False, since="2026-01-01T00:00:01Z")
        seen.health_pods[nodes[0]].say(ready=False)
    time.sleep(3)
    assert 1 == describe(seen, "pod", "refused").count("RefusedOnAllNodes")


def test_a_writer_that_is_killed_is_followed_by_the_other_one_and_what_is_true_is_not_written_again(seen: Cluster):
    nodes = ready(3, seen)
    writer, _ = two(seen)
    for node in nodes:
        wait_says(seen, node, ("True", "Healthy"), timeout_s=SOON_S)
    before = {node: written_at(seen, node) for node in nodes}
    os.killpg(writer.process.pid, signal.SIGKILL)
    seen.health_pods[nodes[0]].say(ready=False)
    took_s = wait_says(seen, nodes[0], ("False", "HealthPodNotReady"), timeout_s=2 * SOON_S)
    time.sleep(3)
    after = {node: written_at(seen, node) for node in nodes}
    print(f"the other one wrote {took_s:.1f} s after the kill")
    assert [nodes[0]] == [node for node in nodes if before[node] != after[node]]


def test_a_writer_that_is_stopped_gives_up_the_lease_and_is_followed(seen: Cluster):
    (node,) = ready(1, seen)
    writer, other = two(seen)
    wait_says(seen, node, ("True", "Healthy"), timeout_s=SOON_S)
    held = seen.api.get(LEASE)["spec"]["holderIdentity"]
    writer.stop()
    assert held != seen.api.get(LEASE)["spec"].get("holderIdentity", ""), "before its end"
    wait_until(lambda: writer_of(seen, [other]) is other, timeout_s=SOON_S)
    seen.health_pods[node].say(ready=False)
    wait_says(seen, node, ("False", "HealthPodNotReady"))


def test_a_writer_that_was_frozen_for_a_while_does_not_write_what_was_true_then(seen: Cluster):
    """It wakes with verdicts of before, while the other one has written newer ones."""
    (node,) = ready(1, seen)
    writer, other = two(seen)
    wait_says(seen, node, ("True", "Healthy"), timeout_s=SOON_S)
    os.killpg(writer.process.pid, signal.SIGSTOP)
    try:
        seen.health_pods[node].say(ready=False)
        wait_says(seen, node, ("False", "HealthPodNotReady"), timeout_s=2 * SOON_S)
        assert writer_of(seen, [other]) is other
        at = written_at(seen, node)
    finally:
        os.killpg(writer.process.pid, signal.SIGCONT)
    wait_until(lambda: "not the leader any more" in writer.process.text(), timeout_s=SOON_S)
    time.sleep(3)
    assert at == written_at(seen, node)
    assert writer_of(seen, [other]) is other


def test_many_nodes_that_change_at_once_are_written_once_each(seen: Cluster):
    nodes = ready(draws(gate=40, whole=100), seen)
    outlets = {"nodeCondition": {"perSecond": 25}, "events": {"enabled": True}}
    seen.start_extender(outlets=outlets)
    wait_until(lambda: all(says(seen, node)[0] == "True" for node in nodes), timeout_s=2 * SOON_S)
    writes: dict[str, set[str]] = {node: set() for node in nodes}
    for node in nodes:
        seen.health_pods[node].say(ready=False)
    until = time.monotonic() + 2 * SOON_S
    while not all(writes.values()) and time.monotonic() < until:  # as long as it takes, and the rest of a watch
        for _, found in seen.api.watch("/api/v1/nodes", timeout_s=5):
            meta = found["metadata"]
            if meta["name"] in writes and condition(found, KIND).get("status") == "False":
                writes[meta["name"]].add(meta["resourceVersion"])
    assert {1} == {len(each) for each in writes.values()}


def test_a_node_that_is_made_anew_gets_its_condition(seen: Cluster):
    (node,) = ready(1, seen)
    seen.start_extender(outlets=BOTH)
    wait_says(seen, node, ("True", "Healthy"), timeout_s=SOON_S)
    found = seen.api.get(f"/api/v1/nodes/{node}")
    seen.api.delete(f"/api/v1/nodes/{node}")
    meta = {"name": node, "labels": found["metadata"]["labels"]}
    seen.api.create("/api/v1/nodes", {"metadata": meta, "status": {"capacity": found["status"]["capacity"]}})
    wait_until(lambda: says(seen, node)[0] in ("True", "False", "Unknown"), timeout_s=2 * SOON_S)


def filter_s(extender: Extender, nodes: list[str], calls: int) -> list[float]:
    """How long each took, one after the other over one connection each."""
    pod = {"metadata": {"name": "p", "namespace": "default", "uid": "u"}, "spec": {"containers": []}}
    body = json.dumps({"Pod": pod, "Nodes": None, "NodeNames": nodes}).encode()
    found = []
    for _ in range(calls):
        request = urllib.request.Request(f"{extender.url}/filter", body, {"Content-Type": "application/json"})
        began = time.monotonic()
        with urllib.request.urlopen(request, timeout=60) as reply:
            reply.read()
        found.append(time.monotonic() - began)
    return found


def test_an_api_server_that_takes_no_writes_delays_no_answer(seen: Cluster):
    """It hangs while thirty conditions wait to be written. The medians are of the same calls before, one by one."""
    nodes = ready(30, seen)
    extender = seen.start_extender(outlets=BOTH)
    wait_until(lambda: all(says(seen, node)[0] == "True" for node in nodes), timeout_s=2 * SOON_S)
    before = filter_s(extender, nodes, 300)
    for node in nodes:
        seen.health_pods[node].say(ready=False)
    time.sleep(0.5)  # what has changed is seen, most of it is not written yet
    with seen.plane.frozen("kube-apiserver"):
        during = filter_s(extender, nodes, 600)
        assert (200, 200) == (extender.get("/livez")[0], extender.get("/readyz")[0])
    print(f"filter, median {statistics.median(before) * 1e3:.2f} -> {statistics.median(during) * 1e3:.2f} ms")
    assert statistics.median(during) < 20 * statistics.median(before) + 0.1
    for node in nodes:
        wait_says(seen, node, ("False", "HealthPodNotReady"), timeout_s=2 * SOON_S)


def test_without_the_rights_it_is_said_once_and_nothing_else_suffers(seen: Cluster):
    (node,) = ready(1, seen)
    role = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{contract.NAMESPACE}/rolebindings/{contract.NAME_EXTENDER}"
    cluster_role = f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{contract.NAME_EXTENDER}"
    before = seen.api.get(cluster_role)
    rules = [rule for rule in before["rules"] if rule["resources"] == ["nodes"]]
    seen.api.request("PUT", cluster_role, before | {"rules": rules})
    try:
        assert seen.api.get(role)
        extender = seen.start_extender(outlets=BOTH)
        text = "condition of a node not written"
        wait_until(lambda: text in extender.process.text(), extender.process.text, timeout_s=SOON_S)
        seen.health_pods[node].say(ready=False)
        wait_until(lambda: 'NodeNames":[]' in _ask(extender, node), lambda: _ask(extender, node))
        time.sleep(3)
        assert (1, 200) == (extender.process.text().count(text), extender.get("/livez")[0])
        assert ("", "") == says(seen, node)
        assert "allow the extender's user the verb patch on nodes/status" in extender.process.text()
    finally:
        now = seen.api.get(cluster_role)
        seen.api.request("PUT", cluster_role, now | {"rules": before["rules"]})


def _ask(extender: Extender, node: str) -> str:
    pod = {"metadata": {"name": "p", "namespace": "default", "uid": "u"}, "spec": {"containers": []}}
    body = json.dumps({"Pod": pod, "Nodes": None, "NodeNames": [node]}).encode()
    request = urllib.request.Request(f"{extender.url}/filter", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as reply:
        return reply.read().decode()


PLAY = """
- hosts: localhost
  connection: local
  gather_facts: false
  vars: {readygate_extender_kubeconfig: %s, ansible_python_interpreter: "{{ ansible_playbook_python }}"}
  vars_files: [%s/vars/main.yml]
  tasks:
    - ansible.builtin.include_tasks: %s/tasks/conditions.yml
"""


def test_the_tasks_of_uninstall_leave_no_condition_and_a_second_run_changes_nothing(seen: Cluster, tmp_path: Path):
    nodes = ready(3, seen)
    extender = seen.start_extender(outlets=BOTH)
    for node in nodes:
        wait_says(seen, node, ("True", "Healthy"), timeout_s=SOON_S)
    extender.stop()
    role = CHECKOUT / "playbooks" / "roles" / "readygate_extender"
    play = tmp_path / "play.yml"
    play.write_text(PLAY % (seen.plane.kubeconfig_for("admin"), role, role))
    environ = os.environ | {"PATH": f"{seen.plane.kubectl.parent}:{os.environ['PATH']}", "ANSIBLE_NOCOLOR": "1"}

    def played() -> str:
        command = [CHECKOUT / ".venv" / "bin" / "ansible-playbook", "--inventory", "localhost,", play]
        run = subprocess.run(command, capture_output=True, text=True, env=environ, timeout=400, check=False)
        assert run.returncode == 0, run.stdout + run.stderr
        return run.stdout

    assert "changed=1" in played()
    assert {("", "")} == {says(seen, node) for node in nodes}
    assert "True" == condition(seen.api.get(f"/api/v1/nodes/{nodes[0]}"), "Ready")["status"], "others stay"
    assert "changed=0" in played()
