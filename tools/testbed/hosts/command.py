"""Ring 3 on the command line: a set of hosts of this machine, up until it is told otherwise.

The first one, or what READYGATE_HOSTS_SET names; `down` without it ends every set.
"""

import argparse
import os
import subprocess
import sys
import time

from tools.testbed.hosts import snapshot_cache
from tools.testbed.hosts.errors import HostsError
from tools.testbed.hosts.hosts import Hosts
from tools.testbed.hosts.layout import LAYOUTS, SET_VARIABLE, chosen

EXIT_NOT_UP = 3


def up(_: argparse.Namespace) -> int:
    hosts = Hosts(chosen(), progress=_say)
    if hosts.running():
        _say("the hosts are up already")
    else:
        hosts.up()
        hosts.leave()
    _say(f"kubeconfig {hosts.kubeconfig}")
    for words in ("ssh worker-1", "kubectl get nodes", "status", "down"):
        _say(f"{sys.executable} -m tools.testbed --ring hosts {words}")
    return 0


def down(_: argparse.Namespace) -> int:
    if os.geteuid() != 0:
        raise HostsError("only root can end the hosts")
    started = time.monotonic()
    in_use = []
    for layout in [chosen()] if os.environ.get(SET_VARIABLE) else LAYOUTS:
        try:
            Hosts(layout, progress=_say).down()
        except HostsError as e:  # the others are ended all the same
            in_use.append(str(e))
    snapshot_cache.tidy()
    if in_use:
        raise HostsError("; ".join(in_use))
    _say(f"down after {time.monotonic() - started:.1f} s")
    return 0


def status(_: argparse.Namespace) -> int:
    """Exit code 0 when the hosts are up, 3 when they are not (as systemctl does)."""
    hosts = Hosts(chosen(), progress=_say)
    if not hosts.running():
        _say("not up")
        return EXIT_NOT_UP
    for name in hosts.names:
        _say(f"{name}  {hosts.address(name)}")
    sys.stdout.write(hosts.kubectl("get", "nodes,pods", "--all-namespaces", "--output=wide").stdout)
    return 0


def ssh(arguments: argparse.Namespace) -> int:
    """`arguments.host`, `arguments.command` (empty: a shell), which the host's shell reads as ssh hands it over."""
    hosts = Hosts.found(chosen(), progress=_say)
    if arguments.host not in hosts.names:
        raise HostsError(f"no host {arguments.host}: there are {', '.join(hosts.names)}")
    argv = ["ssh", "-F", str(hosts.ssh_config), arguments.host, *arguments.command]
    return subprocess.run(argv, check=False).returncode


def kubectl(arguments: argparse.Namespace) -> int:
    """`arguments.arguments`: what kubectl shall be told."""
    hosts = Hosts.found(chosen(), progress=_say)
    argv = [hosts.kubectl_path(), f"--kubeconfig={hosts.kubeconfig}", *arguments.arguments]
    return subprocess.run(argv, check=False).returncode


def _say(text: str) -> None:
    print(f"hosts: {text}", flush=True)
