"""Which tests only the whole proof runs: `tests/whole_only.txt`, and pytest's option `--gate` that leaves them out.

A line is `path[::function[[parameter]]]  # reason`: a folder, a file, a function (or class) or one parameter.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIST = ROOT / "tests" / "whole_only.txt"


@dataclass(frozen=True, slots=True)
class Line:
    """what: a folder, a file or the beginning of a test's id. reason: why the gate can do without it."""

    what: str
    reason: str

    def covers(self, test: str) -> bool:
        """test: its id, as pytest prints it."""
        return test == self.what or test.startswith((f"{self.what}/", f"{self.what}::", f"{self.what}["))


def read(text: str) -> list[Line]:
    """Raises ValueError with the line that has no reason."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    found = [Line(what.strip(), reason.strip()) for what, _, reason in (line.partition("  # ") for line in lines)]
    for line in found:
        if not line.reason:
            raise ValueError(f"{LIST.name}: {line.what!r} has no reason")
    return found


def in_gate(tests: Iterable[str], lines: Iterable[Line]) -> list[bool]:
    """For each test's id whether the gate runs it."""
    listed = tuple(lines)
    return [not any(line.covers(test) for line in listed) for test in tests]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--gate", action="store_true", help="leave out the tests of tests/whole_only.txt")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--gate"):
        return
    chosen = in_gate([item.nodeid for item in items], read(LIST.read_text()))
    left_out = [item for item, gate in zip(items, chosen, strict=True) if not gate]
    items[:] = [item for item, gate in zip(items, chosen, strict=True) if gate]
    config.hook.pytest_deselected(items=left_out)
