"""Mode `kubelet` as a whole, in this process, before a fake API server: what a real one cannot be made to show."""

import os
import signal
import sys
import threading
import time
import urllib.request

import pytest

from agent import settings
from agent.modes import kubelet as kubelet_mode
from component import lifecycle
from tools.fakes.api_server import FakeApiServer
from tools.kit.ports import free_port
from tools.kit.waiting import wait_until


class Node:
    """The services of one node, started; pods are put into the fake API server as the scheduler would bind them."""

    def __init__(self, api, folder, more=""):
        self.api = api
        self.fit = folder / "fit"
        self.fit.touch()
        self.port = free_port()
        text = f"""
mode: kubelet
listen: {{address: 127.0.0.1, port: {self.port}}}
kubelet: {{nodeName: node-1, podCIDR: 127.22.1.0/24, rootDir: {folder / "run"}, leaseDurationSeconds: 2{more}}}
"""
        self.services = kubelet_mode.assemble(settings.parse(text.encode()), api.connection())

    def service(self, name):
        return next(service for service in self.services if service.name == name)

    def put(self, name="p", *, command=("/bin/sleep", "300"), grace_s=1, **spec):
        probe = {
            "exec": {"command": ["/bin/sh", "-c", f"test -e {self.fit}"]},
            "periodSeconds": 1,
            "failureThreshold": 1,
        }
        container = {"name": "c", "image": "i", "command": list(command), "readinessProbe": probe}
        self.api.put(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", "generation": 1},
                "spec": {
                    "nodeName": "node-1",
                    "restartPolicy": "Always",
                    "terminationGracePeriodSeconds": grace_s,
                    "containers": [container],
                    **spec,
                },
                "status": {"phase": "Pending"},
            }
        )

    def status(self, name="p"):
        return (self.api.get("Pod", name) or {}).get("status", {})

    def ready(self, name="p"):
        return next((c["status"] for c in self.status(name).get("conditions", []) if c["type"] == "Ready"), "")

    def node_ready(self):
        conditions = (self.api.get("Node", "node-1", "") or {}).get("status", {}).get("conditions", [])
        return next(((c["status"], c["message"]) for c in conditions if c["type"] == "Ready"), None)

    def wait(self, condition, timeout_s=20.0):
        wait_until(condition, self.status, timeout_s=timeout_s)


@pytest.fixture
def api():
    with FakeApiServer() as api:
        yield api


@pytest.fixture
def node(api, tmp_path, monkeypatch):
    monkeypatch.setattr("agent.kubelet.prober.worker.jitter", lambda *_: 0.0)  # up to a period before each first probe
    node = Node(api, tmp_path)
    lifecycle.start_all(node.services)
    yield node
    lifecycle.stop_all(node.services)


