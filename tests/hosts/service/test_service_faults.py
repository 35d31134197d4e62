"""The agent as a service on three hosts: it closes its node for a fault of each kind, and by its silence when it dies.

Faults that a check finds when it looks, that the kernel tells by its log or its news of routes and links, and one where
the container runtime stands still; `make bench-faults` plays more of them, often, and measures how soon nodes close.
"""

import random
import time
from collections.abc import Iterator

import pytest

from tests.hosts.service.conftest import Service
from tests.hosts.service.node_mode import Node, Verdicts
from tests.hosts.waiting import wait_until
from tools.bench.faults import plan
from tools.faults.cache import SERVER
from tools.faults.registry import FAULTS
from tools.faults.units import UNIT
from tools.kit.programs import Program
from tools.testbed.hosts.hosts import Hosts

PLAYED = {
    "disk-read-only": "a file system has turned read-only, which a check finds",
    "log-shutdown": "the kernel's log tells of a file system that was shut down",
    "runtime-hangs": "the container runtime stands still",
    "plugin-gone": "a plugin of the kubelet was killed",
    "full-size-packets-service": "full-size packets from a Service are lost",
    "proxy-hangs": "kube-proxy stands still",
    "default-route-gone": "the default route is gone, of which the kernel tells",
    "unit-failed": "a unit of systemd has failed",
    "dns-link-gone": "the link of a node-local DNS cache is gone, of which the kernel tells",
}
CHECKS = {"filesystem", "kernel", "runtime", "plugins", "service-path"}
DNS = {"name": "dns", "dns": {"nodeLocal": SERVER}}  # of a cluster without a DNS Service
UNITS = {"name": "units", "systemdUnit": {"units": [UNIT], "socket": "/host/run/dbus/system_bus_socket"}}
PERIOD_S = 3.0  # of heartbeats


@pytest.fixture(scope="module")
def checked(hosts: Hosts, service: Service) -> Iterator[None]:
    """The checks that see these faults, on every host."""
    healed = "\n".join(line for name in PLAYED for line in FAULTS[name].heal)
    checks = plan.checks({name: hosts.address(name) for name in hosts.names})
    for name in hosts.names:
        hosts.ssh(name, healed)
    try:
        service.play(
            readygate_node_profile="fast",
            readygate_node_checks=[*(check for check in checks if check["name"] in CHECKS), DNS, UNITS],
        )
        yield
    finally:
        cleared = "\n".join(line for name in PLAYED for line in FAULTS[name].clear)
        for name in hosts.names:
            hosts.ssh(name, f"{healed}\n{cleared}", check=False)


@pytest.mark.usefixtures("checked")
@pytest.mark.parametrize("name", PLAYED, ids=list(PLAYED.values()))
def test_it_closes_its_node_and_lets_it_in_when_it_is_over(nodes: list[Node], extender: Program, name: str) -> None:
    node, fault = nodes[0], FAULTS[name]
    with Verdicts(extender, node.name).asked() as verdicts:
        began = time.monotonic()
        try:
            node.ssh("\n".join(fault.inject))
            wait_until(verdicts.is_last("closed"), lambda: f"it closes: {verdicts.seen}")
            closed_s = verdicts.seen[-1][0] - began
        finally:
            node.ssh("\n".join(fault.heal))
        wait_until(verdicts.is_last("open"), lambda: f"it opens: {verdicts.seen}")
    print(f"{name}: closed after {closed_s:.2f} s")
    assert ["open", "closed", "open"] == verdicts.words


def test_a_host_that_dies_closes_by_the_silence_of_its_agent_and_no_other_does(
    hosts: Hosts, extender: Program, seed: int
) -> None:
    """Dead for the others: its plug is pulled. It comes at any moment of the period between two beats."""
    name = hosts.layout.workers[0].name
    rest = [Verdicts(extender, other) for other in hosts.names if other != name]
    time.sleep(PERIOD_S * random.Random(seed).random())
    with Verdicts(extender, name).asked() as verdicts, rest[0].asked(), rest[1].asked():
        began = time.monotonic()
        with hosts.away(name):
            wait_until(verdicts.is_last("closed"), lambda: f"it closes: {verdicts.seen}")
        took_s = verdicts.seen[-1][0] - began
        wait_until(verdicts.is_last("open"), lambda: f"it opens: {verdicts.seen}")
    print(f"{name}: closed after {took_s:.2f} s", flush=True)
    assert [["open"], ["open"]] == [one.words for one in rest]
