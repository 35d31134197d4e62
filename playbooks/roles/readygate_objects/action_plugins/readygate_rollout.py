"""Waits for the roll-out of a DaemonSet: shows its progress, and ends with one sentence.

The module of the same name reads the state and decides on the host. This plugin calls it until it has a verdict, and
undoes a roll-out that fails.
"""

import time
from typing import Any

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

display = Display()

SHOWN_EVERY_S = 10.0
UNDONE_WITHIN_S = 240


class ActionModule(ActionBase):
    """undo: undo a failed roll-out. already: nodes that were not Ready before it; None: nothing was applied."""

    _requires_connection = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        arguments = dict(self._task.args)
        if arguments.get("state") == "before":
            return result | self._execute_module(module_args=arguments, task_vars=task_vars)
        undo = bool(arguments.pop("undo", False))
        already = arguments.pop("already", None)
        memory = {} if already is None else {"already": list(already)}
        name = arguments["daemonset"]
        ended = self._watch(arguments, memory, task_vars)
        if ended.get("failed"):
            return result | ended
        if ended["verdict"] == "done":
            display.display(f"    {name}: {ended['text']}")
            return result | {"changed": False, "msg": f"{name}: {ended['text']}"}
        after = self._undo(arguments, ended["memory"], task_vars) if undo else "it was left as it is"
        return result | {"failed": True, "msg": f"the roll-out of {name} failed: {ended['text']}. {after}"}

    def _watch(
        self, arguments: dict[str, Any], memory: dict[str, Any], task_vars: dict[str, Any] | None
    ) -> dict[str, Any]:
        text, shown = "", float("-inf")
        while True:
            call = arguments | {"state": "watch", "memory": memory, "shown": text}
            answer: dict[str, Any] = self._execute_module(module_args=call, task_vars=task_vars)
            if answer.get("failed") or answer["verdict"] != "waits":
                return answer
            memory = answer["memory"]
            if answer["text"] != text and time.monotonic() - shown >= SHOWN_EVERY_S:
                display.display(f"    {arguments['daemonset']}: {answer['text']}")
                shown = time.monotonic()
            text = answer["text"]

    def _undo(self, arguments: dict[str, Any], memory: dict[str, Any], task_vars: dict[str, Any] | None) -> str:
        name = arguments["daemonset"]
        call = arguments | {"state": "undo"}
        answer: dict[str, Any] = self._execute_module(module_args=call, task_vars=task_vars)
        if answer.get("failed"):
            return f"It could not be undone: {answer.get('msg')}"
        if not answer["image"]:
            return "There is no earlier version to go back to; no scheduler asks the new one yet"
        display.display(f"    {name}: going back to the earlier version, image {answer['image']}")
        limited = arguments | {"timeout_seconds": UNDONE_WITHIN_S}
        ended = self._watch(limited, {"already": memory.get("already", [])}, task_vars)
        back = f"The earlier version (image {answer['image']}) is rolled out again"
        return back if ended.get("verdict") == "done" else f"{back}, but: {ended.get('text') or ended.get('msg')}"
