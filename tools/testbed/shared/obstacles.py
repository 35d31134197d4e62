"""What this machine lacks, found before anything is built: each obstacle one line with its remedy."""

import os
import shutil
import sys
from pathlib import Path

from tools.kit.cache import cache_folder
from tools.testbed.shared import binaries
from tools.testbed.shared.runs import runs_folder

GIB = 1 << 30
_RUN_GIB = 0.6  # what four control planes write beside etcd, and etcd's data where /dev/shm is too small
_HOSTS_GIB = 5  # two file systems made from Debian's archive, images, what two sets of three hosts write


def disk_space(*, hosts: bool = False) -> list[str]:
    """hosts: of ring 3 as well."""
    wanted = {runs_folder(): (_RUN_GIB, "TMPDIR")}
    cache_gib = (0 if binaries.made() else binaries.FIRST_BUILD_GIB) + (_HOSTS_GIB if hosts else 0)
    if cache_gib:
        wanted[cache_folder()] = (cache_gib, "XDG_CACHE_HOME")
    return [lack for folder, (gib, variable) in wanted.items() if (lack := too_little(folder, gib, variable))]


def too_little(folder: Path, gib: float, variable: str) -> str:
    """ "" when so much is free there. variable: names another place."""
    free = shutil.disk_usage(folder).free / GIB
    if free >= gib:
        return ""
    return f"{folder} has {free:.2f} GiB free, {gib:g} are needed: make room or name another place by {variable}"


def of_hosts() -> list[str]:
    """What only a person can give to ring 3; packages that can be installed are none."""
    if sys.platform != "linux":
        return ["ring 3 needs Linux"]
    if os.geteuid() != 0:
        return ["ring 3 needs root, it boots systemd hosts: sudo make test"]
    if shutil.which("apt-get") is None or shutil.which("dpkg-query") is None:
        return ["ring 3 needs Debian or Ubuntu: it installs what it lacks by apt-get"]
    return []
