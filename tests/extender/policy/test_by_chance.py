"""What must hold whatever happens: no cap overstepped, no release lost or late, no node closed by a storm.

Drawn by chance, anew in each run; READYGATE_SEED repeats a run (`tests/conftest.py`). `make soak` plays a million.
"""

import random

import pytest

from tests.extender.policy.chance import Play

PARTS, ROUNDS, STEPS = 4, 100, 50


@pytest.mark.parametrize("part", range(PARTS))
def test_twenty_thousand_steps_by_chance(seed: int, part: int) -> None:
    for number in range(ROUNDS):
        play = Play(random.Random(f"{seed} decisions {part} {number}"))
        try:
            for _ in range(STEPS):
                play.step()
        except BaseException as e:
            e.add_note(f"round {number} of this seed: {' '.join(play.done)}")
            raise
    assert PARTS * ROUNDS * STEPS == 20_000
