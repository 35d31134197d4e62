"""Rows of the scorecard as a command: each prints its figures with a verdict; all are saved in one file."""

import argparse
import json
import os
import random
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.conftest import SEED_VARIABLE
from tools.kit.endings import EXIT_INTERRUPTED, interrupt_once

ROOT = Path(__file__).resolve().parents[2]
EVERY_S = 15.0  # at least so often a long row says where it is


@dataclass(frozen=True)
class Figure:
    """limit: what the value must be, as `<= 3`; "" for a figure that is only told."""

    name: str
    value: float
    unit: str
    limit: str = ""
    met: bool = True


@dataclass
class Trial:
    """What a row is given. minutes: how long its load lasts. chance: from the seed of the run. folder: its own."""

    minutes: float
    chance: random.Random
    folder: Path
    say: Callable[[str], None]
    figures: list[Figure] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        return self.minutes * 60

    def tell(self, name: str, value: float, unit: str) -> None:
        self.figures.append(Figure(name, _rounded(value), unit))

    def at_most(self, limit: float, name: str, value: float, unit: str) -> None:
        self.figures.append(Figure(name, _rounded(value), unit, f"<= {limit:g}", value <= limit))

    def at_least(self, limit: float, name: str, value: float, unit: str) -> None:
        self.figures.append(Figure(name, _rounded(value), unit, f">= {limit:g}", value >= limit))

    def played(self, wanted: float, minutes: float, name: str, value: float, unit: str) -> None:
        """What was to be done so often in so many minutes: a shorter row has to do its part of it, a longer one no
        more. A busy machine that plays less than that has shown nothing."""
        self.at_least(wanted * min(1.0, self.minutes / minutes), name, value, unit)


@dataclass(frozen=True)
class Row:
    """minutes: the length of the scorecard's target."""

    what: str
    minutes: float
    hold: Callable[[Trial], None]


@dataclass(frozen=True)
class Outcome:
    row: str
    what: str
    result: str
    seconds: float
    minutes: float
    figures: list[Figure]
    error: str = ""


class Progress:
    """Says something every so often: `progress("now")` may be called in each turn of a loop."""

    def __init__(self, say: Callable[[str], None], every_s: float = EVERY_S) -> None:
        self._say, self._every_s, self._due = say, every_s, time.monotonic() + every_s

    def __call__(self, text: str) -> None:
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + self._every_s
            self._say(text)


def main(name: str, rows: Mapping[str, Row], argv: list[str] | None = None) -> int:
    """Exit code 0 when every row passed."""
    parser = argparse.ArgumentParser(prog=f"python -m tests.{name}", description=_listing(rows))
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--only", action="append", choices=list(rows), help="one row; may be repeated")
    parser.add_argument("--minutes", type=float, help="the length of each row; default: that of its target")
    parser.add_argument("--save", type=Path, default=ROOT / "build" / f"{name}.json", help="default: build/%(prog)s")
    arguments = parser.parse_args(argv)
    interrupt_once()
    try:
        return _run(name, {k: rows[k] for k in arguments.only or rows}, arguments.minutes, arguments.save)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


def _run(name: str, rows: Mapping[str, Row], minutes: float | None, save: Path) -> int:
    seed = os.environ.setdefault(SEED_VARIABLE, str(random.SystemRandom().randrange(2**32)))
    total = sum(minutes or row.minutes for row in rows.values())
    print(f"{name}: {len(rows)} rows, about {total:.0f} minutes; seed {seed} ({SEED_VARIABLE}={seed} repeats it)")
    outcomes: list[Outcome] = []
    for key, row in rows.items():
        outcomes.append(_hold(key, row, minutes or row.minutes, seed))
        save.parent.mkdir(parents=True, exist_ok=True)  # after each row: what comes later may be interrupted
        save.write_text(json.dumps({"seed": seed, "rows": [asdict(o) for o in outcomes]}, indent=1) + "\n")
    failed = [outcome.row for outcome in outcomes if outcome.result != "passed"]
    verdict = f"FAILED: {', '.join(failed)}" if failed else "all passed"
    print(f"\n{name}: {len(outcomes)} rows, {verdict}; saved in {save}", flush=True)
    return 1 if failed else 0


def _hold(key: str, row: Row, minutes: float, seed: str) -> Outcome:
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"  [{time.monotonic() - began:5.0f} s] {text}", flush=True)

    print(f"\n{key}: {row.what}", flush=True)
    with tempfile.TemporaryDirectory(prefix=f"readygate-{key}-", ignore_cleanup_errors=True) as folder:
        trial = Trial(minutes, random.Random(f"{seed} {key}"), Path(folder), say)
        error = ""
        try:
            row.hold(trial)
        except Exception as e:  # noqa: BLE001 - whatever a row fails of, the others are held
            traceback.print_exc()
            error = f"{type(e).__name__}: {e}"
    met = not error and all(figure.met for figure in trial.figures)
    for figure in trial.figures:
        verdict = f"{figure.limit:>10}  {'met' if figure.met else 'MISSED'}" if figure.limit else ""
        print(f"  {figure.name:<46} {figure.value:>10g} {figure.unit:<6} {verdict}".rstrip())
    result = "passed" if met else "FAILED"
    print(f"{key}: {result}{': ' + error.splitlines()[0] if error else ''}", flush=True)
    return Outcome(key, row.what, result, round(time.monotonic() - began, 1), minutes, trial.figures, error)


def _listing(rows: Mapping[str, Row]) -> str:
    return "\n".join(f"{key}  {row.what} ({row.minutes:g} min)" for key, row in rows.items())


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def exit_with(name: str, rows: Mapping[str, Row]) -> None:
    sys.exit(main(name, rows))
