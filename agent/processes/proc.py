"""Processes of this machine, by /proc: who is who, and how to end exactly those of one container."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path

PROC = Path("/proc")

# Every process of a container inherits it, also one that made a session of its own.
ENV_CONTAINER_ID = "READYGATE_CONTAINER_ID"
# The same for what the command of a check starts.
ENV_COMMAND = "READYGATE_COMMAND"


def boot_id() -> str:
    return (PROC / "sys/kernel/random/boot_id").read_text().strip()


def start_ticks(pid: int) -> int | None:
    """When the process started, in clock ticks since boot; None if there is no such process (a zombie counts as none).

    A pid together with this number is never used twice between two boots.
    """
    fields = _stat_fields(pid)
    return None if fields is None or fields[0] in ("Z", "X") else int(fields[19])


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
        marked = [pid for pid in _marked(marks, begun_after) if start_ticks(pid) is not None]
        if not marked:
            break
        for pid in marked:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        ended.update(marked)
        time.sleep(0.005)
    return len(ended)


def _marked(marks: AbstractSet[bytes], begun_after: int | None) -> Iterator[int]:
    with os.scandir(PROC) as entries:  # half the price of iterdir, and each check pays it after each command
        pids = [int(entry.name) for entry in entries if entry.name.isdigit()]
    newest = None if begun_after is None else _newest()
    if begun_after is not None and newest is not None:
        pids = [pid for pid in pids if is_younger(pid, begun_after, newest)]
    for pid in pids:
        try:
            if not marks.isdisjoint((PROC / str(pid) / "environ").read_bytes().split(b"\0")):
                yield pid
        except OSError:
            continue  # gone meanwhile, or somebody else's


def _newest() -> int | None:
    """The number given out last; None where /proc shows nothing but processes, as with systemd's ProcSubset=pid."""
    try:
        return int((PROC / "loadavg").read_text().split()[4])
    except OSError:
        return None


def is_younger(pid: int, than: int, newest: int) -> bool:
    """Was it begun after `than`? Numbers are given out in their order, from the lowest again when the highest is gone.
    `newest`: the last that was given out. Right as long as they have not gone round once since `than` began."""
    return than < pid <= newest if than <= newest else pid > than or pid <= newest


def _stat_fields(pid: int) -> list[str] | None:
    """Fields of /proc/PID/stat after the command name (it may hold anything): [0] is the state, [19] the start time."""
    try:
        text = (PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    return text[text.rindex(")") + 2 :].split()
