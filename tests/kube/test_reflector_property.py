"""Whatever happens in between, a store that has come to the server's version equals the server.

Drawn by chance, anew in each run; READYGATE_SEED repeats a run (`tests/conftest.py`).
"""

import random

from tests.kube.play import STEPS, Play

ROUNDS = 250


def test_ten_thousand_steps_by_chance_leave_no_difference(seed: int, caplog) -> None:
    caplog.set_level("CRITICAL", "kube.reflector")  # a traceback for each object that the store refuses
    compared = 0
    for number in range(ROUNDS):
        play = Play(random.Random(f"{seed} reflector {number}"))
        try:
            play.run()
        except BaseException as e:
            e.add_note(f"round {number} of this seed")
            raise
        compared += play.compared
    assert (ROUNDS * STEPS, compared > ROUNDS) == (10_000, True)
