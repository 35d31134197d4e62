"""Processes of this machine, by /proc: who is who, and how to end exactly those of one container."""

import contextlib
import os
import signal
import time
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum
from pathlib import Path

PROC = Path("/proc")
PF_KTHREAD = 0x00200000  # of the flags in /proc/PID/stat
LOOKS = 2
FIRST_TO_GO = b"1000"
_BLOCK_BYTES = 64 * 2**10
FEW = 64  # numbers that are cheaper to try than to look for in a list of all processes

# Every process of a container inherits it, also one that made a session of its own.
ENV_CONTAINER_ID = "READYGATE_CONTAINER_ID"
# The same for what the command of a check starts.
ENV_COMMAND = "READYGATE_COMMAND"


def boot_id() -> str:
    return (PROC / "sys/kernel/random/boot_id").read_text().strip()


def seconds_since_boot() -> float:
    """Goes on while the machine sleeps, and no step of the wall's clock moves it."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def start_ticks(pid: int) -> int | None:
    """When the process started, in clock ticks since boot; None if there is no such process (a zombie counts as none).

    A pid together with this number is never used twice between two boots.
    """
    fields = _stat_fields(pid)
    return None if fields is None or fields[0] in ("Z", "X") else int(fields[19])


def first_to_go(pid: int) -> None:
    """Where memory runs out the kernel shall take it, and what it starts, before any other: else it takes the largest
    of those alike, which may be ourselves."""
    try:
        fd = os.open(f"{PROC}/{pid}/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)  # as in _read
    except OSError:
        return  # gone already, or of another user
    try:
        os.write(fd, FIRST_TO_GO)
    except OSError:
        return
    finally:
        os.close(fd)


def end_container(container_id: str, leader: int | None = None) -> int:
    """As end_containers, for one."""
    return end_containers({container_id: leader})


def end_containers(leaders: Mapping[str, int | None]) -> int:
    """SIGKILL to every process with the mark of one of these containers (id -> pid of its first process, whose group is
    ended too, or None); returns how many it met.

    Repeats until none is left, so that a process that forks meanwhile does not get away.
    """
    if not leaders:
        return 0
    for leader in leaders.values():
        if leader is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(leader, signal.SIGKILL)
    return end_marked({f"{ENV_CONTAINER_ID}={container_id}".encode() for container_id in leaders})


def end_marked(marks: AbstractSet[bytes], *, begun_after: int | None = None) -> int:
    """SIGKILL to every process with one of these NAME=VALUE in its environment; returns how many it met. Repeats until
    none is left. `begun_after`: a process of the last second; older ones than it are not looked at."""
    ended: set[int] = set()
    for _ in range(20):
        looks = [(pid, _look(pid, marks)) for pid in _candidates(begun_after)]
        marked = [pid for pid, look in looks if look is _Look.MARKED]
        if not marked and all(look is _Look.OTHER for _, look in looks):
            break
        for pid in marked:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        ended.update(marked)
        time.sleep(0.005)
    return len(ended)


class _Look(Enum):
    OTHER = 0
    MARKED = 1
    STARTING = 2


def _look(pid: int, marks: AbstractSet[bytes]) -> _Look:
    """Within execve a process shows neither environment nor words until the new ones are in place, and who had opened
    the old ones finds them empty: only an environment that is empty twice is none."""
    try:
        for _ in range(LOOKS):
            if environ := _read(f"{PROC}/{pid}/environ"):
                marked = not marks.isdisjoint(environ.split(b"\0")) and start_ticks(pid) is not None
                return _Look.MARKED if marked else _Look.OTHER
            if not _read(f"{PROC}/{pid}/cmdline"):
                return _Look.STARTING if _is_program(pid) else _Look.OTHER
    except OSError:
        pass  # gone meanwhile, or somebody else's
    return _Look.OTHER


def _is_program(pid: int) -> bool:
    """It runs, and is no thread of the kernel's."""
    fields = _stat_fields(pid)
    return fields is not None and fields[0] not in ("Z", "X") and not int(fields[6]) & PF_KTHREAD


def _candidates(begun_after: int | None) -> Sequence[int]:
    """Each check pays for this after each command, mostly to learn that nothing was begun since."""
    newest = None if begun_after is None else _newest()
    if begun_after is not None and newest is not None and 0 <= newest - begun_after <= FEW:
        return range(begun_after + 1, newest + 1)  # also numbers of threads, which lead to their processes
    with os.scandir(PROC) as entries:  # half the price of iterdir
        pids = [int(entry.name) for entry in entries if entry.name.isdigit()]
    if begun_after is not None and newest is not None:
        return [pid for pid in pids if is_younger(pid, begun_after, newest)]
    return pids


def _newest() -> int | None:
    """The number given out last; None where /proc shows nothing but processes, as with systemd's ProcSubset=pid."""
    try:
        return int(_read(f"{PROC}/loadavg").split()[4])
    except OSError:
        return None


def _read(path: str) -> bytes:
    """A file object, and more so a Path, would be most of the price of a look."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        blocks = []
        while block := os.read(fd, _BLOCK_BYTES):
            blocks.append(block)
        return b"".join(blocks)
    finally:
        os.close(fd)


def is_younger(pid: int, than: int, newest: int) -> bool:
    """Was it begun after `than`? Numbers are given out in their order, from the lowest again when the highest is gone.
    `newest`: the last that was given out. Right as long as they have not gone round once since `than` began."""
    return than < pid <= newest if than <= newest else pid > than or pid <= newest


def _stat_fields(pid: int) -> list[str] | None:
    """Fields of /proc/PID/stat after the command name (it may hold anything): [0] is the state, [19] the start time."""
    try:
        text = _read(f"{PROC}/{pid}/stat").decode("utf-8", "replace")
    except OSError:
        return None
    return text[text.rindex(")") + 2 :].split()
