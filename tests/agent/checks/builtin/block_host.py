"""A host with disks for the check `kernelLog`: sysfs, mounts and a log."""

import os
import shutil
from pathlib import Path

from agent.checks.builtin.kernel_log import Check, Settings
from agent.checks.state import CheckState, Finding
from tools.fakes.kmsg import line

IO = "I/O error, dev {}, sector 2048 op 0x1:(WRITE) flags 0x800 phys_seg 1 prio class 2"
NO_PATH = "block {}: no available path - failing I/O"
WELL = Finding(CheckState.PASSED, "nothing that still holds")
LVM = {"dm/name": "vg-root", "dm/uuid": "LVM-b0dE"}
POD = "/var/lib/kubelet/plugins/csi/globalmount"


class Host:
    """sysfs as the kernel makes it, a log that is a pipe, and a clock."""

    def __init__(self, root: Path) -> None:
        self.root, self.now_s, self.sequence = root, 1000.0, 0
        os.mkfifo(root / "kmsg")
        self.writer = os.open(root / "kmsg", os.O_RDWR | os.O_NONBLOCK)
        (root / "boot_id").write_text("5f1b\n")
        (root / "sys/class/block").mkdir(parents=True)
        self.mounts()

    def add(self, name: str, number: str, *below: str, disk: str = "", **files: str) -> None:
        """`below`: what it is made of. `disk`: of a partition."""
        folder = self.root / "sys/devices" / disk / name
        (folder / "slaves").mkdir(parents=True)
        (folder / "holders").mkdir()
        for path, text in {"dev": number, **({"partition": "1"} if disk else {}), **files}.items():
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_text(f"{text}\n")
        (self.root / "sys/class/block" / name).symlink_to(folder)
        for part in below:
            lower = (self.root / "sys/class/block" / part).resolve()
            (folder / "slaves" / part).symlink_to(lower)
            (lower / "holders" / name).symlink_to(folder)

    def remove(self, *names: str) -> None:
        """Links to it below volumes remain, and lead nowhere."""
        for name in names:
            link = self.root / "sys/class/block" / name
            shutil.rmtree(link.resolve(), ignore_errors=True)
            link.unlink()

    def btrfs(self, uuid: str, *parts: str, **levels: str) -> None:
        group = self.root / "sys/fs/btrfs" / uuid
        for use, level in levels.items():
            (group / "allocation" / use / level).mkdir(parents=True)
            (group / "allocation" / use / "total_bytes").write_text("1\n")
        (group / "devices").mkdir()
        for part in parts:
            (group / "devices" / part).symlink_to(self.root / "sys/class/block" / part)

    def mounts(self, *mounts: tuple[str, str, str], kind: str = "ext4") -> None:
        lines = [f"20 1 {number} / {at} rw shared:1 - {kind} {of} rw" for number, at, of in mounts]
        (self.root / "mountinfo").write_text("".join(f"{each}\n" for each in lines))

    def check(self) -> Check:
        files = {key: str(self.root / key) for key in ("mountinfo", "sys", "boot_id")}
        settings = Settings(path=str(self.root / "kmsg"), position_file=str(self.root / "position"), **files)
        return Check(settings, 2.0, lambda: self.now_s)

    def say(self, *texts: str, times: int = 5) -> None:
        for text in texts * times:
            os.write(self.writer, line(self.sequence, self.now_s, text).encode())
            self.sequence += 1


def io_error(state: str, device: str, below: str, lines: int = 5) -> Finding:
    return Finding(CheckState(state), f"ioError {device}: {lines} lines, the last 0 s ago, below {below}")
