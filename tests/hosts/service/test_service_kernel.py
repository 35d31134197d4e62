"""What the kernel tells and counts: its log of a GPU, its clock, stalls, threads, files, and how long a sync takes.

The hosts have one kernel. Its log and its clock are there for all of them, so the service of one host alone looks at
these; open files, which it counts as a whole, are played on a copy of /proc (tools/faults).
"""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.hosts.service.conftest import FIRST, Service
from tests.hosts.service.node_mode import Node, Verdicts
from tests.hosts.waiting import wait_until
from tools.bench.faults import plan
from tools.faults.registry import FAULTS
from tools.faults.stalls import PROC as STALLS
from tools.faults.tables import PROC
from tools.kit.programs import Program
from tools.testbed.hosts.hosts import Hosts

CLOSES = {
    "gpu-xid": ("gpu-xid", "a GPU has fallen off the bus, of which the kernel's log tells"),
    "time-lost": ("time", "no time service keeps the clock any more"),
    "stalls": ("stalls", "everybody waits for a disk"),
    "threads-out": ("threads", "the node runs as many threads as it may"),
    "files-out": ("files", "the node can hardly open a file"),
    "syncs-hang": ("syncs", "a sync does not come back"),
}
SLOW = "syncs-slow"


@pytest.fixture(scope="module")
def checked(hosts: Hosts, service: Service) -> Iterator[Service]:
    """The checks that see these faults, on one host."""
    faults = [FAULTS[name] for name in (*CLOSES, SLOW)]
    healed = "\n".join(line for fault in faults for line in fault.heal)
    checks = plan.checks({name: hosts.address(name) for name in hosts.names})
    here = [check for check in checks if check["name"] in {name for name, _ in CLOSES.values()}]
    for name in hosts.names:
        hosts.ssh(name, healed)
    try:
        service.play(
            readygate_node_profile="fast",
            readygate_node_checks=f"{{{{ {here!r} if inventory_hostname == {FIRST!r} else [] }}}}",
            readygate_node_host_paths=[PROC, STALLS],
        )
        yield service
    finally:
        cleared = "\n".join(line for fault in faults for line in fault.clear)
        for name in hosts.names:
            hosts.ssh(name, f"{healed}\n{cleared}", check=False)


def says(node: Node, name: str, state: str) -> Callable[[], bool]:
    return lambda: node.checks().get(name, {}).get("state") == state


@pytest.mark.parametrize("name", CLOSES, ids=[what for _, what in CLOSES.values()])
def test_it_closes_the_one_node_whose_service_looks_at_it(checked: Service, extender: Program, name: str) -> None:
    node, *others = checked.nodes
    fault, (check, _) = FAULTS[name], CLOSES[name]
    wait_until(says(node, check, "passed"), lambda: f"{check} passes: {node.checks()}")
    with ExitStack() as stack:
        beside = [stack.enter_context(Verdicts(extender, other.name).asked()) for other in others]
        verdicts = stack.enter_context(Verdicts(extender, node.name).asked())
        began = time.monotonic()
        try:
            node.ssh("\n".join(fault.inject))
            wait_until(verdicts.is_last("closed"), lambda: f"it closes: {verdicts.seen}")
            closed_s = verdicts.seen[-1][0] - began
            said = node.checks()[check]
        finally:
            node.ssh("\n".join(fault.heal))
        over = time.monotonic()
        wait_until(verdicts.is_last("open"), lambda: f"it opens: {verdicts.seen}")
        opened_s = verdicts.seen[-1][0] - over
    print(f"{name}: closed after {closed_s:.2f} s, open {opened_s:.2f} s after it was healed: {said['output']}")
    assert ["open", "closed", "open"] == verdicts.words
    assert [["open"]] * len(others) == [each.words for each in beside]


def test_slow_syncs_warn_until_a_hundred_have_been_quick_and_close_nothing(checked: Service, extender: Program) -> None:
    node, fault = checked.nodes[0], FAULTS[SLOW]
    wait_until(says(node, "syncs", "passed"), lambda: f"it passes: {node.checks()}")
    with Verdicts(extender, node.name).asked() as verdicts:
        began = time.monotonic()
        try:
            node.ssh("\n".join(fault.inject))
            wait_until(says(node, "syncs", "warned"), lambda: f"it warns: {node.checks()}")
            warned_s, said = time.monotonic() - began, node.checks()["syncs"]["output"]
        finally:
            node.ssh("\n".join(fault.heal))
        over = time.monotonic()
        wait_until(says(node, "syncs", "passed"), lambda: f"it passes: {node.checks()}")
        passed_s = time.monotonic() - over
    print(f"{SLOW}: warned after {warned_s:.1f} s, passed {passed_s:.1f} s after it was healed: {said}")
    assert (["open"], True) == (verdicts.words, "syncs p99 7" in said)
