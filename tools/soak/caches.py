"""R02: a million steps by chance between a server and the store that follows it. Virtual time, no sockets."""

import logging
import random
import time

from tests.kube.play import STEPS as STEPS_OF_A_PLAY
from tests.kube.play import Play
from tools.soak.rows import Progress, Trial

STEPS = 1_000_000
MINUTES = 10.0  # in which they are to be done; a shorter row has to do its part of them
LOG = logging.getLogger("kube.reflector")  # a traceback for each object that the store refuses


def hold(trial: Trial) -> None:
    """Ends with the last step, or with the time of the row: then too few were tried."""
    progress, end, steps, compared = Progress(trial.say), time.monotonic() + trial.seconds, 0, 0
    level = LOG.level
    LOG.setLevel(logging.CRITICAL)
    try:
        while steps < STEPS and time.monotonic() < end:
            play = Play(random.Random(trial.chance.random()))
            play.run()
            steps += STEPS_OF_A_PLAY
            compared += play.compared
            progress(f"{steps:,} steps")
    finally:
        LOG.setLevel(level)
    trial.played(STEPS, MINUTES, "steps", steps, "")
    trial.at_least(steps / STEPS_OF_A_PLAY, "times the store was found equal to the server", compared, "")
