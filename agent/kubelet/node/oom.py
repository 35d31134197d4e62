"""Which lines of the kernel's log say that the machine was out of memory. Pure.

Mirrors cadvisor's utils/oomparser (v0.56.2) and pkg/kubelet/oom/oom_watcher_linux.go, v1.36.3. A kill for the limit of
a control group is none: the machine itself has room.
"""

import posixpath
import re
from dataclasses import dataclass

from agent.kubelet.events.event import WARNING, Event, about_node

REASON = "SystemOOM"
_BEGINS = "invoked oom-killer:"
_OF_A_GROUP = re.compile(
    r"oom-kill:constraint=.*,nodemask=.*,cpuset=.*,mems_allowed=.*,oom_memcg=(.*),task_memcg=.*,task=(.*),pid=(.*),uid="
)
_OF_A_GROUP_BEFORE_LINUX_5 = re.compile(r"Task in .* killed as a result of limit of (.*)")
_KILLED = re.compile(r"Killed process ([0-9]+) \((.+)\)")
_NUMBER = re.compile(r"[+-]?[0-9]+")
_LARGEST = 2**63 - 1
_MACHINE = "/"


@dataclass(slots=True)
class Kill:
    """One kill of the kernel's. `group`: the control group that was at its limit, "/" for the machine."""

    group: str = _MACHINE
    process: str = ""
    pid: int = 0


class Kills:
    """Lines are put together to kills. The kernel writes many for each, the last of which names the process."""

    def __init__(self) -> None:
        self._open: Kill | None = None

    def take(self, text: str) -> Kill | None:
        """The next line. Returns the kill that it ends."""
        kill = self._open
        if kill is None:
            self._open = Kill() if _BEGINS in text else None
            return None
        if not (_with_group(kill, text) or _with_process(kill, text)):
            return None
        self._open = None
        return kill


def event_of(kill: Kill, node_name: str) -> Event | None:
    """None for the kill of a control group."""
    if kill.group != _MACHINE:
        return None
    victim = f", victim process: {kill.process}, pid: {kill.pid}" if kill.process and kill.pid else ""
    return Event(about_node(node_name), WARNING, REASON, f"System OOM encountered{victim}")


def _with_group(kill: Kill, text: str) -> bool:
    """True where the line names the process, too."""
    found = _OF_A_GROUP.search(text)
    if found is None:
        if (before := _OF_A_GROUP_BEFORE_LINUX_5.search(text)) is not None:
            kill.group = posixpath.normpath(f"/{before[1].lstrip('/')}")
        return False
    kill.group = found[1]
    if (pid := _number(found[3])) is None:
        return False
    kill.process, kill.pid = found[2], pid
    return True


def _with_process(kill: Kill, text: str) -> bool:
    found = _KILLED.search(text)
    if found is None or (pid := _number(found[1])) is None:
        return False
    kill.process, kill.pid = found[2], pid
    return True


def _number(text: str) -> int | None:
    """As Go's Atoi."""
    number = int(text) if _NUMBER.fullmatch(text) and len(text) < 20 else None
    return number if number is not None and -_LARGEST - 1 <= number <= _LARGEST else None
