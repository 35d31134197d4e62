"""The loops of kubelet 1.16's probe workers, and the agent's with `compat: v1.16`: those of `loops`, of its pods.

Draws what rows CM1 and CM11 are about, and CM2-CM7 as time passes.
"""

from random import Random

from tools.differential.target import Answers, History
from tools.differential.targets.loops import LoopsTarget
from tools.differential.targets.prober_1_16 import of_1_16, without_words_of_1_36


class OldLoopsTarget(LoopsTarget):
    name = "loops-1.16"

    def draw(self, random: Random) -> History:
        return of_1_16(super().draw(random))

    def told(self, answer: Answers) -> Answers:
        return without_words_of_1_36(answer)
