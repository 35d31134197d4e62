"""The seed of tests by chance: new in each run, printed at its end, and repeated with READYGATE_SEED=N.

`seed` is for tests that draw themselves; hypothesis is given the same one (its tests must not be derandomized). It does
not measure how long an example takes: the machine may be busy.
"""

import os
import random

import hypothesis
import pytest

SEED_VARIABLE = "READYGATE_SEED"


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    # In the environment, so that the processes of pytest-xdist have the same one.
    seed = os.environ.setdefault(SEED_VARIABLE, str(random.SystemRandom().randrange(2**32)))
    if config.getoption("--hypothesis-seed", None) is None:
        config.option.hypothesis_seed = seed
    hypothesis.settings.register_profile("unhurried", deadline=None)
    hypothesis.settings.load_profile("unhurried")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    seed = os.environ[SEED_VARIABLE]
    terminalreporter.write_line(f"seed of tests by chance: {seed} ({SEED_VARIABLE}={seed} repeats them)")


@pytest.fixture(scope="session")
def seed() -> int:
    return int(os.environ[SEED_VARIABLE])
