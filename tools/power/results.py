"""The result of each fault, a line of build/power/results.jsonl. Of several lines for a fault the last one counts.

A catch holds until the faulty file or the file of the test changes, or the test enters or leaves the gate. The result
of a fault that nothing caught holds until its file or one of its batches of tests changes.
"""

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from tools.power.copied import FOLDER

RESULTS = FOLDER / "results.jsonl"
CAUGHT, TIMEOUT, UNCAUGHT, UNCOVERED = "caught", "timeout", "uncaught", "uncovered"


@dataclass(frozen=True)
class Result:
    """outcome: caught; timeout (caught: a test hung); uncaught; uncovered (no test runs the line, in the rings tried).

    test, ring, gate: of the first test that caught it; "", -1 and False without one. tried: batch -> key of each batch
    that caught nothing. unreliable: tests that failed with and without the fault.
    """

    fault: str
    part: str
    what: str
    half: int
    outcome: str
    test: str = ""
    ring: int = -1
    gate: bool = False
    file_blob: str = ""
    test_blob: str = ""
    tried: dict[str, str] = field(default_factory=dict)
    unreliable: list[str] = field(default_factory=list)
    tests: int = 0
    seconds: float = 0.0

    @property
    def is_caught(self) -> bool:
        return self.outcome in (CAUGHT, TIMEOUT)


class Results:
    def __init__(self, path: Path = RESULTS) -> None:
        self._path = path
        self.rows: dict[str, Result] = {}
        lines = path.read_text().splitlines() if path.exists() else []
        for line in lines:
            try:
                row = Result(**json.loads(line))
            except (ValueError, TypeError):  # a line cut short by a kill, or of another version
                continue
            self.rows[row.fault] = row

    def add(self, row: Result) -> None:
        self.rows[row.fault] = row
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a+") as file:
            cut = file.tell() and not _ends_a_line(self._path)
            file.write(("\n" if cut else "") + json.dumps(asdict(row)) + "\n")

    def of(self, fault: str, file_blob: str) -> Result | None:
        """Returns the result of a fault, unless its file had another text then."""
        row = self.rows.get(fault)
        return row if row is not None and row.file_blob == file_blob else None


def _ends_a_line(path: Path) -> bool:
    return path.read_bytes()[-1:] == b"\n"


def merged(before: Result | None, now: Result) -> Result:
    """Adds the batches that an earlier result of the same text had tried, and that caught nothing."""
    return now if before is None else replace(now, tried={**before.tried, **now.tried})
