"""Four people's clients read all nodes without pause: does kube-scheduler feel it?"""

from collections.abc import Callable
from pathlib import Path

from tests.bench import arms
from tests.bench.figures import Figure, median, median_ratio, quantile, spread
from tests.bench.filter_latency import NODES
from tests.bench.helpers import Caller, Calls, Helper
from tests.bench.stub import Stub

CLIENTS = 4
PAGE = "/api/v1/nodes"
TIMEOUT_MS = 1000.0


def measure(progress: Callable[[str], None], *, quick: bool) -> list[Figure]:
    """Rounds of two phases, with and without; less than a minute."""
    binary = arms.go_binary(progress)
    stub = Stub(binary, nodes=NODES)
    alone: list[Calls] = []
    beside: list[Calls] = []
    fetched = 0
    seconds = 4.0
    with stub.child:
        arm = arms.start_readygate(stub.api)
        with arm.child:
            arms.wait_synced(arm)
            with arms.start_people(arm):
                words = ["-url", arm.pages_url + PAGE, "-clients", str(CLIENTS)]
                for number in range(2 if quick else 5):
                    progress(f"people: round {number + 1}")
                    alone.append(_call(binary, arm, seconds))
                    with Helper(binary, "fetch", *words, limit_s=60, elsewhere=True) as readers:
                        beside.append(_call(binary, arm, seconds))
                        fetched += readers.end()["fetched"]
    return figures(alone, beside, pages_s=fetched / (seconds * len(beside)))


def _call(binary: Path, arm: arms.Arm, seconds: float) -> Calls:
    with Caller(binary, arm.url, limit_s=seconds, pause_s=0.001) as caller:
        return caller.calls()


def figures(alone: list[Calls], beside: list[Calls], *, pages_s: float) -> list[Figure]:
    before, with_them = ([quantile(one.waited_ms(TIMEOUT_MS), 0.99) for one in of] for of in (alone, beside))
    failed = sum(one.failures for one in beside)
    note = f"p99 {median(before):.2f} -> {median(with_them):.2f} ms ({spread(with_them)}); {pages_s:.0f} pages/s"
    return [
        Figure(f"people_{CLIENTS}_filter_p99_ratio", median_ratio(with_them, before), "ratio", note),
        Figure(f"people_{CLIENTS}_failed", failed, "calls"),
    ]
