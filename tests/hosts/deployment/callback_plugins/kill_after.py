"""Ends ansible-playbook by SIGKILL when so many tasks have ended; writes down each that does: whether it
changed something (changed, same or skipped), its module and its name.

READYGATE_KILL_AFTER is the number, 0 for never; READYGATE_TASKS the file.
"""

import os
import signal
from pathlib import Path
from typing import Any

from ansible.plugins.callback import CallbackBase


class CallbackModule(CallbackBase):  # type: ignore[misc]
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "kill_after"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        self._ended = 0

    def v2_runner_on_skipped(self, result: Any, **_: Any) -> None:
        self._one("skipped", result)

    def v2_runner_on_ok(self, result: Any, **_: Any) -> None:
        self._one("changed" if result.is_changed() else "same", result)

    v2_runner_on_failed = v2_runner_on_ok

    def _one(self, what: str, result: Any) -> None:
        self._ended += 1
        with Path(os.environ["READYGATE_TASKS"]).open("a") as file:
            file.write(f"{what} {result.task.action} {result.task_name}\n")
        if self._ended == int(os.environ["READYGATE_KILL_AFTER"]):
            os.kill(os.getpid(), signal.SIGKILL)