def test_a_pod_follows_its_probe_and_ends(api, node):
    node.put()
    node.wait(lambda: node.ready() == "True")
    node.fit.unlink()
    node.wait(lambda: node.ready() == "False")
    message = [c["message"] for c in node.status()["conditions"] if c["type"] == "Ready"]
    assert message == ["containers with unready status: [c]"]
    pod = dict(api.get("Pod", "p"))
    pod["metadata"] = {**pod["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 1}
    api.put(pod)
    node.wait(lambda: api.get("Pod", "p") is None)
    assert [r.json["preconditions"]["uid"] for r in api.requests if r.method == "DELETE"] == ["uid-p"]


def test_what_the_runtime_does_not_tell_is_found_by_lists_once_its_events_have_failed(node):
    events = node.service("pod events")
    node.put()
    node.wait(lambda: node.ready() == "True")
    assert events.evented
    events.take = lambda _event: None  # from here on nothing is told
    events._events_come = lambda _monotonic: False
    node.wait(lambda: not events.evented, timeout_s=60)
    first = node.service("process runtime")._pods["uid-p"].instances[0]
    os.kill(first.process.pid, signal.SIGKILL)
    node.wait(lambda: node.ready() == "True" and node.status()["containerStatuses"][0]["restartCount"] == 1, 60)


def test_a_runtime_that_does_not_answer_keeps_pods_waiting_and_the_node_from_being_ready(api, tmp_path):
    node, hangs = Node(api, tmp_path), threading.Event()
    runtime = node.service("process runtime")
    lists = runtime.list_pods
    runtime.list_pods = lambda uid="": hangs.wait() and lists(uid)
    lifecycle.start_all(node.services)
    try:
        node.put()
        node.wait(lambda: node.node_ready() == ("False", "PLEG is not healthy: pleg has yet to be successful"))
        assert frozenset() == runtime.known_pods()
        assert lifecycle.unhealthy(node.services, time.monotonic()) == []
        hangs.set()
        node.wait(lambda: node.status().get("phase") == "Running", timeout_s=60)
        node.wait(lambda: node.node_ready() == ("True", "kubelet is posting ready status"), timeout_s=60)
    finally:
        hangs.set()
        lifecycle.stop_all(node.services)


def test_its_lists_are_in_its_metrics(node):
    node.wait(lambda: node.service("pod events").durations().lists.samples()[-1][2])
    with urllib.request.urlopen(f"http://127.0.0.1:{node.port}/metrics") as page:
        lines = page.read().decode().splitlines()
    told = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    counts = ("kubelet_pleg_discard_events", "kubelet_running_pods", "kubelet_pleg_relist_duration_seconds_count")
    assert ["0", "0", "1"] == [told[name] for name in counts]
    assert 0 <= time.time() - float(told["kubelet_pleg_last_seen_seconds"]) < 60


def test_a_node_below_a_threshold_is_under_pressure_and_says_so(api, tmp_path):
    node = Node(
        api, tmp_path, ", nodeStatusUpdateSeconds: 1, evictionHard: {memory.available: 99.99%, pid.available: 1Ki}"
    )

    def pressures():
        conditions = (api.get("Node", "node-1", "") or {}).get("status", {}).get("conditions", [])
        return {c["type"]: (c["status"], c["reason"]) for c in conditions if c["type"].endswith("Pressure")}

    expected = {
        "MemoryPressure": ("True", "KubeletHasInsufficientMemory"),
        "DiskPressure": ("False", "KubeletHasNoDiskPressure"),
        "PIDPressure": ("False", "KubeletHasSufficientPID"),
    }
    lifecycle.start_all(node.services)
    try:
        wait_until(lambda: expected == pressures(), pressures, timeout_s=60)
        assert lifecycle.unhealthy(node.services, time.monotonic()) == []
    finally:
        lifecycle.stop_all(node.services)


def test_a_failed_write_is_made_up_for(api, node):
    api.answer_next(500, method="PATCH", path="/pods/", times=2)
    node.put()
    node.wait(lambda: node.ready() == "True", timeout_s=30)


def test_a_cut_watch_loses_nothing(api, node):
    node.put("first")
    node.wait(lambda: node.ready("first") == "True")
    api.cut_watches(reset=True)
    node.put("second")
    node.wait(lambda: node.ready("second") == "True")
    assert node.ready("first") == "True"


def test_an_api_server_that_is_away_stops_nothing_and_is_told_all_when_it_is_back(api, node):
    node.put()
    node.wait(lambda: node.ready() == "True")
    api.refuse()
    node.fit.unlink()
    time.sleep(1.2)
    assert lifecycle.unhealthy(node.services, time.monotonic()) == []
    api.listen()
    node.wait(lambda: node.ready() == "False", timeout_s=30)


def test_a_pod_created_anew_under_the_same_name_is_another_pod(api, node):
    node.put()
    node.wait(lambda: node.ready() == "True")
    first = node.status()["containerStatuses"][0]["containerID"]
    pod = dict(api.get("Pod", "p"))
    api.delete("Pod", "p")
    api.put({**pod, "metadata": {"name": "p", "namespace": "default", "uid": "another"}, "status": {}})
    node.wait(lambda: node.ready() == "True" and node.status()["containerStatuses"][0]["containerID"] != first)
    assert node.status()["containerStatuses"][0]["restartCount"] == 0


def test_the_lease_goes_on_being_renewed(api, node):
    def renewals():
        return sum(1 for r in api.requests if r.method == "PUT" and "/leases/node-1" in r.path)

    node.wait(lambda: renewals() >= 2)
    assert api.get("Lease", "node-1", "kube-node-lease")["spec"]["holderIdentity"] == "node-1"


def test_stop_is_soon_over_while_the_api_server_gives_no_answers(api, node):
    node.put()
    node.wait(lambda: node.ready() == "True" and any(r.method == "PUT" for r in api.requests))
    api.stall_next(times=1000)
    node.wait(lambda: any(r.method == "PUT" for r in api.requests[-3:]))
    started = time.monotonic()
    lifecycle.stop_all(node.services)
    assert time.monotonic() - started < 5


def test_stop_ends_the_containers_and_tells_the_api_server(node):
    node.put(command=[sys.executable, "-c", "import time; time.sleep(300)"])
    node.wait(lambda: node.ready() == "True")
    started = time.monotonic()
    lifecycle.stop_all(node.services)
    assert time.monotonic() - started < 6
    assert "terminated" in node.status()["containerStatuses"][0]["state"]
    assert node.ready() == "False"
