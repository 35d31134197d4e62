"""300 refused nodes heal together: how many writes to the API server follow, and how soon waiting pods are bound."""

import math
import time
from collections.abc import Callable

from tests.plane.healing import Healed, kick_300
from tools.bench import arms
from tools.bench.asking import ask, node_name
from tools.bench.figures import Figure
from tools.bench.filter_latency import NODES
from tools.bench.processes import MeasurementError
from tools.bench.stub import Stub

HEALING = 300
CLOSE_LIMIT_S = 10.0
WATCHED_S = 15.0  # a repeat comes two seconds after the first, and nothing is to follow


def measure(progress: Callable[[str], None], *, quick: bool) -> list[Figure]:
    """The writes in half a minute with the stub, which has no pods that wait; the bindings in one with a real plane."""
    stub = Stub(arms.go_binary(progress), nodes=NODES)
    names = [node_name(i) for i in range(HEALING)]
    with stub.child:
        arm = arms.start_readygate(stub.api, kick=True)
        with arm.child:
            arms.wait_synced(arm)
            time.sleep(WATCHED_S / 3)  # the first sync may kick, too
            stub.turn(range(HEALING), ready=False)
            until = time.monotonic() + CLOSE_LIMIT_S
            while ask(arm.url, names):
                if time.monotonic() > until:
                    raise MeasurementError(f"{HEALING} nodes are not closed {CLOSE_LIMIT_S:.0f} s after their pods")
                time.sleep(0.05)
            progress(f"kick: {HEALING} refused nodes heal")
            before = stub.events().patches
            stub.turn(range(HEALING), ready=True)
            time.sleep(WATCHED_S / 3 if quick else WATCHED_S)
            patches = stub.events().patches - before
    progress("kick: the same with a real kube-scheduler")
    return figures(patches, kick_300(progress, nodes=HEALING))


def figures(patches: int, healed: Healed) -> list[Figure]:
    """Raises MeasurementError where a pod was not bound at all."""
    if math.isinf(healed.bound_s):
        raise MeasurementError("not all pods that waited were bound after the heal")
    note = f"from the first heal to the last binding; the heals were written in {healed.writes_s:.2f} s"
    return [
        Figure(f"kick_{HEALING}_patches", patches, "patches", f"in the {WATCHED_S:.0f} s after they healed"),
        Figure(f"kick_{HEALING}_bound_s", healed.bound_s, "s", f"{note}; {healed.patches} patches"),
    ]
