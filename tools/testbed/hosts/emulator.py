"""Runs arm64 programs on another machine with QEMU's emulator of one process, which Debian's archive provides.

The emulator is registered with the kernel (binfmt_misc) in a user name space, which Linux allows since 6.7. The machine
does not see the registration, and it ends with the last process. Programs that an emulated program starts run, too.
"""

import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path

from images.build import native
from tools.kit.cache import cached, key_of
from tools.kit.commands import Progress
from tools.kit.mmdebstrap import SUITE, extract

_PACKAGE, _PROGRAM = "qemu-user-static", "usr/bin/qemu-aarch64-static"
# For binfmt_misc: ELF, 64 bit, little endian, machine 183, executable or position independent. F: the kernel opens the
# emulator at registration, so it works in another root folder.
_KIND = (
    r":readygate:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
    r":\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:{}:F"
)
_LIST = "/proc/sys/fs/binfmt_misc"
# Arguments KIND ROOT WORDS...: register KIND in an own binfmt_misc, give ROOT devices and processes, run WORDS in it.
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
    """Path of the statically linked emulator. Raises BuildError."""

    def build(folder: Path) -> None:
        progress(f"fetching {_PACKAGE} of Debian {SUITE}, once")
        extract([_PACKAGE], _PROGRAM, native(), folder, progress)
        (folder / Path(_PROGRAM).name).rename(folder / "qemu")

    return cached("emulator", key_of([SUITE, _PACKAGE, _PROGRAM]), build, progress) / "qemu"


def argv(root: Path, words: Sequence[str], progress: Progress) -> list[str]:
    """The command line that runs `words` in an arm64 root folder, as the same process, so that signals reach it.

    root in the folder has no rights on the machine.
    """
    kind = "" if platform.machine() == "aarch64" else _KIND.format(emulator(progress))
    apart = ["unshare", "--user", "--map-root-user", "--mount"]
    return [*apart, "sh", "-c", _WITHIN, "sh", kind, str(root), *words]


def obstacle() -> str:
    """Why this machine cannot run arm64 programs this way; "" if it can."""
    command = ["unshare", "--user", "--map-root-user", "--mount", "mount", "-t", "binfmt_misc", "none", _LIST]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    if done.returncode == 0:
        return ""
    return f"Linux 6.7 with user name spaces is needed to run programs for arm64 unseen ({done.stderr.strip()})"
