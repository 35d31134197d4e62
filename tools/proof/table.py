"""`python -m tools.proof.table`: where the time of the last run went, from build/durations.json (`make durations`)."""

import argparse
import json
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tools.kit.causes import CAUSES

ROOT = Path(__file__).resolve().parents[2]
RESULT = ROOT / "build" / "durations.json"
SLOWEST = 40

Row = dict[str, Any]


def collect(folder: Path, result: Path = RESULT) -> list[Row]:
    """Makes one file of those that the processes of a run wrote, removes the folder, and returns its rows."""
    rows = [json.loads(line) for path in sorted(folder.glob("*.jsonl")) for line in path.read_text().splitlines()]
    result.parent.mkdir(parents=True, exist_ok=True)
    result.write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")
    shutil.rmtree(folder, ignore_errors=True)
    return rows


def by_cause(rows: Iterable[Row]) -> dict[str, float]:
    """Wall seconds by cause. "other": neither a cause nor more than the test's processor seconds."""
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


def text(rows: list[Row], count: int = SLOWEST) -> str:
    """Three tables in Markdown: rings, causes, the slowest tests."""
    lines = ["| ring | tests | wall s | processor s |", "|---|---|---|---|"]
    lines += [f"| {ring} | {n:,} | {wall:.0f} | {cpu:.0f} |" for ring, (n, wall, cpu) in by_ring(rows).items()]
    lines += ["", "| cause | wall s |", "|---|---|"]
    lines += [f"| {cause} | {seconds:.0f} |" for cause, seconds in by_cause(rows).items()]
    lines += ["", "| slowest tests | wall s | processor s | mostly |", "|---|---|---|---|"]
    for row in sorted(rows, key=lambda row: -row["wall_s"])[:count]:
        cause = max(row["causes_s"], key=row["causes_s"].get, default="-")
        test = row["test"].removeprefix("tests/").replace("|", "\\|")
        lines.append(f"| `{test}` | {row['wall_s']:.1f} | {row['processor_s']:.1f} | {cause} |")
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.proof.table", description=__doc__)
    parser.add_argument("--slowest", type=int, default=SLOWEST, metavar="N", help="how many tests (default: 40)")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    arguments = parser.parse_args(argv)
    if not RESULT.exists():
        print(f"{RESULT.relative_to(ROOT)} does not exist: run `make test` first", file=sys.stderr)
        return 1
    rows = json.loads(RESULT.read_text())
    if arguments.output == "json":
        print(json.dumps({"rings": by_ring(rows), "causes": by_cause(rows), "tests": len(rows)}))
    else:
        print(text(rows, arguments.slowest))
    return 0


if __name__ == "__main__":
    sys.exit(main())
