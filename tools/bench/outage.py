"""The API server goes away for two minutes less a little: how soon after its return an answer shows what happened."""

import time
from collections import Counter
from collections.abc import Callable

from tools.bench import arms
from tools.bench.asking import NoVerdictError, ask, node_name
from tools.bench.figures import Figure
from tools.bench.filter_latency import NODES
from tools.bench.processes import MeasurementError
from tools.bench.stub import Stub

AWAY_S = 116  # just below the limit for stale
AWAY_QUICK_S = 20
FRESH_LIMIT_S = 60.0
NODE = node_name(0)
OPEN, REFUSED, NO_VERDICT = "open", "refused", "no verdict"


def measure(progress: Callable[[str], None], *, quick: bool) -> list[Figure]:
    """The outage, and what it takes after it."""
    away_s = AWAY_QUICK_S if quick else AWAY_S
    stub = Stub(arms.go_binary(progress), nodes=NODES)
    with stub.child:
        arm = arms.start_readygate(stub.api)
        with arm.child:
            arms.wait_synced(arm)
            progress(f"outage: the API server is away for {away_s} s")
            if state_of(arm) != OPEN:
                raise MeasurementError(f"{NODE} is not open before the outage")
            back = stub.leave(away_s, breaking=0)
            seen = Counter[str]()
            while time.monotonic() < back:
                seen[state_of(arm)] += 1
                time.sleep(1.0)
            while (state := state_of(arm)) != REFUSED:
                seen[state] += 1
                if time.monotonic() > back + FRESH_LIMIT_S:
                    raise MeasurementError(f"not fresh {FRESH_LIMIT_S:.0f} s after the API server is back")
                time.sleep(0.02)
            fresh_s = time.monotonic() - back
    note = f"until a node that broke meanwhile is refused; {seen[NO_VERDICT]} calls got no verdict until then"
    return [Figure(f"outage_{away_s}_fresh_s", fresh_s, "s", note)]


def state_of(arm: arms.Arm) -> str:
    """What the extender says of the node."""
    try:
        return OPEN if ask(arm.url, [NODE]) else REFUSED
    except NoVerdictError:
        return NO_VERDICT  # what it knows is too old for a verdict
