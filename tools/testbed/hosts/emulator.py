"""Programs for arm64 on a machine that is none: QEMU's emulator of one process, from Debian's archive, cached.

The kernel is told of it in a user name space of its own, which since Linux 6.7 may have its own list of such programs:
nothing of it is seen on the machine, and all of it goes with the last process. So what a program starts runs too.
"""

import platform
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from images.cache import cached, key_of
from images.commands import Progress
from images.rootfs import SUITE, mmdebstrap

_PACKAGE, _PROGRAM = "qemu-user-static", "usr/bin/qemu-aarch64-static"
# Of binfmt_misc: ELF, 64 bit, little endian, for machine 183, executable or position independent. F: opened at once, so
# that it is found from within another root folder.
_KIND = (
    r":readygate:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
    r":\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:{}:F"
)
_LIST = "/proc/sys/fs/binfmt_misc"
# KIND ROOT WORDS...: a list of our own, then the root folder with devices, processes and a folder for temporary files.
_WITHIN = f"""set -e
mount -t binfmt_misc none {_LIST}
[ -z "$1" ] || printf %s "$1" > {_LIST}/register
root=$2
shift 2
mount --rbind /proc "$root/proc"
mount --rbind /dev "$root/dev"
exec chroot "$root" "$@"
"""


def emulator(progress: Progress) -> Path:
    """Its program, which needs nothing else. Raises BuildError."""

    def build(folder: Path) -> None:
        progress(f"fetching {_PACKAGE} of Debian {SUITE}, once")
        root, log = folder / "root", folder / "mmdebstrap.log"
        options = ["--mode=chrootless", "--variant=extract", "--skip=essential/unlink,cleanup"]
        mmdebstrap([*options, f"--include={_PACKAGE}"], root, what=_PACKAGE, log=log, progress=progress)
        (root / _PROGRAM).rename(folder / "qemu")
        shutil.rmtree(root)

    return cached("emulator", key_of([SUITE, _PACKAGE, _PROGRAM]), build, progress) / "qemu"


def argv(root: Path, words: Sequence[str], progress: Progress) -> list[str]:
    """The command line that runs this one of a root folder for arm64, as the same process: signals reach it. Root
    within it has no rights on the machine."""
    kind = "" if platform.machine() == "aarch64" else _KIND.format(emulator(progress))
    apart = ["unshare", "--user", "--map-root-user", "--mount"]
    return [*apart, "sh", "-c", _WITHIN, "sh", kind, str(root), *words]


def obstacle() -> str:
    """Why this machine cannot run programs for arm64 so; "" if it can."""
    command = ["unshare", "--user", "--map-root-user", "--mount", "mount", "-t", "binfmt_misc", "none", _LIST]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    if done.returncode == 0:
        return ""
    return f"Linux 6.7 with user name spaces is needed to run programs for arm64 unseen ({done.stderr.strip()})"
