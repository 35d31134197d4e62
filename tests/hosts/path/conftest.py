"""The plays of the story, each once, in their order: a fixture asks for the one before it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from images.build import readygate_image
from kube import contract
from tests.hosts.deployment.api import AdminApi
from tests.hosts.deployment.conftest import SchedulerFiles, ansible_for, namespaces, scheduler_files
from tests.hosts.deployment.landing import Asking
from tests.hosts.deployment.playbook import Ansible, Run
from tools.testbed.hosts.hosts import Hosts

# A fault closes its node within seconds, and a node opens at once, however many faults it had before.
BASE: dict[str, Any] = {
    "readygate_agent_profile": "fast",
    # What a busy machine needs, where a play would give up and put the earlier version back.
    "readygate_extender_static_timeout_seconds": 240,
    "readygate_extender_static_silence_seconds": 60,
    "readygate_scheduler_config_health_timeout_seconds": 240,
    "readygate_extender_configuration": {"gates": [{"damping": False}]},
}
# All that differs from a first install at once: armed, the extender as a static pod, the agent as a service too.
CHANGED: dict[str, Any] = {
    **BASE,
    "readygate_enforcement": "armed",
    "readygate_scheduler_config_mode": "enforce",
    "readygate_agent_form": "both",
    "readygate_node_serial": ["100%"],
    "readygate_node_min_ready_seconds": 1,
    "readygate_node_ready_timeout_seconds": 180,
}
# All that plays write on a host: files, units of every kind, users, and files where checks write.
TRACES = (
    "ls -A /opt; find /etc/kubernetes /opt/readygate /etc/systemd /run/systemd/system /run/readygate* /etc/passwd"
    " /etc/group -printf '%p %y %s %l\\n' 2>/dev/null | sort;"
    # But for the kubelet's own files of its first pods, and the empty folder that it makes for the agent's pod.
    " find /var/lib/kubelet -maxdepth 1 ! -name '*_pods_state' ! -name readygate -printf '%p %y\\n' | sort;"
    " systemctl list-units --all --plain --no-legend 'readygate*'"
)


@dataclass(frozen=True)
class Before:
    """The cluster before readygate. files: of kube-scheduler; traces: by host."""

    files: SchedulerFiles
    traces: dict[str, str]


@dataclass(frozen=True)
class Changed:
    """The play to the other forms. answered: the URLs at which the extender answered in the meantime; missed: each
    question to it without an answer."""

    run: Run
    answered: set[str]
    missed: list[str]


def traces(hosts: Hosts) -> dict[str, str]:
    return {name: hosts.ssh(name, TRACES, check=False).stdout for name in hosts.names}


@pytest.fixture(scope="package")
def api(hosts: Hosts, tmp_path_factory: pytest.TempPathFactory) -> AdminApi:
    return AdminApi(hosts.kubeconfig, tmp_path_factory.mktemp("path-admin"))


@pytest.fixture(scope="package")
def ansible(hosts: Hosts, image: str, tmp_path_factory: pytest.TempPathFactory) -> Ansible:
    return ansible_for(hosts, image, tmp_path_factory.mktemp("path-ansible"), "path")


@pytest.fixture(scope="package")
def before(hosts: Hosts, api: AdminApi, image: str) -> Before:  # noqa: ARG001
    return Before(scheduler_files(hosts, api), traces(hosts))


@pytest.fixture(scope="package")
def installed(api: AdminApi, ansible: Ansible, before: Before) -> Iterator[Run]:  # noqa: ARG001
    """site.yml for the first time: agents in pods, the extender as a DaemonSet, in shadow and mode protect."""
    run = ansible.run("site.yml", **BASE)
    assert run.code == 0, run.told()
    yield run
    if contract.NAMESPACE in namespaces(api):  # a test failed before the last module
        ansible.run("uninstall.yml", **CHANGED)


@pytest.fixture(scope="package")
def changed(hosts: Hosts, ansible: Ansible, installed: Run) -> Changed:  # noqa: ARG001
    """site.yml with CHANGED: every role of the collection has something to do."""
    with Asking(hosts) as asking:
        run = ansible.run("site.yml", **CHANGED, **archives(hosts))
        assert run.code == 0, run.told()
        return Changed(run, *asking.told())


@pytest.fixture(scope="package")
def removed(ansible: Ansible, changed: Changed) -> Run:  # noqa: ARG001
    run = ansible.run("uninstall.yml", **CHANGED)
    assert run.code == 0, run.told()
    return run


def archives(hosts: Hosts) -> dict[str, list[str]]:
    return {"readygate_node_archives": [str(Path(readygate_image(hosts.progress)))]}
