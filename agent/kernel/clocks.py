"""The clocks and the source of chance that a room gets: tests give their own."""

import random as random_module
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Clocks:
    """Of this machine, unless given."""

    wall: Callable[[], float] = time.time  # seconds since the epoch
    monotonic: Callable[[], float] = time.monotonic  # seconds; never set back
    random: Callable[[], float] = random_module.random  # 0 to 1


REAL = Clocks()
