"""The cluster of several control planes, booted for this folder's tests and ended with them."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from images.build import TAG, readygate_image
from tests.hosts.controls.schedulers import Schedulers
from tests.hosts.deployment.api import AdminApi
from tests.hosts.deployment.playbook import Ansible, Run
from tests.testbed.hosts.errors import HostsError
from tests.testbed.hosts.hosts import Hosts
from tests.testbed.hosts.layers import CNI_BIN_DIR
from tests.testbed.hosts.layout import THREE_CONTROLS

ARTEFACTS = Path(__file__).parents[3] / "build" / "artefacts" / "controls"


@pytest.fixture(scope="package")
def controls(request: pytest.FixtureRequest) -> Iterator[Hosts]:
    """Two control planes that are Ready, and control-3, which is in no cluster yet."""
    request.getfixturevalue("able")
    reporter = request.config.pluginmanager.get_plugin("terminalreporter")

    def progress(text: str) -> None:
        if reporter is not None:
            reporter.write_line(f"controls: {text}")

    found = Hosts(THREE_CONTROLS, progress=progress)
    reuse = os.environ.get("READYGATE_HOSTS_REUSE") == "1" and found.running()
    cause = ""
    try:
        if not reuse:
            found.up()
    except HostsError as e:
        cause = str(e)
    if cause:
        pytest.fail(f"the control planes did not start: {cause}", pytrace=False)
    try:
        yield found
    finally:
        if request.session.testsfailed:
            found.collect_logs(ARTEFACTS)
        if not reuse:
            found.down()


@pytest.fixture(scope="package")
def admin(controls: Hosts, tmp_path_factory: pytest.TempPathFactory) -> AdminApi:
    return AdminApi(controls.kubeconfig, tmp_path_factory.mktemp("controls-admin"))


@pytest.fixture(scope="package")
def schedulers(controls: Hosts, admin: AdminApi) -> Schedulers:
    return Schedulers(controls, admin)


@pytest.fixture(scope="package")
def plays(controls: Hosts, tmp_path_factory: pytest.TempPathFactory) -> Ansible:
    ARTEFACTS.mkdir(parents=True, exist_ok=True)
    controls.import_image(readygate_image(controls.progress))
    variables = {"readygate_agent_cni_bin_dirs": [CNI_BIN_DIR], "readygate_agent_min_ready_seconds": 3}
    variables["readygate_image"] = TAG
    return Ansible(controls, tmp_path_factory.mktemp("controls-ansible"), ARTEFACTS, variables)


@pytest.fixture(scope="package")
def untouched(schedulers: Schedulers) -> dict[str, str]:
    """The manifests of kube-scheduler as kubeadm made them, by host."""
    return {name: schedulers.manifest(name) for name in ("control-1", "control-2")}


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
