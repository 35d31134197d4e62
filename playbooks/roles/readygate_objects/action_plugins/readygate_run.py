"""Begins or ends a run. Knows what the module of the same name cannot: who we are, whether a run of this very machine
that still seems to be at work is dead, as one that was killed, and whether ours has begun on this host a moment ago."""

import contextlib
import getpass
import os
import platform
import time
from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase

BEGUN = "__readygate_objects_begun"  # a fact of the host: who has begun there, and when
RENEWED_S = 60.0  # of the 600 that nothing may be heard of a run


class ActionModule(ActionBase):
    _requires_connection = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        holder = identity(os.getppid())  # we are a worker of ansible-playbook's process
        arguments = self._task.args | {"holder": holder}
        begins = arguments["state"] == "begin"
        if begins and is_fresh((task_vars or {}).get("ansible_facts", {}).get(BEGUN), holder, time.monotonic()):
            return result | {"changed": False}
        answer: dict[str, Any] = self._execute_module(module_args=arguments, task_vars=task_vars)
        if answer.get("failed") and dead(answer.get("holder", "")):
            again = arguments | {"dead": answer["holder"]}
            answer = self._execute_module(module_args=again, task_vars=task_vars)
        begun = {"holder": holder, "monotonic": time.monotonic()} if begins and not answer.get("failed") else {}
        return result | answer | {"ansible_facts": {BEGUN: begun}}


def is_fresh(begun: Any, holder: str, monotonic: float) -> bool:  # noqa: ANN401 - a fact, which may be of another run
    """Whether this run has begun so lately that nobody need be asked again."""
    ours = isinstance(begun, dict) and begun.get("holder") == holder
    return ours and 0.0 <= monotonic - float(begun["monotonic"]) < RENEWED_S


def identity(pid: int) -> str:
    """Of a run: its user, machine and process, and when that was started, in the kernel's ticks."""
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
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
