"""The seed of tests by chance, the choice of the gate, and the record of what each test costs.

The gate's seed is fixed. The whole proof (READYGATE_WHOLE=1) has a fresh one, printed at its end; READYGATE_SEED=N
repeats it. `seed` is for tests that draw themselves; hypothesis is given the same one (its tests must not be
derandomized). It does not measure how long an example takes: the machine may be busy.
"""

import os
import random
import shutil
import signal
from pathlib import Path

import hypothesis
import pytest

from tools.kit.scope import WHOLE, draws
from tools.proof import durations, table
from tools.proof.selection import pytest_addoption, pytest_collection_modifyitems

__all__ = ["pytest_addoption", "pytest_collection_modifyitems"]
SEED_VARIABLE = "READYGATE_SEED"
GATE_SEED = 20261128
_recorded_by_hand = pytest.StashKey[Path]()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    # In the environment, so that the processes of pytest-xdist have the same one.
    seed = os.environ.setdefault(SEED_VARIABLE, str(random.SystemRandom().randrange(2**32) if WHOLE else GATE_SEED))
    if config.getoption("--hypothesis-seed", None) is None:
        config.option.hypothesis_seed = seed
    hypothesis.settings.register_profile("unhurried", deadline=None, max_examples=draws(gate=40, whole=400))
    hypothesis.settings.load_profile("unhurried")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a background job of a shell; children would inherit it
        signal.signal(signal.SIGINT, signal.default_int_handler)
    by_hand = durations.FOLDER_VARIABLE not in os.environ
    durations.pytest_configure(config)
    if by_hand:
        config.stash[_recorded_by_hand] = Path(os.environ[durations.FOLDER_VARIABLE])


def pytest_unconfigure(config: pytest.Config) -> None:
    if folder := config.stash.get(_recorded_by_hand, None):
        table.write([], table.read(folder))
        shutil.rmtree(folder, ignore_errors=True)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    seed = os.environ[SEED_VARIABLE]
    terminalreporter.write_line(f"seed of tests by chance: {seed} ({SEED_VARIABLE}={seed} repeats them)")


@pytest.fixture(scope="session")
def seed() -> int:
    return int(os.environ[SEED_VARIABLE])
