"""Whether the real kube-scheduler asks, seen by the playbooks' pod that is refused everywhere: the role's own task, run
by Ansible. In shadow, so that nothing else is ever refused.
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
from tests.playbooks.rendering import ROLES
from tests.testbed.plane import scheduler_config
from tests.testbed.shared import bare

NS = f"/api/v1/namespaces/{contract.NAMESPACE}"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
CANARY = "readygate-canary"
GPU = "example.com/gpu"
DEFAULT = "default-scheduler"
PLAY = """
- hosts: localhost
  connection: local
  gather_facts: false
  tasks:
    - ansible.builtin.include_role: {name: readygate_objects, tasks_from: canary}
"""


class Proof:
    """Runs the task as a playbook does, on this machine. `folder`: for what Ansible writes."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self._cluster = cluster
        self._folder = folder
        (folder / "play.yml").write_text(PLAY)

    def play(
        self, *, schedulers: tuple[str, ...] = (DEFAULT,), resources: tuple[str, ...] = (), seconds: float = 40.0
    ) -> tuple[int, str]:
        """Exit code, and what the task said. Looks that nothing has stayed."""
        plane = self._cluster.plane
        given = {
            "readygate_objects_kubeconfig": str(plane.kubeconfig),
            "readygate_objects_namespace": contract.NAMESPACE,
            "readygate_objects_schedulers": schedulers,
            "readygate_objects_resources": resources,
            "readygate_objects_image": "registry.invalid/readygate:1",
            "readygate_objects_timeout_seconds": seconds,
            "ansible_python_interpreter": sys.executable,
        }
        command = [sys.executable, "-m", "ansible", "playbook", "-v", "-i", "localhost,", "--extra-vars"]
        environ = os.environ | {
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_HOME": str(self._folder / "ansible"),
            "ANSIBLE_ROLES_PATH": str(ROLES),
            "PATH": f"{plane.kubectl.parent}{os.pathsep}{os.environ['PATH']}",
        }
        done = subprocess.run(
            [*command, json.dumps(given), str(self._folder / "play.yml")],
            env=environ,
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        said = re.findall(r'"msg": "((?:[^"\\]|\\.)*)"', done.stdout)
        assert said, done.stdout + done.stderr
        assert ([], []) == (self._pods(), self._classes())
        return done.returncode, said[-1]

    def _pods(self) -> list[str]:
        return [one["metadata"]["name"] for one in self._cluster.api.items(f"{NS}/pods") if _is_canary(one)]

    def _classes(self) -> list[str]:
        return [one["metadata"]["name"] for one in self._cluster.api.items(CLASSES) if _is_canary(one)]


def _is_canary(one: dict[str, Any]) -> bool:
    return str(one["metadata"]["name"]).startswith(CANARY)


@pytest.fixture
def proof(cluster: Cluster, tmp_path: Path) -> Proof:
    """An open node, a closed one that is cordoned, and one without a health pod."""
    opened, closed, _ = cluster.add_nodes(3)
    cluster.add_health_pods([opened], ready=True)
    cluster.add_health_pods([closed], ready=False)
    cluster.api.patch(f"/api/v1/nodes/{closed}", {"spec": {"unschedulable": True}})
    return Proof(cluster, tmp_path)


def test_a_scheduler_that_asks_is_seen_to_and_one_that_does_not_is_told_of(cluster: Cluster, proof: Proof):
    """First registered; then with an extender that is stalled, without which a scheduler in mode protect goes on."""
    cluster.use_extender(cluster.start_extender(gates=[{"enforcement": "shadow"}]).url, mode="protect")
    code, said = proof.play()
    assert (0, f"kube-scheduler asks readygate and keeps to its answer: {DEFAULT}") == (code, said)

    with socket.create_server(("127.0.0.1", 0)) as silent:
        cluster.use_extender(f"http://127.0.0.1:{silent.getsockname()[1]}", mode="protect")
        code, said = proof.play()
        assert code != 0
        cluster.plane.stop_scheduler()
    assert code != 0
    assert f"kube-scheduler ({DEFAULT}) placed a pod on node bare-" in said
    assert "it does not ask readygate, or could not reach it in time. check.yml says" in said


def test_each_profile_of_a_scheduler_that_insists_and_cares_for_some_pods_only(cluster: Cluster, proof: Proof):
    extender = cluster.start_extender(gates=[{"enforcement": "shadow"}])
    asks = scheduler_config.extender(extender.url, mode="enforce", managed_resources=[GPU])
    names = (DEFAULT, "batch")
    cluster.plane.restart_scheduler(cluster.plane.scheduler_config([asks], profiles=names))
    code, said = proof.play(schedulers=names, resources=(GPU,))
    assert (0, "kube-scheduler asks readygate and keeps to its answer: batch, default-scheduler") == (code, said)

    extender.stop()
    code, said = proof.play(resources=(GPU,), seconds=5)
    assert code != 0
    assert "connection refused. See whether it runs and leads" in said
    cluster.plane.stop_scheduler()  # before its extender goes away for the next test


@contextlib.contextmanager
def object_at(cluster: Cluster, path: str, made: dict[str, Any]) -> Iterator[None]:
    cluster.api.create(path, made)
    try:
        yield
    finally:
        cluster.api.delete(f"{path}/{made['metadata']['name']}")


def test_what_stands_against_it_is_told_and_nobody_is_evicted_for_it(cluster: Cluster, proof: Proof):
    """A quota; then all nodes full, of pods that the cluster's default class would evict for a pod without a class."""
    cluster.use_extender(cluster.start_extender().url, mode="protect")
    quota = {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}
    with object_at(cluster, f"{NS}/resourcequotas", quota):
        code, said = proof.play()
    assert code != 0
    assert "exceeded quota: none" in said
    assert "That may be an admission policy, a quota, missing rights" in said

    nodes = [one["metadata"]["name"] for one in cluster.api.items("/api/v1/nodes")]
    for name in nodes:
        cluster.api.patch(f"/api/v1/nodes/{name}/status", {"status": {"allocatable": {"pods": "1"}}})
        cluster.add_pod(f"fills-{name}", nodeName=name)
    default = {"metadata": {"name": "usual"}, "value": 1000, "globalDefault": True}
    cluster.plane.restart_scheduler(cluster.plane.scheduler_config([]))
    with object_at(cluster, CLASSES, default):
        code, said = proof.play()
    assert (0, True) == (code, "it is not proven that kube-scheduler asks readygate: others refuse its pod" in said), (
        said
    )
    assert "Too many pods" in said
    assert [] == [name for name in nodes if not bare.pod(cluster.api, f"fills-{name}")]
