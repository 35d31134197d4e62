"""SIGHUP after SIGHUP under load: no call may fail, whoever answers it."""

import os
import signal
import time
from collections.abc import Callable, Collection

from tools.bench import arms
from tools.bench.figures import Figure, quantile
from tools.bench.filter_latency import NODES
from tools.bench.helpers import Caller, Calls
from tools.bench.processes import MeasurementError
from tools.bench.stub import Stub
from tools.kit.pid import children

RELOADS = 100
RELOAD_LIMIT_S = 30.0
LOAD_LIMIT_S = 400.0
TIMEOUT_S = 1.0


def measure(progress: Callable[[str], None], *, quick: bool) -> list[Figure]:
    """Two seconds a reload on two cores: the new worker lists 5,000 nodes each time."""
    binary = arms.go_binary(progress)
    stub = Stub(binary, nodes=NODES)
    reloads = RELOADS // 10 if quick else RELOADS
    with stub.child:
        arm = arms.start_readygate(stub.api)
        with arm.child:
            arms.wait_synced(arm)
            with Caller(binary, arm.url, limit_s=LOAD_LIMIT_S, timeout_s=TIMEOUT_S) as caller:
                until = time.monotonic() + LOAD_LIMIT_S - RELOAD_LIMIT_S
                took = []
                for number in range(reloads):
                    if number % 10 == 0:
                        progress(f"reload: {number} of {reloads}")
                    if time.monotonic() > until:
                        raise MeasurementError(f"only {number} of {reloads} reloads in {LOAD_LIMIT_S:.0f} s")
                    took.append(reload_once(arm))
                calls = caller.calls(now=True)
    return figures(calls, took)


def reload_once(arm: arms.Arm) -> float:
    """Seconds from SIGHUP until a new worker is there alone, and ready."""
    master = arm.child.pids()[0]
    before = children(master)
    began = time.monotonic()
    os.kill(master, signal.SIGHUP)
    while not (replaced(before, children(master)) and arms.ready(arm)):
        if time.monotonic() > began + RELOAD_LIMIT_S:
            raise MeasurementError(f"the worker was not replaced within {RELOAD_LIMIT_S:.0f} s")
        time.sleep(0.01)
    return time.monotonic() - began


def replaced(before: Collection[int], now: Collection[int]) -> bool:
    """Whether the workers of before have all gone and as many others are there."""
    return len(now) == len(before) and not set(now) & set(before)


def figures(calls: Calls, took: list[float]) -> list[Figure]:
    waited = calls.waited_ms(TIMEOUT_S * 1000)
    note = (
        f"{len(waited)} calls, failed: {calls.causes}; p99 {quantile(waited, 0.99):.1f}, slowest {max(waited):.0f} ms; "
        f"a reload takes {quantile(took, 0.5):.1f} s, at most {max(took):.1f}"
    )
    return [Figure(f"reload_{len(took)}_failed", calls.failures, "calls", note)]
