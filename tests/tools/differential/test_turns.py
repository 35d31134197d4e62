"""In what order the parts of a run are played, how many, and that a run ends when it is told to."""

import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tools.differential import __main__ as differential
from tools.differential.compare import Tally

NOWHERE = dict.fromkeys(("handlers", "lease", "node"), Path("/nowhere/driver"))


def test_targets_take_turns() -> None:
    jobs = differential._jobs(NOWHERE, {"lease": 1000, "node": 1000}, 2, 7)
    assert ["lease", "node", "lease", "node"] == [job.target for job in jobs]
    assert [[0, 1, 2], [3, 4]] == [[number for number, _ in job.batches] for job in jobs if job.target == "node"]


def test_one_whose_time_is_over_draws_nothing() -> None:
    (job,) = differential._jobs(NOWHERE, {"node": 200}, 1, 7)
    assert Tally("node", 0, 0.0) == replace(job, until=time.monotonic()).run()


@pytest.mark.parametrize(
    ("forgiven", "expected"),
    [pytest.param(2, [], id="a few"), pytest.param(3, ["handlers"], id="too many, of all parts together")],
)
def test_a_target_of_which_too_many_agreed_late_differs(
    monkeypatch, forgiven: int, expected: list[str], capsys
) -> None:
    jobs = differential._jobs(NOWHERE, {"handlers": 400}, 2, 7)
    tally = Tally("handlers", 200, 1.0, forgiven=("{}",) * forgiven)
    monkeypatch.setattr(differential, "_ended", lambda jobs: [(job, tally) for job in jobs])
    assert expected == differential._compare(jobs)
    assert f"{2 * forgiven} agreed only when they were played again" in capsys.readouterr().out


WAITING = textwrap.dedent("""
    import os, signal, time
    from dataclasses import dataclass
    from tools.differential import __main__ as differential

    @dataclass(frozen=True)
    class Waits:
        target: str
        def run(self):
            os.write(1, b"waits\\n")  # in one piece: another says the same
            time.sleep(600)

    signal.signal(signal.SIGTERM, differential._end)
    list(differential._ended([Waits(str(number)) for number in range(8)]))
""")


def test_a_run_that_is_told_to_end_does_not_wait_for_those_that_compare() -> None:
    """One of them may wait for a server that is silent, and others have not begun yet."""
    with subprocess.Popen([sys.executable, "-c", WAITING], stdout=subprocess.PIPE, text=True) as run:
        try:
            assert run.stdout is not None
            assert "waits\n" == run.stdout.readline()
            run.send_signal(signal.SIGTERM)
            assert 128 + signal.SIGTERM == run.wait(60)
        finally:
            run.kill()
