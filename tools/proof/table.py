"""`python -m tools.proof.table`: where the time of the last run went, from build/durations.json (`make durations`).

`--write gate` or `--write whole` also puts the tables into docs/dev/tests.md.
"""

import argparse
import json
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tools.kit.causes import CAUSES

ROOT = Path(__file__).resolve().parents[2]
RESULT = ROOT / "build" / "durations.json"
DOCUMENT = ROOT / "docs" / "dev" / "tests.md"
SLOWEST = 40

Row = dict[str, Any]


@dataclass(frozen=True)
class Step:
    """What a step of a run cost. processor_s: of all processes that ended as its descendants."""

    name: str
    result: str
    wall_s: float
    processor_s: float


def read(folder: Path) -> list[Row]:
    """Returns the rows that the processes of a run have recorded in its folder."""
    return [json.loads(line) for path in sorted(folder.glob("*.jsonl")) for line in path.read_text().splitlines()]


def write(steps: Iterable[Step], rows: Iterable[Row], result: Path | None = None) -> None:
    """Writes `{"steps": [...], "tests": [...]}`."""
    result = result or RESULT
    result.parent.mkdir(parents=True, exist_ok=True)
    tests = ",\n".join(map(json.dumps, rows))
    result.write_text(f'{{"steps": {json.dumps([asdict(step) for step in steps])},\n"tests": [\n{tests}\n]}}\n')


def by_cause(rows: Iterable[Row]) -> dict[str, float]:
    """Returns wall seconds by cause. "processor and other": the seconds of no cause."""
    totals = dict.fromkeys([*CAUSES, "processor and other"], 0.0)
    for row in rows:
        for cause, seconds in row["causes_s"].items():
            totals[cause] += seconds
        totals["processor and other"] += max(row["wall_s"] - sum(row["causes_s"].values()), 0.0)
    return totals


def by_ring(rows: Iterable[Row]) -> dict[int, tuple[int, float, float]]:
    """For each ring: number of tests, wall seconds, processor seconds."""
    totals: dict[int, tuple[int, float, float]] = {}
    for row in rows:
        count, wall_s, processor_s = totals.get(row["ring"], (0, 0.0, 0.0))
        totals[row["ring"]] = (count + 1, wall_s + row["wall_s"], processor_s + row["processor_s"])
    return dict(sorted(totals.items()))


def text(steps: Iterable[Step], rows: list[Row], count: int = SLOWEST) -> str:
    """Tables in Markdown: steps, rings, causes, the slowest tests."""
    lines = ["| step | result | wall s | processor s |", "|---|---|---|---|"]
    lines += [f"| {step.name} | {step.result} | {step.wall_s:.0f} | {step.processor_s:.0f} |" for step in steps]
    lines += ["", "| ring | tests | wall s | processor s |", "|---|---|---|---|"]
    lines += [f"| {ring} | {n:,} | {wall:.0f} | {cpu:.0f} |" for ring, (n, wall, cpu) in by_ring(rows).items()]
    lines += ["", "| cause | wall s |", "|---|---|"]
    lines += [f"| {cause} | {seconds:.0f} |" for cause, seconds in by_cause(rows).items()]
    lines += ["", "| slowest tests | wall s | processor s | mostly |", "|---|---|---|---|"]
    for row in sorted(rows, key=lambda row: -row["wall_s"])[:count]:
        cause = max(row["causes_s"], key=row["causes_s"].get, default="-")
        test = row["test"].removeprefix("tests/").replace("|", "\\|")
        lines.append(f"| `{test}` | {row['wall_s']:.1f} | {row['processor_s']:.1f} | {cause} |")
    return "\n".join(lines)


def with_tables(document: str, selection: str, tables: str) -> str:
    """The document with the tables between the marks of a selection. Raises ValueError if a mark is missing."""
    begin, end = f"<!-- {selection}: begin -->", f"<!-- {selection}: end -->"
    before, opened, rest = document.partition(begin)
    _, closed, after = rest.partition(end)
    if not opened or not closed:
        raise ValueError(f"{begin} or {end} is missing in {DOCUMENT.name}")
    return f"{before}{begin}\n{tables}\n{end}{after}"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.proof.table", description=__doc__)
    parser.add_argument("--slowest", type=int, default=SLOWEST, metavar="N", help="how many tests (default: 40)")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    parser.add_argument("--write", choices=("gate", "whole"), help="put the tables into docs/dev/tests.md, too")
    arguments = parser.parse_args(argv)
    if not RESULT.exists():
        print(f"{RESULT.relative_to(ROOT)} does not exist: run `make test` first", file=sys.stderr)
        return 1
    found = json.loads(RESULT.read_text())
    rows = found["tests"]
    if arguments.output == "json":
        sums = {"steps": found["steps"], "rings": by_ring(rows), "causes_s": by_cause(rows), "tests": len(rows)}
        print(json.dumps(sums))
    else:
        tables = text([Step(**step) for step in found["steps"]], rows, arguments.slowest)
        print(tables)
        if arguments.write:
            DOCUMENT.write_text(with_tables(DOCUMENT.read_text(), arguments.write, tables))
    return 0


if __name__ == "__main__":
    sys.exit(main())
