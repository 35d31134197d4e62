"""How long SIGTERM takes when somebody is connected who says nothing."""

import http.client
import socket
import time
from collections.abc import Callable

from tests.bench import arms
from tests.bench.figures import Figure, spread
from tests.bench.filter_latency import NODES
from tests.bench.stub import Stub

EXIT_LIMIT_S = 30.0


def measure(progress: Callable[[str], None], *, quick: bool) -> list[Figure]:
    """A few starts and stops."""
    stub = Stub(arms.go_binary(progress), nodes=NODES)
    with stub.child:
        took = []
        for number in range(2 if quick else 5):
            progress(f"stop: round {number + 1}")
            arm = arms.start_readygate(stub.api)
            with arm.child:
                arms.wait_synced(arm)
                took.append(stop_beside_silence(arm))
    return [Figure("stop_silent_s", max(took), "s", f"worst of {len(took)}, {spread(took)}; one silent, one kept idle")]


def stop_beside_silence(arm: arms.Arm) -> float:
    """Seconds from SIGTERM to the end of all processes; one connection says nothing, one is idle after an answer."""
    host, _, port = arm.address.partition(":")
    kept = http.client.HTTPConnection(host, int(port), timeout=5)
    with socket.create_connection((host, int(port)), timeout=5):
        kept.request("GET", "/readyz")
        kept.getresponse().read()
        time.sleep(0.2)  # the silent one is seen
        began = time.monotonic()
        arm.child.stop(grace_s=EXIT_LIMIT_S)
        took = time.monotonic() - began
    kept.close()
    return took
