"""The prober of kubelet 1.16, and the agent's with `compat: v1.16`: those of `prober`, of pods as 1.16 has them.

Draws what rows CM2-CM7, CM9, CM10 and CM28 are about.
"""

import re
from random import Random
from typing import Any

from tools.differential.target import Answers, History
from tools.differential.targets.prober import ProberTarget
from tools.differential.worlds_1_16 import pod_of_1_16, status_of_1_16

_SINCE = " and resulted in unknown state"
_NONE = re.compile(", (?:Success|Failure|UNKNOWN) x 0,")


class OldProberTarget(ProberTarget):
    name = "prober-1.16"

    def draw(self, random: Random) -> History:
        return of_1_16(super().draw(random))

    def told(self, answer: Answers) -> Answers:
        return without_words_of_1_36(answer)


def of_1_16(drawn: History) -> History:
    """A history of the prober's, of pods as 1.16 has them."""
    return {
        **drawn,
        "pods": [pod_of_1_16(pod) for pod in drawn["pods"]],
        "steps": [_step(step) for step in drawn["steps"]],
    }


def without_words_of_1_36(answer: Answers) -> Answers:
    """Neither the result of a run of none (1.16 says Failure, 1.36 Success; the next one begins a run) nor the words
    that 1.36 puts between an error and its cause (row CM39)."""
    if not isinstance(answer, list):
        return answer
    return [[_NONE.sub(", nothing x 0,", line.replace(_SINCE, "")) for line in lines] for lines in answer]


def _step(step: Any) -> Any:
    """1.16 has no call that ends two kinds of probes alone, and no handler that is at a loss without an error."""
    if step["op"] == "stop":
        return {**step, "op": "remove"}
    if step["op"] == "probe":
        return {**step, "outcomes": [["error" if o == "unknown" else o for o in of] for of in step["outcomes"]]}
    if step.get("status") is None:
        return step
    return {**step, "status": status_of_1_16(step["status"])}
