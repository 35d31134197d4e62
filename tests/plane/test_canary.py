"""Whether the real kube-scheduler asks, seen by the playbooks' pod that is refused everywhere: once by the role's own
task, else by its module in this process, which is quicker. In shadow, so that nothing else is ever refused.
"""

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kube import contract
from tests.plane.cluster import Cluster
from tests.playbooks import modules
from tests.playbooks.rendering import ROLES
from tools.testbed.plane import scheduler_config
from tools.testbed.shared import bare

NS = f"/api/v1/namespaces/{contract.NAMESPACE}"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
CANARY = "readygate-canary"
GPU = "example.com/gpu"
IMAGE = "registry.invalid/readygate:1"
DEFAULT = "default-scheduler"
PLAY = """
- hosts: localhost
  connection: local
  gather_facts: false
  tasks:
    - ansible.builtin.include_role: {name: readygate_objects, tasks_from: canary}
"""


class Proof:
    """`folder`: for what Ansible writes. Each way looks that nothing has stayed."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self._cluster = cluster
        self._folder = folder

    def play(self) -> tuple[int, str]:
        """As a playbook does it, on this machine: exit code, and what the task said."""
        plane = self._cluster.plane
        given = {
            "readygate_objects_kubeconfig": str(plane.kubeconfig),
            "readygate_objects_namespace": contract.NAMESPACE,
            "readygate_objects_schedulers": [DEFAULT],
            "readygate_objects_resources": [],
            "readygate_objects_image": IMAGE,
            "readygate_objects_timeout_seconds": 120,
            "ansible_python_interpreter": sys.executable,
        }
        command = [sys.executable, "-m", "ansible", "playbook", "-v", "-i", "localhost,", "--extra-vars"]
        environ = os.environ | {
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_HOME": str(self._folder / "ansible"),
            "ANSIBLE_ROLES_PATH": str(ROLES),
        }
        (self._folder / "play.yml").write_text(PLAY)
        done = subprocess.run(
            [*command, json.dumps(given), str(self._folder / "play.yml")],
            env=environ,
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
        )
        said = re.findall(r'"msg": "((?:[^"\\]|\\.)*)"', done.stdout)
        assert said, done.stdout + done.stderr
        self._look()
        return done.returncode, said[-1]

    def prove(
        self, *, schedulers: tuple[str, ...] = (DEFAULT,), resources: tuple[str, ...] = (), seconds: float = 120.0
    ) -> tuple[str, str]:
        """(state, text). Raises OSError for what stands against it."""
        module = modules.module("readygate_objects", "readygate_canary")
        kubectl = module.Kubectl(str(self._cluster.plane.kubeconfig), contract.NAMESPACE)
        try:
            return module.prove(
                module.Canaries(kubectl, contract.NAMESPACE, list(schedulers), IMAGE, list(resources)), seconds
            )
        finally:
            self._look()

    def _look(self) -> None:
        assert ([], []) == (self._pods(), self._classes())

    def _pods(self) -> list[str]:
        return [one["metadata"]["name"] for one in self._cluster.api.items(f"{NS}/pods") if _is_canary(one)]

    def _classes(self) -> list[str]:
        return [one["metadata"]["name"] for one in self._cluster.api.items(CLASSES) if _is_canary(one)]


def _is_canary(one: dict[str, Any]) -> bool:
    return str(one["metadata"]["name"]).startswith(CANARY)


@pytest.fixture
def proof(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Proof:
    """An open node, a closed one that is cordoned, and one without a health pod."""
    monkeypatch.setenv("PATH", f"{cluster.plane.kubectl.parent}{os.pathsep}{os.environ['PATH']}")
    opened, closed, _ = cluster.add_nodes(3)
    cluster.add_health_pods([opened], ready=True)
    cluster.add_health_pods([closed], ready=False)
    cluster.api.patch(f"/api/v1/nodes/{closed}", {"spec": {"unschedulable": True}})
    return Proof(cluster, tmp_path)


def test_a_scheduler_that_asks_is_seen_to_and_one_that_does_not_is_told_of(cluster: Cluster, proof: Proof):
    """First registered; then with an extender that is stalled, without which a scheduler in mode protect goes on."""
    cluster.use_extender(cluster.start_extender(gates=[{"enforcement": "shadow"}]).url, mode="protect")
    code, said = proof.play()
    assert (0, f"kube-scheduler asks readygate and follows its answer: {DEFAULT}") == (code, said)

    with socket.create_server(("127.0.0.1", 0)) as silent:
        cluster.use_extender(f"http://127.0.0.1:{silent.getsockname()[1]}", mode="protect")
        state, said = proof.prove()
        cluster.plane.stop_scheduler()
    assert "placed" == state
    assert f"kube-scheduler ({DEFAULT}) placed a pod on node bare-" in said
    assert "it does not ask readygate, or could not reach it in time. check.yml reports" in said


def test_each_profile_of_a_scheduler_that_insists_and_cares_for_some_pods_only(cluster: Cluster, proof: Proof):
    extender = cluster.start_extender(gates=[{"enforcement": "shadow"}])
    asks = scheduler_config.extender(extender.url, mode="enforce", managed_resources=[GPU])
    names = (DEFAULT, "batch")
    cluster.plane.restart_scheduler(cluster.plane.scheduler_config([asks], profiles=names))
    state, said = proof.prove(schedulers=names, resources=(GPU,))
    assert ("refused", "kube-scheduler asks readygate and follows its answer: batch, default-scheduler") == (
        state,
        said,
    )

    extender.stop()
    state, said = proof.prove(resources=(GPU,), seconds=5)
    cluster.plane.stop_scheduler()
    assert "waits" == state
    assert "connection refused. Check that it runs and leads" in said


@contextlib.contextmanager
def object_at(cluster: Cluster, path: str, made: dict[str, Any]) -> Iterator[None]:
    cluster.api.create(path, made)
    try:
        yield
    finally:
        cluster.api.delete(f"{path}/{made['metadata']['name']}")


def test_what_stands_against_it_is_told_and_nobody_is_evicted_for_it(cluster: Cluster, proof: Proof):
    """A quota; then all nodes full, of pods that the cluster's default class would evict for a pod without a class."""
    cluster.plane.restart_scheduler(cluster.plane.scheduler_config([]))
    quota = {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}
    with object_at(cluster, f"{NS}/resourcequotas", quota), pytest.raises(OSError, match="exceeded quota: none"):
        proof.prove()

    nodes = [one["metadata"]["name"] for one in cluster.api.items("/api/v1/nodes")]
    for name in nodes:
        cluster.api.patch(f"/api/v1/nodes/{name}/status", {"status": {"allocatable": {"pods": "1"}}})
        cluster.add_pod(f"fills-{name}", nodeName=name)
    default = {"metadata": {"name": "usual"}, "value": 1000, "globalDefault": True}
    with object_at(cluster, CLASSES, default):
        state, said = proof.prove()
    assert ("others", True) == (state, "it is not proven that kube-scheduler asks readygate: others refuse" in said), (
        said
    )
    assert "Too many pods" in said
    assert [] == [name for name in nodes if not bare.pod(cluster.api, f"fills-{name}")]
