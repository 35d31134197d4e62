"""Who listens at a port of a host, and whether an ordinary user of the host can take it in his place."""

import re

from tests.hosts.waiting import wait_for
from tools.testbed.hosts.hosts import Hosts

TRIES_S = 15
USER = 69376
NO_RIGHTS = {"CapPrm:\t0000000000000000", "CapEff:\t0000000000000000", "NoNewPrivs:\t1"}
# Takes the port whenever it is free, as who wants to be asked in the extender's place.
_THIEF = f"""
import os, socket, sys, time
os.setgid(1000); os.setuid(1000)
ends = time.monotonic() + {TRIES_S}
taken = 0
while time.monotonic() < ends:
    for option in (None, socket.SO_REUSEADDR, socket.SO_REUSEPORT):
        with socket.socket() as sock:
            if option:
                sock.setsockopt(socket.SOL_SOCKET, option, 1)
            try:
                sock.bind(('127.0.0.1', int(sys.argv[1])))
                taken += 1
            except OSError:
                pass
print(taken)
"""


def statuses(hosts: Hosts, port: int) -> list[list[str]]:
    """The lines of /proc/PID/status of each process that listens there."""
    listening = hosts.ssh(
        "control-1", f"ss --no-header --listening --tcp --numeric --processes 'sport = :{port}'"
    ).stdout
    pids = re.findall(r"\bpid=([0-9]+)", listening)
    return [hosts.ssh("control-1", f"cat /proc/{pid}/status").stdout.splitlines() for pid in pids]


def is_without_rights(status: list[str]) -> bool:
    return {*NO_RIGHTS, "Uid:" + f"\t{USER}" * 4, "Gid:" + f"\t{USER}" * 4} <= set(status)


def taken_while_it_starts_again(hosts: Hosts, port: int) -> int:
    """How often an ordinary user got the port while the extender was killed and came back; it answers again then."""
    hosts.ssh("control-1", "cat > /root/thief.py", stdin=_THIEF)
    kill = "sleep 1; pkill -9 --full 'bin/readygate-extender'"
    hosts.ssh("control-1", f"python3 /root/thief.py {port} > /root/thief.log & {kill}")
    ready = f"curl --silent --fail --max-time 2 http://127.0.0.1:{port}/readyz"
    assert wait_for(lambda: hosts.ssh("control-1", ready, check=False).returncode == 0)
    (taken,) = wait_for(lambda: hosts.ssh("control-1", "cat /root/thief.log").stdout.split())
    return int(taken)
