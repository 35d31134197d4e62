"""The agent as a process in mode `node`: of several health pods of its node each has the condition that is its own."""

import json
import os
import signal
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from agent.wire.condition import ANNOTATION_SPEAKER
from kube import contract, paths
from tests.scripted.tls import make_authority
from tools.fakes.api_server import FakeApiServer
from tools.fakes.kubelet_healthz import answering
from tools.kit.ports import free_port
from tools.kit.programs import Launch, Program
from tools.kit.waiting import wait_until

NODE = "worker-1"
NAMESPACE = "ns"
TOKEN = json.dumps({"status": {"token": "t"}, "spec": {"expirationSeconds": 3600}}).encode()
OFTEN = 10_000


def health_pod(name: str, namespace: str = NAMESPACE) -> dict[str, Any]:
    """As its kubelet says it: ready, without a probe of its own."""
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": name, "uid": f"set-{name}", "controller": True}
    running = {"state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}, "containerID": f"containerd://{name}"}
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}",
            "labels": {"app": name},
            "annotations": {ANNOTATION_SPEAKER: "node"},
            "ownerReferences": [owner],
        },
        "spec": {"nodeName": NODE, "serviceAccountName": name, "containers": [{"name": "c"}]},
        "status": {
            "phase": "Running",
            "conditions": [{"type": kind, "status": "True"} for kind in ("ContainersReady", "Ready")],
            "containerStatuses": [{"name": "c", "ready": True, "started": True, **running}],
        },
    }


def entries(named: Mapping[str, Collection[str]], selector: str = "app={}") -> list[dict[str, Any]]:
    """One for each DaemonSet, with the checks that it names."""
    return [
        {"namespace": NAMESPACE, "labelSelector": selector.format(name), "daemonSet": name}
        | ({"checks": list(checks)} if checks else {})
        for name, checks in named.items()
    ]


class Node:
    """An agent, its API server and the health pods of its node. A check passes while the file of its name is there."""

    def __init__(
        self, folder: Path, api: FakeApiServer, authority: Path, kubelet: str, launch: Launch | None = None
    ) -> None:
        self.folder, self.api = folder, api
        self.identity = {"certificateAuthority": str(authority / "ca.crt")} | {
            "certificate": str(authority / "client.crt"),
            "key": str(authority / "client.key"),
        }
        self.kubelet = kubelet
        self.given: dict[str, Any] = {}  # more of its section `node`
        self.port = free_port()
        self.agent = Program("agent", {}, folder, launch=launch)

    def settings(self, named: Mapping[str, Collection[str]], checks: Collection[str]) -> dict[str, Any]:
        return {
            "mode": "node",
            "listen": {"address": "127.0.0.1", "port": self.port},
            "stateFile": str(self.folder / "checks.json"),
            "checks": [self.check(name) for name in checks],
            "node": {
                "name": NODE,
                "server": self.api.url,
                **self.identity,
                "healthPods": entries(named),
                "kubeletHealthz": self.kubelet,
                "podsSocket": None,
                **self.given,
            },
        }

    def check(self, name: str) -> dict[str, Any]:
        command = ["test", "-e", str(self.folder / name)]
        return {"name": name, "exec": {"command": command}, "periodSeconds": 1, "failureThreshold": 1}

    def start(
        self, named: Mapping[str, Collection[str]], checks: Collection[str], there: Collection[str] | None = None
    ) -> None:
        """there: whose pods are there already; all, if it is left out."""
        for name in named if there is None else there:
            self.api.put(health_pod(name))
        for name in checks:
            (self.folder / name).touch()
        self.agent.settings = self.settings(named, checks)
        self.agent.start()

    def conditions(self) -> dict[str, str]:
        """Of ours: the status by the pod's name, "" where there is none."""
        return {
            pod["metadata"]["name"]: next(
                (c["status"] for c in pod["status"]["conditions"] if c["type"] == contract.CONDITION_NODE_HEALTHY), ""
            )
            for pod in self.api.objects("Pod")
        }

    def wait(self, expected: Mapping[str, str]) -> None:
        wait_until(
            lambda: self.conditions() == expected,
            lambda: f"{expected}, is {self.conditions()}: {self.agent.process.text()[-2000:]}",
            timeout_s=60.0,
        )

    def reads(self, named: Mapping[str, Collection[str]], selector: str = "app={}", *more: dict[str, Any]) -> None:
        """It is told to read its file again, which has these entries, and more checks."""
        self.agent.settings = self.settings(named, CHECKS)
        self.agent.settings["node"]["healthPods"] = entries(named, selector)
        self.agent.settings["checks"] += more
        self.agent.write()
        os.kill(self.agent.process.pid, signal.SIGHUP)

    def says(self, text: str, times: int = 1) -> None:
        log = self.agent.process.text
        wait_until(lambda: log().count(text) >= times, log, timeout_s=60.0)

    def written(self) -> set[str]:
        """The pods of which a condition was written since the last time."""
        found = {r.path.split("/")[-2] for r in self.api.requests if r.method == "PATCH" and r.path.endswith("/status")}
        self.api.requests.clear()
        return found


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    (tmp_path / "tls").mkdir()
    authority = make_authority(tmp_path / "tls")
    with answering() as kubelet, FakeApiServer(tls=authority.server_context()) as api:
        api.put({"kind": "Node", "apiVersion": "v1", "metadata": {"name": NODE, "uid": "node-uid"}})
        api.answer_next(201, body=TOKEN, method="POST", path="/token", times=OFTEN)
        made = Node(tmp_path, api, authority.folder, kubelet)
        yield made
        made.agent.process.kill()


