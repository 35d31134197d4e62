"""Begins or ends a run of the playbooks.

It adds what the module of the same name cannot know: the identity of this run, and whether the process of another run
on this machine has ended without releasing the lock.
"""

import contextlib
import getpass
import os
import platform
import time
from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    _requires_connection = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        arguments = self._task.args | {"holder": identity(os.getppid())}  # this process is a worker of ansible-playbook
        answer: dict[str, Any] = self._execute_module(module_args=arguments, task_vars=task_vars)
        if answer.get("failed") and dead(answer.get("holder", "")):
            again = arguments | {"dead": answer["holder"]}
            answer = self._execute_module(module_args=again, task_vars=task_vars)
        # The time by this machine's clock, so that a play that begins a moment later can skip it.
        return result | answer | {"at": time.time()}


def identity(pid: int) -> str:
    """The identity of a run: its user, machine and process, and the process's start in the kernel's ticks."""
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        if fields[0] != "Z":  # it has ended, and its parent has not reaped it
            return f"{_here()} (process {pid}, started at {fields[19]})"
    return f"{_here()} (process {pid})"


def dead(holder: str) -> bool:
    """Whether the holder is a process of this machine that has ended."""
    place, _, process = holder.partition(" (process ")
    number = process.partition(",")[0].rstrip(")")
    if place != _here() or not number.isdigit():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return identity(int(number)) != holder


def _here() -> str:
    user = "?"
    with contextlib.suppress(OSError, KeyError):
        user = getpass.getuser()
    return f"{user}@{platform.node()}"
