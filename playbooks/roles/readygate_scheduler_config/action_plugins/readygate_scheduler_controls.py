"""Lists the control plane nodes until there are as many as in the inventory, for at most 10 s, and shows the cause.

A node that has joined just now gets its label last.
"""

import time
from typing import Any

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

display = Display()

LIMIT_S = 10.0
EVERY_S = 2.0


class ActionModule(ActionBase):
    """wanted: how many nodes to wait for; when the time is over, fewer are returned."""

    _requires_connection = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        asked = dict(self._task.args)
        wanted, began, shown = int(asked.pop("wanted")), time.monotonic(), ""
        while True:
            answer: dict[str, Any] = self._execute_module(module_args=asked, task_vars=task_vars)
            cause = lacks(answer, wanted)
            if not cause or time.monotonic() - began >= LIMIT_S:
                return result | answer
            if cause != shown:
                display.display(f"    waiting: {cause}")
                shown = cause
            time.sleep(EVERY_S)


def lacks(answer: dict[str, Any], wanted: int) -> str:
    """Why the answer is not complete yet, in one line."""
    if answer.get("failed"):
        return " ".join(f"{answer.get('msg') or 'no answer'}".split())
    nodes = answer["nodes"]
    if len(nodes) >= wanted:
        return ""
    return (
        f"the label node-role.kubernetes.io/control-plane is on {', '.join(nodes) or 'no node'}, and the inventory has "
        f"{wanted} control plane hosts"
    )
