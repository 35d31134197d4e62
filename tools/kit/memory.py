"""Programs in a control group that has no more memory than it is given, as a pod or a service has: who takes more is
ended by the kernel."""

import os
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tools.kit.ability import cannot_run
from tools.kit.waiting import wait_until

_ROOT = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class MemoryGroup:
    folder: Path

    @property
    def prefix(self) -> list[str]:
        """Before a command line: it and all that it starts are of the group."""
        return ["sh", "-c", f'echo $$ > {self.folder}/cgroup.procs && exec "$@"', "sh"]

    def kills(self) -> int:
        """How many processes the kernel has ended for want of memory."""
        for name in ("memory.events", "memory.oom_control"):
            if (self.folder / name).exists() and (
                found := re.search(r"^oom_kill (\d+)$", (self.folder / name).read_text(), re.MULTILINE)
            ):
                return int(found[1])
        return 0

    def pids(self) -> list[int]:
        return [int(line) for line in (self.folder / "cgroup.procs").read_text().split()]


@contextmanager
def memory_group(limit_bytes: int) -> Iterator[MemoryGroup]:
    """Below our own; its programs must have ended when the block does."""
    if os.geteuid():
        cannot_run("a limit of memory is set, which only root may: sudo make test")
    folder, limit = _group()
    try:
        folder.mkdir()
        (folder / limit).write_text(str(limit_bytes))
    except OSError as e:
        with suppress(OSError):
            folder.rmdir()
        cannot_run(f"no control group with a limit of memory can be made here: {e}")
    group = MemoryGroup(folder)
    try:
        yield group
    finally:
        wait_until(lambda: not group.pids(), "its programs have ended", timeout_s=30)
        # One that has ended is no more to be seen in its group some time before the kernel lets the group go.
        wait_until(lambda: _is_removed(folder), "its group is gone")


def _is_removed(folder: Path) -> bool:
    with suppress(OSError):
        folder.rmdir()
    return not folder.exists()


def _group() -> tuple[Path, str]:
    """A new folder, and the file in it that has the limit."""
    name = f"readygate-test-{uuid.uuid4().hex[:8]}"
    if (_ROOT / "cgroup.controllers").exists():
        with suppress(OSError):
            (_ROOT / "cgroup.subtree_control").write_text("+memory")
        return _ROOT / name, "memory.max"
    own = re.search(r"^\d+:memory:/(.*)$", Path("/proc/self/cgroup").read_text(), re.MULTILINE)
    return _ROOT / "memory" / (own[1] if own else "") / name, "memory.limit_in_bytes"


def peak_mib(pid: int) -> float:
    """Of the process itself, since it began."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
    assert found is not None
    return int(found[1]) / 1024
