"""A host without a network: for the others it is dead, whatever runs on it."""

import time
from collections.abc import Callable, Iterator

from tools.bench.faults.stage import Stage
from tools.bench.faults.watch import Watch
from tools.bench.processes import MeasurementError

TIMES, LIMIT_S, BACK_LIMIT_S = 4, 60.0, 120.0


def nodes(stage: Stage, watch: Watch, progress: Callable[[str], None]) -> Iterator[float]:
    """Seconds until the extender closes the node, by the Lease of its agent or its kubelet. Raises MeasurementError."""
    for number in range(TIMES):
        name = stage.workers[number % len(stage.workers)]
        if watch.wait(name, closed=False, timeout_s=BACK_LIMIT_S) is None:
            raise MeasurementError(f"{name} is closed before it dies: {watch.reason(name)}")
        began = time.time()
        with stage.hosts.away(name):
            closed = watch.wait(name, closed=True, timeout_s=LIMIT_S)
            reason = watch.reason(name)
        if closed is None:
            raise MeasurementError(f"{name} is not closed {LIMIT_S:.0f} s after it died")
        progress(f"dead node {name}: closed {closed - began:.2f} s ({reason})")
        yield closed - began
    watch.wait(name, closed=False, timeout_s=BACK_LIMIT_S)
