"""The generic PLEG of kubelet 1.16 and its cache, and the agent's with `compat: v1.16`: lists of all pods, what is told
of them, what is inspected and what is kept, who was freed from waiting, health and a full channel.

Left out is what 1.16 has not: looks at one pod, marks and events of the runtime. Not drawn are containers that run
without a sandbox, which differ on purpose.
"""

from random import Random
from typing import Any

from tools.differential.target import Answers, History
from tools.differential.targets.pleg import PlegTarget

_WITHOUT_END = ("running", "created")


class OldPlegTarget(PlegTarget):
    name = "pleg-1.16"

    def draw(self, random: Random) -> History:
        drawn, steps, wall = super().draw(random), list[Any](), 0.0
        for step in drawn["steps"]:
            wall = max(wall, step["wall"])  # no clock of a PLEG is set back
            steps.append({**_step(step), "wall": wall})
        return {**drawn, "evented": False, "steps": steps}

    def told(self, answer: Answers) -> Answers:
        """Not the health of the channel, nor how often and in what order a list inspects pods: 1.16 looks once more at
        one that it cannot inspect for the second time."""
        if not isinstance(answer, list):
            return answer
        return [
            {**{k: v for k, v in step.items() if k != "full"}, "inspected": sorted(set(step["inspected"]))}
            for step in answer
        ]


def _step(step: Any) -> Any:
    made = {**step, "op": "wait" if step["op"] == "wait" else "relist"}
    for key in ("pods", "inspected"):
        if key in made:
            made[key] = {uid: _with_sandbox(pod) for uid, pod in made[key].items()}
    return made


def _with_sandbox(pod: Any) -> Any:
    if pod["s"] or not any(state in _WITHOUT_END for _, state in pod["c"]):
        return pod
    return {**pod, "s": [["s1", "exited"]]}