SPLIT = {"base": (), "gpu": ("gpu",)}
CHECKS = ("disk", "gpu")
GOOD = {"base": "True", "gpu": "True"}


def test_a_check_that_one_entry_names_turns_the_condition_of_its_pod_alone(node: Node) -> None:
    node.start(SPLIT, CHECKS)
    node.wait(GOOD)
    node.written()
    (node.folder / "gpu").unlink()
    node.wait({"base": "True", "gpu": "False"})
    assert {"gpu"} == node.written()
    assert node.agent.wait_page("/readyz", 503).startswith("gpu: failed since "), "its own pages tell all checks"
    (node.folder / "gpu").touch()
    (node.folder / "disk").unlink()
    node.wait({"base": "False", "gpu": "True"})
    (node.folder / "disk").touch()
    node.wait(GOOD)


def test_over_a_restart_each_pod_keeps_its_own_word(node: Node) -> None:
    node.start(SPLIT, CHECKS)
    node.wait(GOOD)
    (node.folder / "gpu").unlink()
    node.wait({"base": "True", "gpu": "False"})
    assert 0 == node.agent.stop()
    node.written()
    node.agent.start()
    node.agent.wait_page("/readyz", 503)
    (node.folder / "disk").unlink()
    node.wait({"base": "False", "gpu": "False"})
    told = [
        (r.path.split("/")[-2], c["status"])
        for r in node.api.requests
        if r.method == "PATCH"
        for c in json.loads(r.body).get("status", {}).get("conditions", [])
    ]
    assert ("gpu", "True") not in told


def test_a_check_that_a_new_file_gives_to_another_entry_leaves_no_condition_behind(node: Node) -> None:
    node.start(SPLIT, CHECKS)
    node.wait(GOOD)
    (node.folder / "gpu").unlink()
    node.wait({"base": "True", "gpu": "False"})
    node.agent.settings = node.settings({"base": ("gpu",), "gpu": ("disk",)}, CHECKS)
    node.agent.write()
    node.wait({"base": "False", "gpu": "True"})
    node.agent.settings = node.settings({"base": (), "gpu": ("gpuu",)}, CHECKS)
    node.agent.write()
    refused = "node.healthPods[1].checks[0]: gpuu is no check of this file, allowed: disk, gpu"
    wait_until(lambda: refused in node.agent.process.text(), node.agent.process.text, timeout_s=60.0)
    assert {"base": "False", "gpu": "True"} == node.conditions()


