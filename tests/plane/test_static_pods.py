"""A static health pod of an agent in mode `kubelet`, before a real API server, opens and closes its node.

The API server knows the pod by its mirror, which the agent makes with a node's rights (admission: NodeRestriction).
"""

import itertools
import json
import sys
import time
from pathlib import Path

import pytest

from kube import contract
from tests.plane.load import ask, told_after
from tools.kit.pid import find_processes
from tools.kit.waiting import wait_for, wait_until
from tools.testbed.plane.plane import Plane
from tools.testbed.plane.programs import Agent, Extender
from tools.testbed.shared.api import ApiError, condition
from tools.testbed.shared.bare import pod_spec

NODE = "node-15"
NAMESPACE = contract.NAMESPACE  # where the extender may read pods
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
LABELS = {"app": "static-health"}
# Answers 200 while the file `fit` is there: what a test takes away makes the probe fail.
SERVER = """
import http.server, os, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if os.path.exists(sys.argv[2]) else 503)
        self.end_headers()
    def log_message(self, *args): pass
http.server.HTTPServer((sys.argv[1], 8080), Handler).serve_forever()
# static-health
"""


@pytest.fixture(scope="module")
def plane(say):
    """A control plane of its own, whose API server is stopped."""
    with Plane("static-pods", thrifty=True, scheduler=False, progress=say) as plane:
        plane.wait_namespace(NAMESPACE)
        yield plane


@pytest.fixture(scope="module")
def extender(plane):
    pods = {"namespace": NAMESPACE, "labelSelector": "app=static-health", "daemonSet": None}
    extender = Extender(plane, gate={"healthPods": pods}, heartbeat={"limitSeconds": 0})
    extender.start()
    yield extender
    extender.stop()


class Static:
    """An agent, its folder of manifests, and the health pod in it."""

    def __init__(self, plane: Plane, folder: Path):
        self.plane, self.fit, self.manifests = plane, folder / "fit", folder / "manifests"
        self.manifests.mkdir()
        self.fit.touch()
        path = str(self.manifests)
        self.agent = Agent(plane, NODE, pod_cidr="127.20.15.0/24", folder=folder, staticPodPath=path)

    def write(self, *, version: str = "1", **metadata: object) -> None:
        """As an editor does: a new file takes the place of the old one."""
        spec = pod_spec([sys.executable, "-c", SERVER, "$(READYGATE_POD_IP)", str(self.fit)])
        probe = {"httpGet": {"port": 8080}, "periodSeconds": 1, "failureThreshold": 1}
        spec["containers"][0]["readinessProbe"] = probe
        meta = {
            "name": "health",
            "namespace": NAMESPACE,
            "labels": LABELS,
            "annotations": {"version": version},
            **metadata,
        }
        hidden = self.manifests / ".health.yaml"
        hidden.write_text(json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}))
        hidden.rename(self.manifests / "health.yaml")

    def remove(self) -> None:
        (self.manifests / "health.yaml").unlink()

    def mirror(self):
        """None where there is none."""
        try:
            return self.plane.api.get(f"{PODS}/health-{NODE}")
        except ApiError as e:
            if e.status != 404:
                raise
        return None

    def wait_ready(self, ready: str = "True", *, version: str = "1"):
        def found():
            pod = self.mirror()
            is_this = pod and pod["metadata"]["annotations"]["version"] == version
            return is_this and condition(pod, "Ready").get("status") == ready and pod

        pod = wait_for(found, timeout_s=90)
        assert pod, f"Ready did not become {ready}: {self.mirror()}"
        return pod


@pytest.fixture
def static(plane, tmp_path):
    static = Static(plane, tmp_path)
    static.write()
    static.agent.start()
    try:
        yield static
    finally:
        static.agent.process.stop()
        if static.mirror():
            plane.api.delete(f"{PODS}/health-{NODE}", grace_s=0)
        plane.api.delete(f"/api/v1/nodes/{NODE}")
        wait_until(lambda: not static.mirror(), "the mirror is gone", timeout_s=60)


