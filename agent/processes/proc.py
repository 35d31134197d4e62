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


def end_marked(marks: AbstractSet[bytes]) -> int:
    """SIGKILL to every process with one of these NAME=VALUE in its environment; returns how many it met. Repeats until
    none is left."""
    ended: set[int] = set()
    for _ in range(20):
        marked = [pid for pid in _marked(marks) if start_ticks(pid) is not None]
        if not marked:
            break
        for pid in marked:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        ended.update(marked)
        time.sleep(0.005)
    return len(ended)


def _marked(marks: AbstractSet[bytes]) -> Iterator[int]:
    for entry in PROC.iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if not marks.isdisjoint((entry / "environ").read_bytes().split(b"\0")):
                yield int(entry.name)
        except OSError:
            continue  # gone meanwhile, or somebody else's


def _stat_fields(pid: int) -> list[str] | None:
    """Fields of /proc/PID/stat after the command name (it may hold anything): [0] is the state, [19] the start time."""
    try:
        text = (PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    return text[text.rindex(")") + 2 :].split()
