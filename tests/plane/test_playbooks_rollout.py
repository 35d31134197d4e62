"""The playbooks roll agents out, by the real DaemonSet controller: past nodes that were not well, and back when the
new version is broken. Takes minutes, because a cause is only believed when it has lasted.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kube import contract
from tests.plane.cluster import Cluster
from tests.plane.rollout import DAEMON_SETS, GOOD, PODS, Image, Kubelets
from tests.playbooks.rendering import ROLES
from tools.kit.waiting import wait_for
from tools.testbed.plane.plane import Plane
from tools.testbed.shared import bare
from tools.testbed.shared.api import Api

MANY = 10
BETTER = Image("registry.invalid/good:2", float("inf"))
UNKNOWN = Image("registry.invalid/nowhere:3", 0, ("ErrImagePull", "registry.invalid: no such host"))
REFUSED = Image("registry.invalid/refused:4", 0)
PLAY = """
- hosts: localhost
  connection: local
  gather_facts: false
  roles: [readygate_agent]
"""
POLICY = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
BINDING = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"


@dataclass(frozen=True)
class Played:
    code: int
    output: str


class Player:
    """Runs the agent's role as a playbook does, on this machine."""

    def __init__(self, plane: Plane, folder: Path) -> None:
        self._plane = plane
        self._folder = folder
        (folder / "play.yml").write_text(PLAY)

    def play(self, image: Image, *options: str, **variables: Any) -> Played:
        given = {
            "readygate_image": image.name,
            "readygate_agent_kubeconfig": str(self._plane.kubeconfig),
            "readygate_agent_max_unavailable": "30%",
            "readygate_agent_min_ready_seconds": 1,
            "readygate_agent_trial": False,  # no kubelet runs a container here
            "ansible_python_interpreter": sys.executable,
        }
        command = [sys.executable, "-m", "ansible", "playbook", "-i", "localhost,", *options]
        command += ["--extra-vars", json.dumps(given | variables), str(self._folder / "play.yml")]
        environ = os.environ | {
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_HOME": str(self._folder / "ansible"),
            "ANSIBLE_ROLES_PATH": str(ROLES),
            "PATH": f"{self._plane.kubectl.parent}{os.pathsep}{os.environ['PATH']}",
        }
        done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=400, check=False)
        return Played(done.returncode, done.stdout + done.stderr)


@pytest.fixture(scope="module")
def rollout_plane(say: Callable[[str], None]) -> Iterator[Plane]:
    with Plane("playbooks", thrifty=True, progress=say) as plane:
        yield plane


@pytest.fixture(scope="module")
def player(rollout_plane: Plane, tmp_path_factory: pytest.TempPathFactory) -> Player:
    return Player(rollout_plane, tmp_path_factory.mktemp("player"))


@pytest.fixture(scope="module")
def first_check(player: Player, rollout_plane: Plane) -> Played:
    """On a cluster that has never seen readygate."""
    rollout_plane.wait_namespace(contract.NAMESPACE)
    rollout_plane.api.delete(f"/api/v1/namespaces/{contract.NAMESPACE}")
    found = "/api/v1/namespaces?fieldSelector=metadata.name%3D" + contract.NAMESPACE
    assert wait_for(lambda: not rollout_plane.api.items(found), timeout_s=120)
    return player.play(GOOD, "--check", "--diff")


@pytest.fixture(scope="module")
def nodes(rollout_plane: Plane, first_check: Played) -> Iterator[list[str]]:  # noqa: ARG001
    labels = {"kubernetes.io/arch": "amd64"}
    with Cluster(rollout_plane) as cluster:
        yield cluster.add_nodes(MANY, labels=labels)


@pytest.fixture(scope="module")
def kubelets(rollout_plane: Plane, nodes: list[str]) -> Iterator[Kubelets]:
    """The first node is dead."""
    api, images = rollout_plane.api, (GOOD, BETTER, UNKNOWN, REFUSED)
    dead = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": ""}
    api.patch(f"/api/v1/nodes/{nodes[0]}/status", {"status": {"conditions": [dead]}})
    with Kubelets(api, images, dead=frozenset(nodes[:1])) as kubelets:
        yield kubelets


@pytest.fixture(scope="module")
def installed(player: Player, kubelets: Kubelets) -> Played:  # noqa: ARG001
    return player.play(GOOD)


def images(api: Api) -> dict[str, int]:
    """Agents by image."""
    found = [pod["spec"]["containers"][0]["image"] for pod in api.items(PODS)]
    return {image: found.count(image) for image in found}


def daemon_set(api: Api) -> dict[str, Any]:
    found: dict[str, Any] = api.get(f"{DAEMON_SETS}/{contract.NAME_AGENT}")
    return found


def config_maps(api: Api) -> list[str]:
    path = f"/api/v1/namespaces/{contract.NAMESPACE}/configmaps"
    return [name for each in api.items(path) if (name := each["metadata"]["name"]).startswith(contract.NAME_AGENT)]


def test_a_first_check_shows_every_object(first_check: Played):
    assert first_check.code == 0, first_check.output
    kinds = ("Namespace", "ServiceAccount", "Role", "ValidatingAdmissionPolicy", "ConfigMap", "DaemonSet")
    assert [] == [kind for kind in kinds if f"+kind: {kind}" not in first_check.output]
    assert "Error from server" not in first_check.output


