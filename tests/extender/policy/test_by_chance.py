"""What must hold whatever happens: no cap overstepped, no release lost or late, no node closed by a storm.

3,000 steps in the gate, 20,000 by a fresh seed in the whole proof (`tests/conftest.py`). `make soak` plays a million.
"""

import random

import pytest

from tests.extender.policy.chance import Play
from tools.kit.scope import draws

PARTS, ROUNDS, STEPS = 4, draws(15, 100), 50


@pytest.mark.parametrize("part", range(PARTS))
def test_thousands_of_steps_by_chance(seed: int, part: int) -> None:
    for number in range(ROUNDS):
        play = Play(random.Random(f"{seed} decisions {part} {number}"))
        try:
            for _ in range(STEPS):
                play.step()
        except BaseException as e:
            e.add_note(f"round {number} of this seed: {' '.join(play.done)}")
            raise
