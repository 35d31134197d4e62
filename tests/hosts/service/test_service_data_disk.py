"""The agent as a service on a host whose data disk is missing: the node is closed until it is mounted."""

from collections.abc import Iterator

import pytest

from tests.hosts.service.conftest import Service
from tests.hosts.service.node_mode import Node, Verdicts
from tests.hosts.waiting import wait_until
from tools.faults.filesystem import DISK
from tools.faults.registry import FAULTS
from tools.kit.programs import Program
from tools.testbed.hosts.hosts import Hosts

FAULT = FAULTS["disk-not-mounted"]
CHECK = {"name": "data-disk", "filesystem": {"mounts": [f"/host{DISK}"], "mountPoint": "required"}}


@pytest.fixture
def mounted(hosts: Hosts, service: Service) -> Iterator[None]:
    """All hosts have the disk: the role takes no agent that is not healthy."""
    for name in hosts.names:
        hosts.ssh(name, "\n".join(FAULT.heal))
    try:
        service.play(readygate_node_profile="fast", readygate_node_checks=[CHECK])
        yield
    finally:
        for name in hosts.names:
            hosts.ssh(name, "\n".join((*FAULT.heal, *FAULT.clear)), check=False)


@pytest.mark.usefixtures("mounted")
def test_a_missing_data_disk_closes_its_node_until_it_is_mounted(nodes: list[Node], extender: Program) -> None:
    """It is missing when the agent starts, and the mount reaches the service while it runs."""
    node = nodes[0]
    with Verdicts(extender, node.name).asked() as verdicts:
        node.ssh("\n".join(("systemctl stop readygate-node", *FAULT.inject, "systemctl start readygate-node")))
        wait_until(verdicts.is_last("closed"), lambda: f"it closes: {verdicts.seen}")
        node.ssh("\n".join(FAULT.heal))
        wait_until(verdicts.is_last("open"), lambda: f"it opens: {verdicts.seen}")
