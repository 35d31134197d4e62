"""The pytest plugin that runs the tests chosen for a fault, in their order, and records which began and which failed.

READYGATE_POWER_CHOICE names a JSON file: `tests` (ids), `files` (all tests of these files and folders), `without` (ids
that fail without a fault too), `gate` (true: tests of the gate alone; false: those of the whole proof alone). What
happens is appended to the file that `record` names, one JSON document a line.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tools.proof.selection import LIST, in_gate, read

VARIABLE = "READYGATE_POWER_CHOICE"


class ChosenTests:
    def __init__(self, choice: dict[str, Any]) -> None:
        self._rank = {test: place for place, test in enumerate(choice["tests"])}
        self._files = {name.rstrip("/"): place for place, name in enumerate(choice["files"])}
        self._without = set(choice["without"])
        self._gate = choice["gate"]
        self._record = Path(choice["record"]).open("a", buffering=1)  # noqa: SIM115 - as long as pytest runs

    def _say(self, **facts: object) -> None:
        self._record.write(f"{json.dumps(facts)}\n")

    def _place(self, test: str) -> int | None:
        """None for a test that is not wanted."""
        if test in self._rank:
            return self._rank[test]
        path = test.partition("::")[0]
        found = [place for name, place in self._files.items() if path == name or path.startswith(f"{name}/")]
        return len(self._rank) + min(found) if found else None

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        chosen = in_gate([item.nodeid for item in items], read(LIST.read_text()))
        places = {item: self._place(item.nodeid) for item in items}
        wanted = [
            item
            for item, gate in zip(items, chosen, strict=True)
            if places[item] is not None and gate is self._gate and item.nodeid not in self._without
        ]
        first = {}  # tests of a file stay together: they share fixtures
        for item in wanted:
            first[item.path] = min(first.get(item.path, places[item]), places[item])
        config.hook.pytest_deselected(items=[item for item in items if item not in set(wanted)])
        items[:] = sorted(wanted, key=lambda item: first[item.path])
        self._say(chosen=len(items))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._say(failed=f"{report.nodeid} (collection)", timeout=False, text=str(report.longrepr)[-300:])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._say(began=nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            text = str(report.longrepr)
            self._say(failed=report.nodeid, timeout="Timeout (>" in text, text=text[-300:])


def pytest_configure(config: pytest.Config) -> None:
    if VARIABLE in os.environ:
        choice = json.loads(Path(os.environ[VARIABLE]).read_text())
        config.pluginmanager.register(ChosenTests(choice), "readygate-chosen-tests")
