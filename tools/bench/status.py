"""What `readygate status` of 5,000 nodes costs whoever types it: a process of its own, from its start to its end."""

import os
import resource
import subprocess
import sys
from collections.abc import Callable

from tests.cli.served import serving
from tests.cli.status.test_large import answers
from tools.bench.figures import Figure, median, spread
from tools.bench.filter_latency import NODES
from tools.bench.processes import MeasurementError

CLOSED_EVERY = 50
SOME_CLOSED = 1  # the exit code


def measure(progress: Callable[[str], None], *, quick: bool = False) -> list[Figure]:
    """A few seconds. Processor time, for the machine may be busy: it is nearly all of the time where it is not."""
    said = answers(NODES, CLOSED_EVERY)

    def answer(target: str, _headers: object) -> tuple[int, bytes]:
        return 200, said[target.partition("/api/v1/")[2].partition("?")[0]]

    took = []
    with serving(answer) as url:
        for number in range(2 if quick else 5):
            progress(f"status: round {number + 1}")
            took.append(_spent_s([sys.executable, "-m", "cli", "status", "--server", url]))
    note = f"processor time of the whole process, one node in {CLOSED_EVERY} closed; rounds {spread(took)}"
    return [Figure("status_5000_cpu_s", median(took), "s", note)]


def _spent_s(argv: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False, env=os.environ)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != SOME_CLOSED or "nodes open" not in done.stdout:
        raise MeasurementError(f"readygate status ended with code {done.returncode}: {done.stderr.strip()}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
