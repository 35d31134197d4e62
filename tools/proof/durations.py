"""The pytest plugin that records what each test cost: wall and processor seconds, and what it waited for.

Each pytest process appends to a file of its own in the folder READYGATE_DURATIONS. `table.read` and `table.write` make
one `build/durations.json` of these files. Processor seconds are those of the process and of all its descendants:
servers, agents and hosts too. A fixture that several tests share is counted for the test that starts or stops it.
"""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tools.kit import causes

ROOT = Path(__file__).resolve().parents[2]
FOLDER_VARIABLE = "READYGATE_DURATIONS"
STEP_VARIABLE = "READYGATE_TEST_STEP"
"""The process that runs the steps, a dash, and the name of the step."""
SAMPLE_FROM_S = 0.2
"""A shorter test has only its own process's processor seconds; its children's are counted for the next longer one."""
_TICKS = os.sysconf("SC_CLK_TCK")
_RINGS = {"plane": 2, "hosts": 3, "scripted": 1}


def ring_of(test: str) -> int:
    """Returns the ring by the folder in tests/: 1 scripted, 2 plane, 3 hosts, 0 all others."""
    return _RINGS.get(test.split("/")[1] if "/" in test else "", 0)


def tree_processor_s(pid: int, proc: Path = Path("/proc")) -> float:
    """User and system seconds of a process, of its living descendants, and of those children that they have reaped."""
    parents: dict[int, list[int]] = {}
    ticks: dict[int, int] = {}
    for folder in proc.iterdir():
        if not folder.name.isdigit():
            continue
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents.setdefault(int(fields[1]), []).append(int(folder.name))
        ticks[int(folder.name)] = sum(map(int, fields[11:15]))
    waiting, total = [pid], 0
    while waiting:
        one = waiting.pop()
        total += ticks.get(one, 0)
        waiting += parents.get(one, ())
    return total / _TICKS


class Recorder:
    """Appends a line for each test of this pytest process to the file of the process."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = (folder / f"{os.getpid()}.jsonl").open("a", buffering=1)
        self._tree_s = tree_processor_s(os.getpid())
        self._own_s = time.process_time()
        self._causes = causes.seconds()
        self._outcomes: dict[str, str] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[Any]:
        started, own_s = time.monotonic(), time.process_time()
        result = yield
        wall_s = time.monotonic() - started
        now = causes.seconds()
        spent = {cause: round(now[cause] - before, 3) for cause, before in self._causes.items()}
        self._causes = now
        line = {
            "test": item.nodeid,
            "step": os.environ.get(STEP_VARIABLE, "").partition("-")[2],
            "ring": ring_of(item.nodeid),
            "outcome": self._outcomes.pop(item.nodeid, "passed"),
            "wall_s": round(wall_s, 3),
            "processor_s": round(self._processor_s(wall_s, own_s), 3),
            "causes_s": {cause: seconds for cause, seconds in spent.items() if seconds >= 0.001},
        }
        self._file.write(f"{json.dumps(line)}\n")
        return result

    def _processor_s(self, wall_s: float, own_before_s: float) -> float:
        own_s = time.process_time()
        if wall_s < SAMPLE_FROM_S:
            return own_s - own_before_s
        tree_s = tree_processor_s(os.getpid())
        # Short tests before this one have these seconds of the process already.
        spent = (tree_s - self._tree_s) - (own_before_s - self._own_s)
        self._tree_s, self._own_s = tree_s, own_s
        return max(spent, 0.0)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome != "passed":
            self._outcomes[report.nodeid] = report.outcome


def pytest_configure(config: pytest.Config) -> None:
    """Records in each process that runs tests: in pytest-xdist's workers, and not in their controller."""
    folder = Path(os.environ.setdefault(FOLDER_VARIABLE, str(ROOT / "build" / "durations" / f"by-hand-{os.getpid()}")))
    if config.getoption("numprocesses", None) in (None, 0) or hasattr(config, "workerinput"):
        causes.count_sleeps()
        config.pluginmanager.register(Recorder(folder), "readygate-durations")
