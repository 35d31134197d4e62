"""What a run cost is added up by ring and cause, and the slowest tests come first."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tools.kit.causes import seconds, spent_on
from tools.kit.waiting import wait_for
from tools.proof.durations import ring_of, tree_processor_s
from tools.proof.table import Step, by_cause, by_ring, read, text, with_tables, write

ROWS = [
    {"test": "tests/a.py::a", "ring": 0, "wall_s": 2.0, "processor_s": 1.5, "causes_s": {"polling": 0.5}},
    {"test": "tests/plane/b.py::b", "ring": 2, "wall_s": 9.0, "processor_s": 4.0, "causes_s": {"polling": 8.0}},
    {"test": "tests/plane/b.py::c", "ring": 2, "wall_s": 1.0, "processor_s": 1.0, "causes_s": {}},
]

STEP = Step("ruff", "passed", 2.0, 3.0)


def test_seconds_are_added_up_by_ring_and_by_cause() -> None:
    assert {0: (1, 2.0, 1.5), 2: (2, 10.0, 5.0)} == by_ring(ROWS)
    totals = by_cause(ROWS)
    assert (8.5, 3.5) == (totals["polling"], totals["processor and other"])


def test_the_slowest_come_first() -> None:
    slowest = text([STEP], ROWS, count=1).splitlines()[-1]
    assert "| `plane/b.py::b` | 9.0 | 4.0 | polling |" == slowest


def test_tables_replace_those_of_the_same_selection() -> None:
    document = "a\n<!-- gate: begin -->\nold\n<!-- gate: end -->\n<!-- whole: begin -->\nkept\n<!-- whole: end -->\n"
    expected = document.replace("old", "new")
    assert expected == with_tables(document, "gate", "new")
    with pytest.raises(ValueError, match="night: begin"):
        with_tables(document, "night", "new")


def test_the_files_of_all_processes_become_one(tmp_path: Path) -> None:
    result = tmp_path / "durations.json"
    for number, row in enumerate(ROWS):
        (tmp_path / f"{number}.jsonl").write_text(f"{json.dumps(row)}\n")
    write([STEP], read(tmp_path), result)
    expected = {"steps": [{"name": "ruff", "result": "passed", "wall_s": 2.0, "processor_s": 3.0}], "tests": ROWS}
    assert expected == json.loads(result.read_text())


def test_rings_go_by_folders() -> None:
    tests = ["tests/scripted/a.py::a", "tests/plane/a.py::a", "tests/hosts/service/a.py::a", "tests/agent/a.py::a"]
    assert [1, 2, 3, 0] == [ring_of(test) for test in tests]


def test_what_a_child_computes_is_counted() -> None:
    before = tree_processor_s(os.getpid())
    subprocess.run([sys.executable, "-c", "sum(range(10_000_000))"], check=True)
    assert tree_processor_s(os.getpid()) - before >= 0.05


def test_a_wait_in_vain_is_a_timeout_waited_out_and_any_other_is_polling() -> None:
    before = seconds()
    assert wait_for(lambda: None, timeout_s=0.1, every_s=0.01) is None
    assert wait_for(iter([0, 0, 1]).__next__, timeout_s=10, every_s=0.01)
    spent = {cause: value - before[cause] for cause, value in seconds().items() if value - before[cause] > 1e-6}
    assert {"timeout waited out", "polling"} == set(spent)
    assert spent["timeout waited out"] >= 0.1


def test_a_cause_inside_another_is_not_counted_twice() -> None:
    before = seconds()
    with spent_on("host start"), spent_on("polling"):
        time.sleep(0.01)
    spent = {cause: value - before[cause] for cause, value in seconds().items() if value != before[cause]}
    assert {"host start"} == set(spent)
