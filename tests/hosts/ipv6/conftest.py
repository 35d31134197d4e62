"""The cluster that speaks IPv6 alone, booted for this folder's tests and ended with them; readygate on it."""

import ipaddress
from collections.abc import Iterator
from typing import Any

import pytest

from images.build import readygate_image
from tests.hosts.conftest import booted, with_image
from tests.hosts.deployment.api import AdminApi
from tests.hosts.deployment.conftest import ARMED, SchedulerFiles, ansible_for, scheduler_files
from tests.hosts.deployment.playbook import Ansible, Run
from tools.testbed.hosts.hosts import Hosts
from tools.testbed.hosts.layout import IPV6

CONTROL, WORKER = "control-1", "worker-1"
API_SERVICE = str(ipaddress.ip_network(IPV6.network.services)[1])
# In pods and as a service, beside the ready-made ones: by TCP to a host, by HTTP to a Service.
CHECKS = [
    {"name": "neighbour", "tcpSocket": {"host": IPV6.first.address, "port": 22}, "periodSeconds": 1},
    {"name": "api", "httpGet": {"host": API_SERVICE, "port": 443, "path": "/livez", "scheme": "HTTPS"}},
]
HOSTS = [peer.address for peer in IPV6.peers]
# As a service alone: with the host's network.
PATH = {"service": API_SERVICE, "apiServers": HOSTS[:1], "peers": HOSTS, "proxy": "127.0.0.1"}


@pytest.fixture(scope="package")
def six(request: pytest.FixtureRequest) -> Iterator[Hosts]:
    """Two Ready nodes."""
    with booted(request, IPV6, "ipv6") as found:
        yield found


@pytest.fixture(scope="package")
def admin(six: Hosts, tmp_path_factory: pytest.TempPathFactory) -> AdminApi:
    return AdminApi(six.kubeconfig, tmp_path_factory.mktemp("ipv6-admin"))


@pytest.fixture(scope="package")
def plays(six: Hosts, tmp_path_factory: pytest.TempPathFactory) -> Ansible:
    return ansible_for(six, with_image(six), tmp_path_factory.mktemp("ipv6-ansible"), "ipv6")


@pytest.fixture(scope="package")
def before(six: Hosts, admin: AdminApi) -> SchedulerFiles:
    return scheduler_files(six, admin)


@pytest.fixture(scope="package")
def deployed_with(six: Hosts) -> dict[str, Any]:
    """Agents in pods, and as a service beside them."""
    return {
        **ARMED,
        "readygate_agent_form": "both",
        "readygate_agent_check_profile": "default",
        "readygate_agent_leave_out": ["connection-tables"],  # a kernel has the neighbours' of its first namespace alone
        "readygate_agent_checks": CHECKS,
        "readygate_node_checks": [*CHECKS, {"name": "service-path", "servicePath": PATH}],
        "readygate_node_archives": [str(readygate_image(six.progress))],
        "readygate_node_serial": ["100%"],
        "readygate_node_min_ready_seconds": 2,
    }


@pytest.fixture(scope="package")
def deployed(plays: Ansible, before: SchedulerFiles, deployed_with: dict[str, Any]) -> Run:  # noqa: ARG001
    """By one run of site.yml."""
    run = plays.run("site.yml", **deployed_with)
    if run.code != 0:
        pytest.fail(f"site.yml failed: {run.told()}", pytrace=False)
    return run
