"""`readygate why pod` and the real scheduler: it says of each pod what keeps it, and after the heal that it runs."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.plane.cluster import Cluster
from tools.kit.waiting import wait_for
from tools.testbed.plane.programs import People
from tools.testbed.shared import bare


class Teller:
    """Runs the command as a person does: the plane's kubeconfig for the pod, --server for the extender.

    No kubelet is here that forwards ports; that way is tried on ring 3.
    """

    def __init__(self, cluster: Cluster, people: People):
        self._kubectl = cluster.plane.kubectl
        self._options = ["--kubeconfig", str(cluster.plane.kubeconfig), "--server", people.url]

    def run(self, *arguments: str) -> tuple[int, str]:
        return self._ran(sys.executable, "-m", "cli", *arguments)

    def run_by_kubectl(self, *arguments: str) -> tuple[int, str]:
        """As its plugin, which it finds in PATH."""
        return self._ran(str(self._kubectl), "readygate", *arguments)

    def _ran(self, *command: str) -> tuple[int, str]:
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        environ = {**os.environ, "COLUMNS": "120", "PATH": path}
        done = subprocess.run([*command, *self._options], capture_output=True, text=True, timeout=200, env=environ)
        assert done.stderr == ""
        return done.returncode, done.stdout

    def why(self, pod: str) -> tuple[int, dict[str, Any]]:
        code, out = self.run("why", "pod", f"default/{pod}", "-o", "json")
        return code, json.loads(out)


def asking_for(cpu: str) -> dict[str, Any]:
    """The spec of a pod that wants so much."""
    return {"containers": [{"name": "main", "image": "x", "resources": {"requests": {"cpu": cpu}}}]}


def kept(document: dict[str, Any]) -> set[str]:
    return {one["node"] for one in document["nodes"]}


@pytest.fixture
def teller(cluster: Cluster):
    """A function from the extender's options to a Teller; the scheduler asks that extender."""
    started: list[People] = []

    def start(**options: object) -> Teller:
        extender = cluster.start_extender(cap=False, storm=False, **options)
        people = People(cluster.plane, extender)
        started.append(people)
        people.start()
        cluster.use_extender(extender.url)
        return Teller(cluster, people)

    yield start
    for people in started:
        people.stop()


def test_the_story_of_pods_that_wait(cluster: Cluster, teller):
    full, *closed = cluster.add_nodes(3)
    cluster.add_health_pods([full], ready=True)
    cluster.add_health_pods(closed, ready=False)
    told = teller(exempt={"labelNamespaces": ["*"]})
    cluster.add_pod("bound", node=full, **asking_for("6"))
    assert cluster.wait_bound("bound") == full

    cluster.add_pod("ours", node=closed[0])
    cluster.add_pod("both", **asking_for("4"))
    cluster.add_pod("others", **asking_for("900"))
    for name in ("ours", "both", "others"):
        cluster.wait_refused(name)

    code, ours = wait_for(lambda: ready(told.why("ours"), "blocked"), timeout_s=60)
    assert (1, "blocked", {closed[0]}) == (code, ours["answer"], kept(ours))
    assert ours["first"].endswith("One node would take it now; readygate keeps it off.")

    code, both = told.why("both")
    assert (1, "blocked", set(closed)) == (code, both["answer"], kept(both))
    assert both["first"].endswith("Two nodes would take it now; readygate keeps it off both.")
    assert [{"nodes": 1, "text": "Insufficient cpu", "readygate": False}] == [
        reason for reason in both["scheduler"] if not reason["readygate"]
    ]
    code, page = told.run_by_kubectl("why", "pod", "default/both")
    assert code == 1
    assert "The other 1 is unrelated to readygate: 1 Insufficient cpu (kube-scheduler, " in page
    assert "  details: kubectl readygate why node " in page

    code, others = told.why("others")
    assert (0, "notBlocked", []) == (code, others["answer"], others["nodes"])
    assert others["first"] == "readygate is not the cause: no node that it closed would have taken this pod."

    code, bound = told.why("bound")
    assert (0, "notPending") == (code, bound["answer"])
    assert bound["first"].endswith(f" ago; {full} is open.")

    for node in closed:
        cluster.health_pods[node].say(ready=True)
    assert cluster.wait_bound("ours") == closed[0]
    assert cluster.wait_bound("both") in closed
    for name in ("ours", "both"):
        code, document = told.why(name)
        assert (0, "notPending") == (code, document["answer"]), document["first"]
    assert told.run("why", "node", closed[0])[0] == 0
    assert told.run("status")[0] == 0
    changes = json.loads(told.run("history", "--node", closed[0], "-o", "json")[1])["events"]
    assert "opened" in [change["kind"] for change in changes]


def ready(found: tuple[int, dict[str, Any]], answer: str) -> tuple[int, dict[str, Any]] | None:
    """What is remembered of a call comes a moment after its answer."""
    return found if found[1]["answer"] == answer else None


def test_a_pod_that_is_exempt_runs_on_a_closed_node(cluster: Cluster, teller):
    nodes = cluster.add_nodes(1)
    cluster.add_health_pods(nodes, ready=False)
    told = teller(exempt={"labelNamespaces": ["*"]})
    time.sleep(1.1)  # the API server tells whole seconds: in the one in which the node closes, a pod is bound before it
    body = {"metadata": {"name": "free", "labels": {"readygate.dev/exempt": "true"}}, "spec": bare.pod_spec()}
    cluster.api.create("/api/v1/namespaces/default/pods", body)
    try:
        assert cluster.wait_bound("free") == nodes[0]
        code, document = told.why("free")
        assert (0, "notPending") == (code, document["answer"])
        assert document["first"].endswith(f"after {nodes[0]} closed: exempt, or placed unfiltered.")
        assert told.run("why", "node", nodes[0])[0] == 1
    finally:
        cluster.api.delete("/api/v1/namespaces/default/pods/free", grace_s=0)


def test_a_gate_in_shadow_keeps_no_pod_waiting_and_tells_what_it_would_have_done(cluster: Cluster, teller):
    nodes = cluster.add_nodes(2)
    cluster.add_health_pods(nodes, ready=False)
    told = teller(gate={"enforcement": "shadow"})
    cluster.add_pod("shadowed", node=nodes[0])
    assert cluster.wait_bound("shadowed") == nodes[0], bare.refused(bare.pod(cluster.api, "shadowed"))

    code, document = told.why("shadowed")
    assert (0, "notPending", True) == (code, document["answer"], document["first"].endswith(f"{nodes[0]} is open."))
    code, out = wait_for(lambda: found if (found := told.run("impact"))[0] else None, timeout_s=60)
    assert (1, True) == (code, out.startswith("If armed, gate health would close 2 nodes now, 2 at most at once"))
    assert told.run("status")[0] == 0
