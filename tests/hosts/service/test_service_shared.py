"""Servers of the whole cluster that answer with errors: each node sees it, and none is closed for it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.hosts.service.conftest import Service
from tests.hosts.service.node_mode import Verdicts
from tests.hosts.waiting import wait_until
from tools.kit.programs import Program
from tools.testbed.hosts.hosts import Hosts
from tools.testbed.shared import nameserver

UNIT, FILE = "readygate-test-dns", "/root/readygate-test-nameserver.py"
NAME = "kubernetes.default.svc.cluster.local"


@contextmanager
def name_server(hosts: Hosts) -> Iterator[Callable[[str], None]]:
    """On the control plane's host, once it is told what to say of the API server's name."""
    first = hosts.layout.first
    hosts.ssh(first.name, f"cat > {FILE}", stdin=Path(nameserver.__file__).read_text())
    run = f"systemd-run --unit={UNIT} --collect --quiet python3 {FILE} {first.address} 53"

    def say(address: str) -> None:
        hosts.ssh(first.name, f"systemctl stop {UNIT} 2>/dev/null; {run} {NAME}={address}")

    try:
        yield say
    finally:
        hosts.ssh(first.name, f"systemctl stop {UNIT}; rm -f {FILE}", check=False)


def test_dns_servers_that_fail_for_everybody_close_no_node(service: Service, extender: Program, hosts: Hosts) -> None:
    first, node = hosts.layout.first.address, service.nodes[0]
    check = {"name": "dns", "dns": {"service": first, "servers": [first]}}  # it gates

    def wait(state: str, words: str = "") -> None:
        def look() -> bool:
            told = [one.checks().get("dns", {}) for one in service.nodes]
            return all(one.get("state") == state and words in one.get("output", "") for one in told)

        wait_until(look, lambda: f"{state}: {node.checks()}")

    with name_server(hosts) as say:
        say("10.96.0.1")
        service.play(readygate_node_profile="fast", readygate_node_checks=[check])
        wait("passed")
        with Verdicts(extender, node.name).asked() as verdicts:
            say("SERVFAIL")
            wait("shared", "SERVFAIL")
            say("10.96.0.1")
            wait("passed")
    assert ["open"] == verdicts.words