def test_an_install_ends_well_beside_a_dead_node(installed: Played, rollout_plane: Plane):
    assert installed.code == 0, installed.output
    assert "(dead)" in installed.output, installed.output
    assert "RETRYING" not in installed.output
    assert {GOOD.name: MANY} == images(rollout_plane.api)


def test_a_second_run_changes_nothing_and_does_not_wait(installed: Played, player: Player, rollout_plane: Plane):
    assert installed.code == 0
    before = daemon_set(rollout_plane.api)
    again = player.play(GOOD)
    assert (0, True) == (again.code, "changed=0" in again.output), again.output
    assert before["metadata"]["generation"] == daemon_set(rollout_plane.api)["metadata"]["generation"]


def test_an_upgrade_goes_past_nodes_that_were_not_well_before(
    installed: Played, player: Player, kubelets: Kubelets, nodes: list[str], rollout_plane: Plane
):
    """One dead and two closed nodes would take all of a batch of three; the configuration changes too."""
    kubelets.closed = frozenset(nodes[1:3])
    assert wait_for(lambda: kubelets.ready() == MANY - 3, timeout_s=120)
    assert installed.code == 0
    played = player.play(BETTER, readygate_agent_log_level="debug")
    assert played.code == 0, played.output
    api = rollout_plane.api
    assert images(api)[BETTER.name] >= MANY - 1
    assert "30%" == daemon_set(api)["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"]
    assert len(config_maps(api)) == 2, "that of this version, and that of the one to go back to"


def test_an_image_that_cannot_be_pulled_ends_early_with_the_cause_and_is_undone(
    installed: Played, player: Player, rollout_plane: Plane
):
    api = rollout_plane.api
    before = images(api)
    played = player.play(UNKNOWN, readygate_agent_log_level="error")
    assert (installed.code, played.code) == (0, 2), played.output
    (fatal,) = [line for line in played.output.splitlines() if line.startswith("fatal: ")]
    assert "ErrImagePull: registry.invalid: no such host" in fatal
    assert f"The earlier version (image {BETTER.name}) is rolled out again" in fatal
    assert wait_for(lambda: images(api) == before, timeout_s=120), images(api)
    template = daemon_set(api)["spec"]["template"]["spec"]
    assert template["volumes"][0]["configMap"]["name"] in config_maps(api)


def history(api: Api) -> list[dict[str, Any]]:
    """Of the agents' DaemonSet, oldest first."""
    path = f"/apis/apps/v1/namespaces/{contract.NAMESPACE}/controllerrevisions"
    return sorted(api.items(path), key=lambda each: int(each["revision"]))


def test_undone_by_hand_each_version_finds_its_configuration(
    installed: Played, player: Player, kubelets: Kubelets, rollout_plane: Plane
):
    """The first version is two roll-outs ago, or more."""
    api = rollout_plane.api
    kubelets.closed = frozenset()
    for level in ("warning", "error"):
        played = player.play(BETTER, readygate_agent_log_level=level)
        assert (installed.code, played.code) == (0, 0), played.output
    volumes = [each["data"]["spec"]["template"]["spec"]["volumes"][0]["configMap"]["name"] for each in history(api)]
    assert len(set(volumes)) >= 3
    assert set() == set(volumes) - set(config_maps(api))
    first = str(history(api)[0]["revision"])
    command = [rollout_plane.kubectl, "--kubeconfig", rollout_plane.kubeconfig, "--namespace", contract.NAMESPACE]
    command += ["rollout", "undo", f"daemonset/{contract.NAME_AGENT}", f"--to-revision={first}"]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    assert wait_for(lambda: images(api) == {GOOD.name: MANY}, timeout_s=120), images(api)
    named = daemon_set(api)["spec"]["template"]["spec"]["volumes"][0]["configMap"]["name"]
    assert (volumes[0], True) == (named, named in config_maps(api))


@pytest.fixture
def refusing(rollout_plane: Plane) -> Iterator[None]:
    """An admission policy of the cluster that wants no such image."""
    api, name = rollout_plane.api, "no-such-images"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    wanted = {"expression": "!object.spec.containers[0].image.contains('refused')", "message": "images must be signed"}
    spec = {"failurePolicy": "Fail", "matchConstraints": {"resourceRules": [rule]}, "validations": [wanted]}
    api.create(POLICY, {"metadata": {"name": name}, "spec": spec})
    binding = {"policyName": name, "validationActions": ["Deny"]}
    api.create(BINDING, {"metadata": {"name": name}, "spec": binding})
    probe = {"metadata": {"name": "probe"}, "spec": {**bare.pod_spec()}}
    probe["spec"]["containers"][0]["image"] = REFUSED.name

    def refuses() -> bool:
        try:
            api.create("/api/v1/namespaces/default/pods", probe)
        except Exception:  # noqa: BLE001 - refused, as it should
            return True
        api.delete("/api/v1/namespaces/default/pods/probe", grace_s=0)
        return False

    assert wait_for(refuses, timeout_s=120)
    yield
    api.delete(f"{BINDING}/{name}")
    api.delete(f"{POLICY}/{name}")


@pytest.mark.usefixtures("refusing", "installed")
def test_pods_that_admission_refuses_end_it_early_with_the_policys_words(player: Player, rollout_plane: Plane):
    before = images(rollout_plane.api)
    played = player.play(REFUSED)
    assert played.code == 2, played.output
    (fatal,) = [line for line in played.output.splitlines() if line.startswith("fatal: ")]
    assert "images must be signed" in fatal
    assert wait_for(lambda: images(rollout_plane.api) == before, timeout_s=120), images(rollout_plane.api)
