"""Begins or ends a run. Knows what the module of the same name cannot: who we are, and whether a run of this very
machine that still seems to be at work is dead, as one that was killed."""

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
        arguments = self._task.args | {
            "holder": identity(os.getppid())
        }  # we are a worker of ansible-playbook's process
        answer: dict[str, Any] = self._execute_module(module_args=arguments, task_vars=task_vars)
        if answer.get("failed") and dead(answer.get("holder", "")):
            again = arguments | {"dead": answer["holder"]}
            answer = self._execute_module(module_args=again, task_vars=task_vars)
        # When, by our clock, so that a play that begins a moment later need not.
        return result | answer | {"at": time.time()}


def identity(pid: int) -> str:
    """Of a run: its user, machine and process, and when that was started, in the kernel's ticks."""
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        if fields[0] != "Z":  # has ended, and nobody has asked how
            return f"{_here()} (process {pid}, started at {fields[19]})"
    return f"{_here()} (process {pid})"


def dead(holder: str) -> bool:
    """Whether it is a process of this machine that is no more."""
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
