"""Removes what a run of ring 3 made, finished or crashed, and nothing else.

Processes are known by id and start time or by being in a control group that is ours; mounts by lying below the run
folder; namespaces, links and the bridge by names only this ring uses.
"""

import os
import shutil
import signal
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from tools.kit.pid import ProcessId
from tools.testbed.hosts import cgroups
from tools.testbed.hosts import network as links
from tools.testbed.hosts.errors import HostsError
from tools.testbed.hosts.limits import Limits
from tools.testbed.hosts.machine import Machine
from tools.testbed.hosts.network import Network
from tools.testbed.hosts.state import RunFolder, State

_END_LIMIT_S = 60.0


def remove(run: RunFolder, network: Network, machines: Sequence[Machine]) -> None:
    """The caller holds the run folder's lock. Raises HostsError when a process does not end."""
    state = run.read() or State()
    for process in state.processes.values():
        process.signal(signal.SIGKILL)  # takes the host with it: its init dies with systemd-nspawn
    cgroups.end([Path(folder) for folder in state.cgroups])
    _wait_gone(state.processes.values())
    run.unmount()
    links.remove(network, [machine.peer for machine in machines])
    for machine in machines:
        machine.forget()
    if run.path.exists():
        # Each host's own in a thread: thousands of files of images, and the disk is waited for.
        with ThreadPoolExecutor(max_workers=len(machines)) as pool:
            list(pool.map(lambda machine: shutil.rmtree(machine.folder, ignore_errors=True), machines))
        shutil.rmtree(run.path)
    Limits(run.path.parent).put_back_for(run.path.name)


def keep_consoles(run: RunFolder, machines: Iterable[Machine]) -> None:
    """Copies the consoles of a start that failed to where they outlive the run folder."""
    for machine in machines:
        with suppress(OSError):
            shutil.copyfile(machine.console, run.path.with_name(f"{machine.peer.name}-failed-console.log"))


def pull_plug(process: ProcessId, machine: Machine, groups: list[str]) -> None:
    """Ends one host and leaves all that was made for it. Raises HostsError when it does not end."""
    process.signal(signal.SIGKILL)
    cgroups.kill(machine.find_groups(groups))
    _wait_gone([process])
    machine.forget()


def _wait_gone(processes: Iterable[ProcessId]) -> None:
    deadline = time.monotonic() + _END_LIMIT_S
    for process in processes:
        while process.alive():
            if time.monotonic() > deadline:
                raise HostsError(
                    f"process {process.pid} (systemd-nspawn) does not end: see ps -o pid,stat,wchan {process.pid}"
                )
            time.sleep(0.02)
        with suppress(ChildProcessError):  # it was started by another process
            os.waitpid(process.pid, os.WNOHANG)