def servers() -> set[int]:
    """Processes of this test's server."""
    return {process.pid for process in find_processes(lambda command, _: SERVER.encode() in command)}


def test_a_static_health_pod_opens_and_closes_its_node(extender, static):
    pod = static.wait_ready()
    meta = pod["metadata"]
    (owner,) = meta["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("Node", NODE)
    assert meta["annotations"]["kubernetes.io/config.mirror"] == meta["annotations"]["kubernetes.io/config.hash"]
    assert meta["uid"] != meta["annotations"]["kubernetes.io/config.hash"]
    assert pod["status"]["phase"] == "Running"
    told_after(extender.port, NODE, is_open=True)

    static.fit.unlink()
    static.wait_ready("False")
    told_after(extender.port, NODE, is_open=False)

    static.fit.touch()
    told_after(extender.port, NODE, is_open=True)

    static.remove()
    told_after(extender.port, NODE, is_open=False)
    assert wait_for(lambda: not static.mirror() and not servers(), timeout_s=90), static.mirror()


def test_the_mirror_is_put_right(plane, static):
    """Deleted by somebody it is made again; of another version of the file it is replaced."""
    first, running = static.wait_ready(), servers()
    assert len(running) == 1
    plane.api.delete(f"{PODS}/health-{NODE}", grace_s=0)
    wait_until(
        lambda: (static.mirror() or first)["metadata"]["uid"] != first["metadata"]["uid"],
        "the mirror is made again",
        timeout_s=90,
    )
    static.wait_ready()
    assert servers() == running, "the pod itself went on"

    static.write(version="2")
    second = static.wait_ready(version="2")
    assert (
        second["metadata"]["annotations"]["kubernetes.io/config.hash"]
        != (first["metadata"]["annotations"]["kubernetes.io/config.hash"])
    )
    assert len(servers()) == 1
    assert not running & servers()

    (static.manifests / "health.yaml").write_text("kind: [")
    (static.manifests / "other.yaml").write_text("kind: [")
    third = static.wait_ready(version="2")
    assert third["metadata"]["uid"] == second["metadata"]["uid"], "a broken file changes nothing"


def test_a_static_pod_that_returns_has_no_status_from_before(static):
    """Its uid is a hash of the file, so only RemoveOrphanedStatuses separates it from the pod that was there before."""
    first = static.wait_ready()
    pauses_s = itertools.count(2, 2)

    def returned() -> bool:
        static.remove()
        wait_until(lambda: not static.mirror() and not servers(), "the pod is gone", timeout_s=90)
        time.sleep(next(pauses_s))  # the housekeeping runs every two seconds, and nothing shows what it did
        static.write()
        again = static.wait_ready()
        hashes = [pod["metadata"]["annotations"]["kubernetes.io/config.hash"] for pod in (first, again)]
        assert hashes[0] == hashes[1]
        return again["status"]["startTime"] > first["status"]["startTime"]

    wait_until(returned, "the pod has a start time of its own", timeout_s=300)


def test_it_runs_while_the_api_server_is_away(plane, extender, static):
    static.wait_ready()
    told_after(extender.port, NODE, is_open=True)
    static.agent.process.stop()
    plane.stop_api_server()
    try:
        static.agent.start()
        wait_until(lambda: len(servers()) == 1, "the static pod runs without an API server", timeout_s=60)
        static.fit.unlink()
    finally:
        plane.start_api_server()
    static.wait_ready("False")
    told_after(extender.port, NODE, is_open=False)

    plane.stop_api_server()
    static.fit.touch()
    plane.start_api_server()
    static.wait_ready()
    told_after(extender.port, NODE, is_open=True)
    assert ask(extender.port, [NODE])["NodeNames"] == [NODE]

    plane.stop_api_server()
    static.remove()
    try:
        wait_until(lambda: not servers(), "it ends without an API server, too", timeout_s=60)
    finally:
        plane.start_api_server()
    told_after(extender.port, NODE, is_open=False)
    assert wait_for(lambda: not static.mirror(), timeout_s=90), static.mirror()
