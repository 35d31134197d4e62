"""The pytest plugin that records which test or shared fixture runs when coverage.py measures a line.

A context of coverage.py is the hash of a test's id, or of a fixture that several tests share while that is set up. A
process that is started has its context from the environment, so what a shared server runs is known by its fixture.
"""

import hashlib
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import coverage
import pytest

CONTEXT_VARIABLE = "READYGATE_POWER_CONTEXT"
FOLDER_VARIABLE = "READYGATE_POWER_CONTEXTS"
CONTEXT_DIGITS = 16


def context_of(name: str) -> str:
    """name: a test's id, or `name_of_fixture`."""
    return hashlib.sha256(name.encode()).hexdigest()[:CONTEXT_DIGITS]


def name_of_fixture(baseid: str, argname: str) -> str:
    return f"fixture {baseid}::{argname}"


class Contexts:
    """Of one pytest process: switches the context, and appends a line for each test to a file in `folder`."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = (folder / f"{os.getpid()}.jsonl").open("a", buffering=1)
        self._entered: list[str] = [""]
        self._failed: set[str] = set()

    def _enter(self, name: str) -> None:
        self._entered.append(context_of(name))
        self._switch()

    def _leave(self) -> None:
        self._entered.pop()
        self._switch()

    def _switch(self) -> None:
        os.environ[CONTEXT_VARIABLE] = self._entered[-1]
        if (measuring := coverage.Coverage.current()) is not None:
            measuring.switch_context(self._entered[-1])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[Any]:
        definitions = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
        shared = [
            name_of_fixture(d[-1].baseid, d[-1].argname) for d in definitions.values() if d[-1].scope != "function"
        ]
        started = time.monotonic()
        self._enter(item.nodeid)
        result = yield
        self._leave()
        line = {
            "test": item.nodeid,
            "seconds": round(time.monotonic() - started, 4),
            "fixtures": shared,
            "passed": item.nodeid not in self._failed,
        }
        self._file.write(f"{json.dumps(line)}\n")
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Iterator[Any]:
        if fixturedef.scope == "function":
            return (yield)
        self._enter(name_of_fixture(fixturedef.baseid, fixturedef.argname))
        try:
            return (yield)
        finally:
            self._leave()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome == "failed":
            self._failed.add(report.nodeid)


def pytest_configure(config: pytest.Config) -> None:
    if FOLDER_VARIABLE in os.environ:
        config.pluginmanager.register(Contexts(Path(os.environ[FOLDER_VARIABLE])), "readygate-contexts")
