"""How fast the differential test is: histories by second of processor time, of both halves together."""

import time
from collections.abc import Callable

from tools.bench.figures import Figure
from tools.bench.processes import MeasurementError, cpu_s
from tools.differential.build import driver
from tools.differential.build_1_16 import driver_1_16
from tools.differential.compare import batches_of, compare
from tools.differential.kubelet import Kubelet, is_old
from tools.differential.target import Target
from tools.differential.targets import TARGETS

HISTORIES, QUICK_HISTORIES = 2000, 100
SEED = 1  # the same histories each time: else the figures would be of others


def measure(progress: Callable[[str], None], *, quick: bool = False) -> list[Figure]:
    """A minute, and the driver's build where it is not cached."""
    executable, old = driver(progress), driver_1_16(progress)
    histories = QUICK_HISTORIES if quick else HISTORIES
    found = []
    for target in TARGETS:
        progress(f"differential: {target.name}")
        with Kubelet(old if is_old(target.name) else executable) as kubelet:
            found.append(_figure(target, kubelet, histories))
    return found


def _figure(target: Target, kubelet: Kubelet, histories: int) -> Figure:
    before, theirs = time.process_time(), cpu_s(kubelet.pid)
    tally = compare(target, kubelet, batches=batches_of(histories), seed=SEED)
    ours, theirs = time.process_time() - before, cpu_s(kubelet.pid) - theirs
    if tally.difference is not None:
        raise MeasurementError(f"{target.name}: the agent differs: run `make differential SEED={SEED}`")
    note = f"by second of processor time; {1000 * ours / histories:.2f} ms here, {1000 * theirs / histories:.2f} in Go"
    return Figure(f"differential_{target.name}_per_s", histories / (ours + theirs), "1/s", note)
