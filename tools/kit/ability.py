"""What a test needs of the machine it runs on."""

import os
from typing import NoReturn

import pytest


def must_run() -> bool:
    """Whether nothing may be left out here: CI, and the rings that `make test` calls for by name."""
    return os.environ.get("CI", "").lower() not in {"", "0", "false"}


def cannot_run(reason: str) -> NoReturn:
    """Ends a test that this machine cannot run: failed where it must, else skipped. pytest's last lines say why."""
    if must_run():
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)