def test_entries_come_become_others_and_go_while_it_runs(node: Node) -> None:
    for name in ("base", "gpu", "late"):
        node.api.put(health_pod(name))
    node.start({"base": ()}, CHECKS)
    node.wait({"base": "True", "gpu": "", "late": ""})
    pid = node.agent.process.pid
    node.written()
    node.reads({"base": (), **SPLIT, "late": ("gpu",)})
    node.wait({"base": "True", "gpu": "True", "late": "True"})
    assert {"gpu", "late"} == node.written(), "nothing is written anew of what was there"
    (node.folder / "gpu").unlink()
    node.wait({"base": "True", "gpu": "False", "late": "False"})
    node.written()
    node.reads({"base": (), "gpu": ("gpu",)}, "app in ({})")
    node.says("configuration read again", times=2)
    (node.folder / "gpu").touch()
    node.wait({"base": "True", "gpu": "True", "late": "False"})
    assert [] == [r.path for r in node.api.requests if r.path.endswith("/token")], "who spoke for it goes on"
    assert {"gpu"} == node.written()
    assert pid == node.agent.process.pid
    assert 3 == node.agent.process.text().count("speaks for a health pod")


def test_entries_that_become_others_while_the_api_server_is_away_are_known_when_it_is_back(node: Node) -> None:
    node.api.put(health_pod("late"))
    node.start(SPLIT, CHECKS)
    node.wait({**GOOD, "late": ""})
    node.api.refuse()
    node.reads({"base": (), "gpu": ("gpu",), "late": ("gpu",)}, "app in ({})")
    node.says("configuration read again")
    (node.folder / "gpu").unlink()
    node.agent.wait_page("/readyz", 503)
    node.api.listen()
    node.wait({"base": "True", "gpu": "False", "late": "False"})


def test_a_pod_whose_only_check_is_new_is_not_told_to_be_good_before_that_has_run(node: Node) -> None:
    """The check takes a while to say anything."""
    node.start({"base": ()}, CHECKS)
    node.api.put(health_pod("gpu"))
    (node.folder / "disk").unlink()
    node.wait({"base": "False", "gpu": ""})
    node.written()
    (node.folder / "late").touch()
    named = {"base": ("late",), "gpu": ("late",)}
    node.reads(named, "app={}", node.check("late") | {"initialDelaySeconds": 3})
    node.says("configuration read again")
    began = time.monotonic()
    node.wait(GOOD)
    assert time.monotonic() - began > 2.0
    assert {"base", "gpu"} == node.written()


def test_a_file_that_cannot_be_used_leaves_its_pods_as_they_are(node: Node) -> None:
    node.start(SPLIT, CHECKS)
    node.wait(GOOD)
    node.reads({"base": (), "gpu": (), "late": ("nothing",)})
    refused = "node.healthPods[2].checks[0]: nothing is no check of this file, allowed: disk, gpu"
    node.says(refused)
    (node.folder / "gpu").unlink()
    node.wait({"base": "True", "gpu": "False"})
    assert 1 == node.agent.process.text().count("configuration refused")


def test_twenty_daemon_sets_have_their_own_checks(node: Node) -> None:
    """With as many threads as the role's unit lets it have (`readygate_node_tasks_max`)."""
    names = [f"set-{number:02}" for number in range(20)]
    node.start({name: (name,) for name in names}, names)
    node.wait(dict.fromkeys(names, "True"))
    node.written()
    (node.folder / "set-19").unlink()
    node.wait({name: "False" if name == "set-19" else "True" for name in names})
    assert {"set-19"} == node.written()
    threads = len(list(Path(f"/proc/{node.agent.process.pid}/task").iterdir()))
    assert threads <= 128


def test_the_heartbeat_lies_where_the_first_entry_has_a_pod_though_another_was_there_before(node: Node) -> None:
    """Pods elsewhere need not have the right to write it, and who reads it looks in one namespace."""
    node.api.put(health_pod("gpu", "elsewhere"))
    node.agent.settings = node.settings(SPLIT, CHECKS)
    for name in CHECKS:
        (node.folder / name).touch()
    section = node.agent.settings["node"]
    section["heartbeat"] = {"periodSeconds": 1}
    section["healthPods"][1]["namespace"] = "elsewhere"
    node.agent.start()
    node.wait({"gpu": "True"})
    node.api.put(health_pod("base"))
    node.wait(GOOD)
    node.api.requests.clear()
    beats = node.api.wait_requests(3, lambda r: r.method == "PATCH" and "/leases/" in r.path)
    assert {paths.lease(NAMESPACE, NODE)} == {beat.path for beat in beats}
