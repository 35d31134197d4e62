"""Waits until a URL answers 200 on the host of the task: shows the cause while it waits, and ends with one sentence."""

import time
from typing import Any

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

display = Display()

EVERY_S = 2.0
SHOWN_EVERY_S = 10.0
LONGEST_TEXT = 300


class ActionModule(ActionBase):
    """seconds: time limit. The other arguments and the result are those of ansible.builtin.uri."""

    _requires_connection = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        # As the scheduler, without a proxy to its own host.
        asked: dict[str, Any] = {"timeout": 5, "use_proxy": False, **self._task.args}
        limit_s, url = float(asked.pop("seconds")), asked["url"]
        began, shown = time.monotonic(), float("-inf")
        while True:
            answer: dict[str, Any] = self._execute_module(
                module_name="ansible.builtin.uri", module_args=asked, task_vars=task_vars
            )
            if not answer.get("failed"):
                return result | answer
            cause = cause_of(answer)
            if time.monotonic() - began >= limit_s:
                return result | {"failed": True, "msg": f"{url} did not answer within {limit_s:.0f} s: {cause}"}
            if time.monotonic() - shown >= SHOWN_EVERY_S:
                display.display(f"    waiting for {url}: {cause}")
                shown = time.monotonic()
            time.sleep(EVERY_S)


def cause_of(answer: dict[str, Any]) -> str:
    """Why the answer was not 200, in one line."""
    text = answer.get("content") if answer.get("status", -1) > 0 else ""
    line = " ".join(f"{text or answer.get('msg') or 'no answer'}".split())
    return line if len(line) <= LONGEST_TEXT else line[: LONGEST_TEXT - 4] + " ..."
