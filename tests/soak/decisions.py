"""A million steps by chance of what decides: caps, storms, damping, orders, several gates. Virtual time."""

import random
import time

from tests.extender.policy.chance import Play
from tests.soak.rows import Progress, Trial

STEPS = 1_000_000
STEPS_OF_A_PLAY = 100


def hold(trial: Trial) -> None:
    """The length of the row only bounds it: the target is the number of steps."""
    progress, end, done = Progress(trial.say), time.monotonic() + trial.seconds, 0
    while done < STEPS and time.monotonic() < end:
        play = Play(random.Random(trial.chance.random()))
        for _ in range(STEPS_OF_A_PLAY):
            play.step()
        done += STEPS_OF_A_PLAY
        progress(f"{done:,} steps")
    trial.tell("steps, each looked at", done, "")
