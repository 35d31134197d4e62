"""The services as a whole, without an API server."""

import gc

import pytest

from extender.config.settings import parse
from extender.process.services import Services


@pytest.mark.parametrize("end", [Services.settle, Services.stop], ids=["the first snapshot", "a stop before it"])
def test_while_the_lists_of_a_start_are_read_no_garbage_is_looked_for_until(end):
    """There is none, and what is read stays."""
    services, usual = Services(parse(""), None), gc.get_threshold()
    services.start()
    try:
        assert gc.get_threshold()[0] >= 100_000
        end(services)
        assert usual == gc.get_threshold()
    finally:
        services.stop()
        gc.unfreeze()
