"""In what order the parts of a run are played, and how many."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.differential import __main__ as differential
from tests.differential.compare import Tally

NOWHERE = Path("/nowhere/driver")


def test_targets_take_turns() -> None:
    jobs = differential._jobs(NOWHERE, ["lease", "node"], 1000, 2, 7)
    assert ["lease", "node", "lease", "node"] == [job.target for job in jobs]
    assert [[0, 1, 2], [3, 4]] == [[number for number, _ in job.batches] for job in jobs if job.target == "node"]


def test_one_whose_time_is_over_draws_nothing() -> None:
    (job,) = differential._jobs(NOWHERE, ["node"], 200, 1, 7)
    assert Tally("node", 0, 0.0) == replace(job, until=time.monotonic()).run()


@pytest.mark.parametrize(
    ("forgiven", "expected"),
    [pytest.param(2, 0, id="a few"), pytest.param(3, 1, id="too many, of all parts together")],
)
def test_a_target_of_which_too_many_agreed_late_differs(monkeypatch, forgiven: int, expected: int, capsys) -> None:
    jobs = differential._jobs(NOWHERE, ["handlers"], 400, 2, 7)
    tally = Tally("handlers", 200, 1.0, forgiven=("{}",) * forgiven)
    monkeypatch.setattr(differential, "_ended", lambda jobs: [(job, tally) for job in jobs])
    assert expected == differential._compare(jobs)
    assert f"{2 * forgiven} agreed only when they were played again" in capsys.readouterr().out
