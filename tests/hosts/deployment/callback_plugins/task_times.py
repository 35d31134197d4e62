"""Writes into the file READYGATE_TIMES how long each task took, over all hosts: a line of seconds and name."""

import os
import time
from pathlib import Path
from typing import Any

from ansible.plugins.callback import CallbackBase


class CallbackModule(CallbackBase):  # type: ignore[misc]
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "task_times"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        self._since, self._task = time.monotonic(), "to start"

    def _next(self, task: str) -> None:
        monotonic = time.monotonic()
        with Path(os.environ["READYGATE_TIMES"]).open("a") as file:
            file.write(f"{monotonic - self._since:.2f} {self._task}\n")
        self._since, self._task = monotonic, task

    def v2_playbook_on_play_start(self, play: Any) -> None:
        self._next(f"play {play.get_name()}")

    def v2_playbook_on_task_start(self, task: Any, **_: Any) -> None:
        self._next(task.get_name())

    def v2_playbook_on_stats(self, _: Any) -> None:
        self._next("")
