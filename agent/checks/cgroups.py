"""Finds the control group of all pods: the kubelet makes it below its `cgroupRoot`, in the form of its cgroup driver.

    cgroupRoot     driver cgroupfs      driver systemd
    none, or /     kubepods             kubepods.slice
    /kubelet       kubelet/kubepods     kubelet.slice/kubelet-kubepods.slice

Mirrors pkg/kubelet/cm (cgroup_manager_linux.go, ToSystemd; container_manager_linux.go). Kubelet 1.7 made
ROOT/kubepods.slice (kubernetes#49281).
"""

import os
from collections.abc import Iterator
from pathlib import Path

from agent.checks.kernel_files import CannotLookError, NotThereError, number_of

NEEDS = "the host's control groups (/sys/fs/cgroup)"
FORMS = "kubepods, kubepods.slice or *-kubepods.slice"
DEPTH = 6  # levels below the hierarchy; a rootless kubelet's is at the sixth
AT_MOST = 10_000  # groups that one search opens
_CONTAINER_ID = 64  # hexadecimal digits: a group of this name is one container's


def group_of_pods(cgroup: str, root: str | None) -> str:
    """The path of it. `cgroup`: where control groups are mounted, of version 1 or 2. `root`: the kubelet's cgroupRoot;
    None where that is not known: then / comes first, unless no pod has a thread there.

    Raises NotThereError where the machine has none, CannotLookError where the search could not end or finds several.
    """
    hierarchy = _hierarchy(cgroup)
    configured = [path for name in _names(root or "/") if _is_there(path := f"{hierarchy}/{name}")]
    used = [path for path in configured if _has_threads(path)]
    if used or (configured and root is not None):
        return _only(used) if used else configured[0]
    found = list(_search(hierarchy, none_there=not configured))
    used = [path for path in found if _has_threads(path)]
    if not configured and not found:
        raise NotThereError(f"{hierarchy} has no group {FORMS} on {DEPTH} levels: needs one, as cgroupsPerQOS makes it")
    return _only(used) if used else (configured or found)[0]


def _hierarchy(cgroup: str) -> str:
    """Of version 1 each controller has one of its own."""
    if not _is_there(cgroup):
        raise NotThereError(f"{cgroup} is not there: needs {NEEDS}")
    one = f"{cgroup}/pids"
    return one if _is_there(one) and not _is_there(f"{cgroup}/cgroup.controllers") else cgroup


def _is_there(path: str) -> bool:
    """Raises CannotLookError where a folder on the way cannot be searched."""
    try:
        return Path(path).exists()
    except OSError as e:
        raise CannotLookError(f"{path} cannot be read ({e.strerror}): needs {NEEDS}") from e


def _names(root: str) -> list[str]:
    parts = [part for part in root.split("/") if part]
    escaped = [part.replace("-", "_") for part in parts] + ["kubepods"]
    slices = ["-".join(escaped[: count + 1]) + ".slice" for count in range(len(escaped))]
    names = ["/".join(slices), "/".join([*parts, "kubepods"]), "/".join([*parts, "kubepods.slice"])]
    return list(dict.fromkeys(names))


def _has_threads(group: str) -> bool:
    """A group without any is a leftover, of another cgroup driver or root, or of a node without pods."""
    try:
        return number_of(f"{group}/pids.current", NEEDS) > 0
    except CannotLookError:
        return False


def _only(groups: list[str]) -> str:
    if len(groups) > 1:
        raise CannotLookError(
            f"{' and '.join(groups)} may each be the group of the pods: needs the kubelet's `cgroupRoot`"
        )
    return groups[0]


def _search(hierarchy: str, *, none_there: bool) -> Iterator[str]:
    """Level by level, by name. Not below the pods' group, nor in containers, where another kubelet may run, as kind's.
    `none_there`: then what could not be read is an error."""
    level, opened = [hierarchy], 0
    unread, found = "", False
    for _ in range(DEPTH):
        below: list[str] = []
        for path in level:
            opened += 1
            try:
                with os.scandir(path) as entries:
                    names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
            except FileNotFoundError:  # it has just gone
                continue
            except OSError as e:
                unread = unread or f"{path} cannot be read ({e.strerror}): needs {NEEDS}"
                continue
            for name in names:
                if _is_of_pods(name):
                    found = True
                    yield f"{path}/{name}"
                elif not _is_container(name):
                    below.append(f"{path}/{name}")
        level = below[: max(0, AT_MOST - opened)]
        if len(level) < len(below):
            unread = unread or f"{hierarchy} has more than {AT_MOST} groups: needs the kubelet's `cgroupRoot`"
    if unread and none_there and not found:
        raise CannotLookError(unread)


def _is_of_pods(name: str) -> bool:
    return name in ("kubepods", "kubepods.slice") or name.endswith("-kubepods.slice")


def _is_container(name: str) -> bool:
    """Of containerd, CRI-O, Docker, Podman, systemd-nspawn or LXC."""
    is_id = len(name) == _CONTAINER_ID and not name.strip("0123456789abcdef")
    return is_id or name.endswith(".scope") or name in ("payload", "lxc") or name.startswith("lxc.")
