"""When the watchdog logs the stack of the serving thread."""

import re
from types import SimpleNamespace

import pytest

from extender.process import watchdog
from extender.process.server import CONF
from extender.process.watchdog import SILENT_CHECKS, Watchdog


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        pytest.param("b." * 20, 0, id="a heartbeat before each check"),
        pytest.param("b" + "." * SILENT_CHECKS, 0, id="one silent check too few"),
        pytest.param("b" + "." * (SILENT_CHECKS + 1), 1, id="enough silent checks"),
        pytest.param("b" + "." * 30, 1, id="silence without an end"),
        pytest.param(("b" + "." * 8) * 3, 3, id="three times"),
    ],
)
def test_stack_is_logged_once_each_time_the_heartbeats_stop(steps, expected, caplog):
    dog = Watchdog()
    for step in steps:
        if step == "b":
            dog.beat()
        else:
            dog.check()
    assert ["the serving thread hangs"] * expected == [one.message for one in caplog.records]
    assert all(re.match(r"watchdog.py:\d+ stack_of < watchdog.py:\d+ check < ", one.stack) for one in caplog.records)
    assert all(len(one.stack) <= watchdog.STACK_MAX_CHARS for one in caplog.records)


def test_stack_is_logged_seconds_before_gunicorn_kills_the_worker():
    timeout = int(re.search(r"^timeout = (\d+)$", CONF.read_text(), re.MULTILINE)[1])
    assert (SILENT_CHECKS + 1) * watchdog.CHECK_EVERY_S <= timeout - 3


def test_stack_of_a_thread_that_has_ended_is_empty(monkeypatch):
    monkeypatch.setattr(watchdog, "sys", SimpleNamespace(_current_frames=dict))
    assert watchdog.stack_of(1) == ""
