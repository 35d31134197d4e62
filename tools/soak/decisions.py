"""A million steps by chance of what decides: caps, storms, damping, orders, several gates. Virtual time."""

import random
import time

from tests.extender.policy.chance import Play
from tools.soak.rows import Progress, Trial

STEPS = 1_000_000
STEPS_OF_A_PLAY = 100
MINUTES = 60  # in which they are to be done; a shorter row has to do its part of them


def hold(trial: Trial) -> None:
    """Ends with the last step, or with the time of the row: then too few were looked at."""
    progress, end, done = Progress(trial.say), time.monotonic() + trial.seconds, 0
    while done < STEPS and time.monotonic() < end:
        play = Play(random.Random(trial.chance.random()))
        for _ in range(STEPS_OF_A_PLAY):
            play.step()
        done += STEPS_OF_A_PLAY
        progress(f"{done:,} steps")
    trial.at_least(STEPS * min(1.0, trial.minutes / MINUTES), "steps, each looked at", done, "")
