"""A control group for each host, so that its systemd, containerd and kubelet see and end only what is theirs.

With one tree for all hosts, `systemctl restart kubelet` on one would look for the processes of three.

A set of hosts stands for machines of its own. Where more is to be computed than this machine can, all of a set would
get as much as one process of another test: it has a weight that lets it have what it needs.

cgroup v1: a group in each hierarchy below the group of whoever starts the hosts, bound into the host as /sys/fs/cgroup.
cgroup v2: a group below the root with the controllers switched on; systemd-nspawn mounts it itself.
"""

import os
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_CONTROLLERS = ("+cpu", "+cpuset", "+io", "+memory", "+pids")
_END_LIMIT_S = 30.0
# Of the group of a set of hosts: file -> how much of the processors, by v1 (where one has 1024) and by v2 (100).
_WEIGHTS = {"cpu.shares": "8192", "cpu.weight": "800"}


@dataclass(frozen=True)
class Groups:
    """`folders`: this host's group in each hierarchy (v2: one). `bind`: what goes over /sys/fs/cgroup, None on v2."""

    folders: list[Path]
    bind: Path | None


def make(name: str, bind: Path) -> Groups:
    """Creates the groups called `name` (a path of one or two parts) and, on v1, mounts them under the folder `bind`."""
    if (_ROOT / "cgroup.controllers").exists():
        group = _ROOT / name
        group.mkdir(parents=True, exist_ok=True)
        for parent in [_ROOT, *reversed(group.parents[: len(Path(name).parts) - 1])]:
            for controller in _CONTROLLERS:
                with suppress(OSError):  # a kernel without it
                    (parent / "cgroup.subtree_control").write_text(controller)
        _weigh(group)
        return Groups(folders=[group], bind=None)
    bind.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755,size=1m", "rg-cgroup", str(bind)], check=True)
    folders = []
    own = _own_groups()
    for hierarchy in sorted(path for path in _ROOT.iterdir() if path.is_mount()):
        group = hierarchy / own.get(hierarchy.name, "") / name
        for folder in (group.parent, group):
            _make_group(folder)
        _weigh(group)
        target = bind / hierarchy.name
        target.mkdir()
        subprocess.run(["mount", "--bind", str(group), str(target)], check=True)
        folders.append(group)
    for link in (path for path in _ROOT.iterdir() if path.is_symlink()):  # cpu -> cpu,cpuacct
        (bind / link.name).symlink_to(link.readlink())
    return Groups(folders=folders, bind=bind)


def _own_groups() -> dict[str, str]:
    """Folder name of the hierarchy -> our own group in it, without the leading slash."""
    groups = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        groups[controllers.removeprefix("name=") or "unified"] = path.lstrip("/")
    return groups


def _make_group(folder: Path) -> None:
    if folder.exists():
        return
    folder.mkdir(parents=True)
    for name in ("cpuset.cpus", "cpuset.mems"):  # empty in a new group, and then no process may enter
        if (folder / name).exists():
            (folder / name).write_text((folder.parent / name).read_text())


def _weigh(group: Path) -> None:
    """Of a host's group: the one above it, of its set."""
    for name, weight in _WEIGHTS.items():
        if (group.parent / name).exists():
            (group.parent / name).write_text(weight)


def kill(folders: list[Path]) -> None:
    """Ends every process in these groups. What is gone already is fine."""
    deadline = time.monotonic() + _END_LIMIT_S
    while pids := {pid for folder in folders for pid in _pids(folder)}:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            break
        time.sleep(0.02)


def end(folders: list[Path]) -> None:
    """Ends every process in these groups and removes the groups. What is gone already is fine."""
    kill(folders)
    deadline = time.monotonic() + _END_LIMIT_S
    # One that was killed is no more to be seen in its group some time before the kernel lets the group go.
    while left := [folder for folder in folders if not _is_removed(folder)]:
        if time.monotonic() > deadline:
            break
        kill(left)
        time.sleep(0.02)
    for folder in folders:
        with suppress(OSError):  # the other hosts' groups are in it until the last one goes
            folder.parent.rmdir()


def _is_removed(folder: Path) -> bool:
    for group, _, _ in os.walk(folder, topdown=False):
        with suppress(OSError):
            Path(group).rmdir()
    return not folder.exists()


def _pids(folder: Path) -> set[int]:
    pids: set[int] = set()
    for group, _, files in os.walk(folder):
        if "cgroup.procs" in files:
            with suppress(OSError):
                pids.update(int(pid) for pid in (Path(group) / "cgroup.procs").read_text().split())
    return pids - {0, os.getpid()}
