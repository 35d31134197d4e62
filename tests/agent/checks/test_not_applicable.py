"""A check that is not applicable: what the engine logs and counts of it."""

import logging

import pytest

from agent.checks.catalogue import CheckSpec
from agent.checks.engine import CheckEngine
from agent.checks.state import CheckState, Finding
from tools.kit.clock import Clock


def test_what_is_not_applicable_is_logged_once_and_counted_apart(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    clock = Clock(1000.0)
    passed, left_out = Finding(CheckState.PASSED), Finding(CheckState.NOT_APPLICABLE, "nothing to count")
    engine = CheckEngine([CheckSpec("a", lambda: passed), CheckSpec("b", lambda: left_out)], monotonic=clock)
    for _ in range(20):
        for worker in engine._workers:
            worker._turn()
        engine._turn()
        clock.time += 20.0
    said = [getattr(record, "not_applicable", None) for record in caplog.records]
    assert ["b: not applicable: nothing to count"] == said
    runs = {(check, str(state)) for check, state, count in engine.runs() if count}
    assert {("a", "passed"), ("b", "not applicable")} == runs
    assert engine.node_health().healthy
