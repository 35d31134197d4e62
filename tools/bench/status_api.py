"""Four people's clients read all nodes without pause: does kube-scheduler feel it?"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.bench import arms
from tools.bench.figures import Figure, median, median_ratio, quantile, spread
from tools.bench.filter_latency import NODES
from tools.bench.helpers import Caller, Calls, Helper
from tools.bench.processes import MeasurementError
from tools.bench.stub import Stub

CLIENTS = 4
READ_MIN_S = 1.0  # pages a second by each client: below it they have read nothing that could have been felt
PAGE = "/api/v1/nodes"
TIMEOUT_MS = 1000.0


@dataclass(frozen=True)
class Read:
    """What all the clients together got in one phase: whole pages, and how often none."""

    pages: int
    failed: int


def measure(progress: Callable[[str], None], *, quick: bool) -> list[Figure]:
    """Rounds of two phases, with and without; less than a minute. Raises MeasurementError where nothing was read."""
    binary = arms.go_binary(progress)
    stub = Stub(binary, nodes=NODES)
    alone: list[Calls] = []
    beside: list[Calls] = []
    read: list[Read] = []
    seconds = 4.0
    with stub.child:
        arm = arms.start_readygate(stub.api)
        with arm.child:
            arms.wait_synced(arm)
            with arms.start_status_api(arm):
                words = ["-url", arm.pages_url + PAGE, "-clients", str(CLIENTS)]
                for number in range(2 if quick else 5):
                    progress(f"status-api: round {number + 1}")
                    alone.append(_call(binary, arm, seconds))
                    with Helper(binary, "fetch", *words, limit_s=60, elsewhere=True) as readers:
                        beside.append(_call(binary, arm, seconds))
                        seen = readers.end()
                    read.append(Read(seen["fetched"], seen["failed"]))
    return figures(alone, beside, read, seconds=seconds)


def _call(binary: Path, arm: arms.Arm, seconds: float) -> Calls:
    with Caller(binary, arm.url, limit_s=seconds, pause_s=0.001) as caller:
        return caller.calls()


def figures(alone: Sequence[Calls], beside: Sequence[Calls], read: Sequence[Read], *, seconds: float) -> list[Figure]:
    """seconds: of a phase. Raises MeasurementError where the readers were none."""
    refused, least = sum(one.failed for one in read), min(one.pages for one in read)
    if refused:
        raise MeasurementError(f"{refused} of the readers' requests failed")
    if least < CLIENTS * READ_MIN_S * seconds:
        raise MeasurementError(f"{CLIENTS} readers got {least} pages in {seconds:g} s: too few to be felt")
    pages_s = sum(one.pages for one in read) / (seconds * len(read))
    before, with_them = ([quantile(one.waited_ms(TIMEOUT_MS), 0.99) for one in of] for of in (alone, beside))
    failed = sum(one.failures for one in beside)
    note = f"p99 {median(before):.2f} -> {median(with_them):.2f} ms ({spread(with_them)})"
    return [
        Figure(f"status_api_{CLIENTS}_filter_p99_ratio", median_ratio(with_them, before), "ratio", note),
        Figure(f"status_api_{CLIENTS}_failed", failed, "calls"),
        Figure(f"status_api_{CLIENTS}_pages_s", pages_s, "1/s", f"least in a phase of {seconds:g} s: {least}"),
    ]
