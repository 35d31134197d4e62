"""The API server goes away for two minutes less a little: how soon after its return an answer shows what happened."""

import time
from collections.abc import Callable

from tests.bench import arms
from tests.bench.asking import ask, node_name
from tests.bench.figures import Figure
from tests.bench.filter_latency import NODES
from tests.bench.processes import MeasurementError
from tests.bench.stub import Stub

AWAY_S = 116  # shorter than the limit for stale: answers go on all the time
AWAY_QUICK_S = 20
FRESH_LIMIT_S = 60.0


def measure(progress: Callable[[str], None], *, quick: bool) -> list[Figure]:
    """The outage, and what it takes after it."""
    away_s = AWAY_QUICK_S if quick else AWAY_S
    stub = Stub(arms.go_binary(progress), nodes=NODES)
    node = [node_name(0)]
    with stub.child:
        arm = arms.start_readygate(stub.api)
        with arm.child:
            arms.wait_synced(arm)
            progress(f"outage: the API server is away for {away_s} s")
            if not ask(arm.url, node):
                raise MeasurementError(f"{node[0]} is closed before the outage")
            back = stub.leave(away_s, breaking=0)
            refused = 0
            while time.monotonic() < back:
                refused += not ask(arm.url, node)
                time.sleep(1.0)
            while ask(arm.url, node):
                if time.monotonic() > back + FRESH_LIMIT_S:
                    raise MeasurementError(f"not fresh {FRESH_LIMIT_S:.0f} s after the API server is back")
                time.sleep(0.02)
            fresh_s = time.monotonic() - back
    note = f"a node that broke meanwhile is refused so long after the API server is back; {refused} refusals before"
    return [Figure(f"outage_{away_s}_fresh_s", fresh_s, "s", note)]
