"""The kernel tells of the way out of a machine: in a network of its own, by what a child process there sees."""

import json
import os
import shutil
import subprocess
import sys

import msgspec
import pytest

from agent.checks.catalogue import KINDS
from agent.kernel.netlink import RouteWatch
from tools.kit.ability import cannot_run

NETWORK = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--net"]
LOOK = """
import json, select, subprocess, sys
from agent.kernel.netlink import RouteWatch

def run(command):
    subprocess.run(command.split(), check=True, capture_output=True)

def told(routes):
    found = bool(select.select([routes.descriptor()], [], [], 0.2)[0])
    routes.taken()
    return found and not select.select([routes.descriptor()], [], [], 0)[0]

run("ip link add one type veth peer name beyond")
run("ip link set beyond up")
run("ip link set lo up")
run("ip link set one up")
run("ip address add 192.0.2.1/24 dev one")
routes = RouteWatch()
routes.taken()
said = []
for command in json.loads(sys.argv[1]):
    run(command)
    said.append(told(routes))
print(json.dumps(said))
"""
# In this order; whether it is told.
STORY = {
    "ip route add default via 192.0.2.2": True,
    "ip route add 198.51.100.0/24 via 192.0.2.3": False,
    "ip link add two type veth peer name of-a-pod": True,
    "ip link set of-a-pod up": True,
    "ip link set two up": True,
    "ip address add 203.0.113.1/24 dev two": False,
    "ip route del 198.51.100.0/24": False,
    "ip route del default": True,
    "ip link set one down": True,
    "ip link set one up": True,
    "ip route add default via 192.0.2.2 ": True,
}


def test_default_routes_and_links_that_are_down_are_told_and_nothing_else_of_pods() -> None:
    """A link that comes up does not run at first, so that is told too; what pods get of addresses and routes is not."""
    if not shutil.which("ip") or subprocess.run([*NETWORK, "true"], capture_output=True, check=False).returncode:
        cannot_run("no network namespace, or no ip")
    done = subprocess.run(
        [*NETWORK, sys.executable, "-c", LOOK, json.dumps(list(STORY))],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert STORY == dict(zip(STORY, json.loads(done.stdout), strict=True))


def test_where_the_kernel_gives_no_such_socket_the_check_has_its_period(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_given: object) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr("agent.kernel.netlink.socket.socket", refused)
    routes = RouteWatch()
    routes.taken()
    assert routes.descriptor() is None
    routes.close()


@pytest.mark.parametrize("kind", ["dns", "servicePath"])
def test_who_looks_at_the_way_out_is_told_of_it(kind: str) -> None:
    given = msgspec.convert({"service": "192.0.2.1"}, KINDS[kind].settings)
    made = KINDS[kind].make(given, 0.05)
    try:
        made()
        assert made.descriptor() is not None  # type: ignore[attr-defined]
    finally:
        made.close()  # type: ignore[attr-defined]
