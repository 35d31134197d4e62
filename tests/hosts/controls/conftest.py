"""The cluster of several control planes, booted for this folder's tests and ended with them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.hosts.conftest import booted, with_image
from tests.hosts.controls.schedulers import THREE, Schedulers
from tests.hosts.deployment.api import AdminApi
from tests.hosts.deployment.conftest import ansible_for
from tests.hosts.deployment.playbook import Ansible, Run
from tests.hosts.deployment.test_survival import SCHEDULER_OFF
from tests.hosts.waiting import wait_for
from tools.testbed.hosts.hosts import Hosts
from tools.testbed.hosts.layout import THREE_CONTROLS

TWO = ("control-1", "control-2")
THEIRS = "/etc/kubernetes/own-scheduler.yaml"
OWN = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "parallelism": 7,
    "clientConnection": {"kubeconfig": "/etc/kubernetes/scheduler.conf"},
}
SECTION = {
    "extraArgs": [{"name": "config", "value": THEIRS}],
    "extraVolumes": [{"name": "own", "hostPath": THEIRS, "mountPath": THEIRS, "readOnly": True, "pathType": "File"}],
}
PLAY_LIMIT_S = 1200.0  # a hung one; three hosts one after the other, and three of etcd that wait for each other's disk


@pytest.fixture(scope="package")
def controls(request: pytest.FixtureRequest) -> Iterator[Hosts]:
    """Two control planes that are Ready, and control-3, which is in no cluster yet."""
    with booted(request, THREE_CONTROLS, "controls") as found:
        yield found


@pytest.fixture(scope="package")
def admin(controls: Hosts, tmp_path_factory: pytest.TempPathFactory) -> AdminApi:
    return AdminApi(controls.kubeconfig, tmp_path_factory.mktemp("controls-admin"))


@pytest.fixture(scope="package")
def schedulers(controls: Hosts, admin: AdminApi) -> Schedulers:
    return Schedulers(controls, admin)


@pytest.fixture(scope="package")
def plays(controls: Hosts, tmp_path_factory: pytest.TempPathFactory) -> Ansible:
    folder = tmp_path_factory.mktemp("controls-ansible")
    return ansible_for(controls, with_image(controls), folder, "controls", limit_s=PLAY_LIMIT_S)


@pytest.fixture(scope="package")
def own(controls: Hosts, schedulers: Schedulers) -> None:
    """The schedulers of the cluster of two have a configuration of the operator's, a file on each host."""
    for name in TWO:
        controls.ssh(name, f"cat > {THEIRS}", stdin=yaml.safe_dump(OWN))
    schedulers.give(SECTION, TWO)
    told = wait_for(lambda: all((schedulers.loaded(name) or {}).get("parallelism") == 7 for name in TWO))
    assert told, "the operator's own configuration is loaded"


@pytest.fixture(scope="package")
def untouched(schedulers: Schedulers, own: None) -> dict[str, str]:  # noqa: ARG001
    """The manifests of kube-scheduler as kubeadm made them, by host."""
    return {name: schedulers.manifest(name) for name in TWO}


@pytest.fixture(scope="package")
def led_before(schedulers: Schedulers) -> str:
    """The host whose scheduler leads as readygate comes."""
    return schedulers.leader()


@pytest.fixture(scope="package")
def registered(plays: Ansible, untouched: dict[str, str], led_before: str) -> Run:  # noqa: ARG001
    """readygate on the cluster of two."""
    run = plays.run("site.yml")
    if run.code != 0:
        pytest.fail(f"site.yml failed: {run.told()}", pytrace=False)
    return run


@pytest.fixture(scope="module")
def joined(controls: Hosts, admin: AdminApi) -> None:
    """The cluster of three. Pods may land on them: there is no other node."""
    names = {node["metadata"]["name"] for node in admin.items("/api/v1/nodes")}
    if "control-3" not in names:
        controls.join("control-3")
    for name in THREE:
        admin.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": None}})


def played(plays: Ansible, playbook: Path | str, **more: Any) -> None:
    run = plays.run(playbook, hosts=THREE, **more)
    if run.code != 0:
        pytest.fail(f"{playbook} failed: {run.told()}", pytrace=False)


@pytest.fixture(scope="module")
def three(plays: Ansible, joined: None) -> None:  # noqa: ARG001
    """readygate on the cluster of three, in shadow."""
    played(plays, "site.yml")


@pytest.fixture(scope="module")
def unasked(plays: Ansible, schedulers: Schedulers, joined: None) -> None:  # noqa: ARG001
    """Agents and extenders on the cluster of three; no scheduler asks."""
    played(plays, "site.yml", tags="readygate_agent,readygate_extender")
    played(plays, SCHEDULER_OFF)
    assert schedulers.all_ask([])
