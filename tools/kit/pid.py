"""Processes of this machine as /proc shows them, each one known for ever."""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
STARTING_S = 5.0
"""A process without words is waited for so long."""


@dataclass(frozen=True)
class ProcessId:
    """One process for ever: a pid alone is reused, with its start time (clock ticks since boot) it is not."""

    pid: int
    start_ticks: int
    boot: str

    @classmethod
    def of(cls, pid: int) -> "ProcessId | None":
        """None when there is no such process, or only its remains."""
        fields = _stat_fields(pid)
        if fields is None or fields[0] in "ZX":
            return None
        return cls(pid, int(fields[19]), _BOOT_ID.read_text().strip())

    def alive(self) -> bool:
        return ProcessId.of(self.pid) == self

    def signal(self, number: int) -> None:
        """To the process if it still is this one."""
        if self.alive():
            with contextlib.suppress(ProcessLookupError):  # it ended between the look and the signal
                os.kill(self.pid, number)


def _stat_fields(pid: int) -> list[str] | None:
    """Fields of /proc/PID/stat after the command name, which may itself hold spaces and brackets."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def children(pid: int) -> list[int]:
    """Direct children of a process, those that have just ended included."""
    found: list[int] = []
    for listing in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that has just ended
            found += [int(word) for word in listing.read_text().split()]
    return found


def find_processes(matches: Callable[[list[bytes], list[bytes]], bool]) -> list[ProcessId]:
    """Living processes, this one excepted, of which `matches` says so: called with command line and environment.

    Processes whose files this user may not read are not looked at.
    """
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal() or int(entry.name) == os.getpid():
            continue
        try:
            command, environ = words(entry)
        except OSError:  # gone meanwhile, or another user's
            continue
        if matches(command, environ) and (process := ProcessId.of(int(entry.name))):
            found.append(process)
    return found


def words(entry: Path) -> tuple[list[bytes], list[bytes]]:
    """Command line and environment of the process with this folder of /proc. Raises OSError.

    Linux closes what exec shall close, by which a parent knows of it, before it shows the new words: until then both
    files are empty. A process of the kernel has no words either, and no program.
    """
    ends = time.monotonic() + STARTING_S
    while True:
        command, environ = ((entry / name).read_bytes() for name in ("cmdline", "environ"))
        if command or environ or not _has_program(entry) or time.monotonic() > ends:
            return command.split(b"\0"), environ.split(b"\0")
        time.sleep(0.01)


def _has_program(entry: Path) -> bool:
    try:
        return bool((entry / "exe").readlink())
    except FileNotFoundError:
        return False


def end_all(processes: Sequence[ProcessId], *, grace_s: float = 5.0) -> None:
    """SIGTERM to all, SIGKILL to those still there after `grace_s`."""
    for process in processes:
        process.signal(signal.SIGTERM)
    if not _gone(processes, grace_s):
        for process in processes:
            process.signal(signal.SIGKILL)
        _gone(processes, 5.0)


def _gone(processes: Sequence[ProcessId], timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while any(process.alive() for process in processes):
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.02)
    return True
