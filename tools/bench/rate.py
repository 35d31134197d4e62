"""Calls without a pause: of 5,000 names over one connection, and over eight with status API and Prometheus; 64 at once;
of the most names that there may be in a cluster whose nodes are all asked about; beside a crowd that asks as much."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from http import HTTPStatus
from pathlib import Path

from tools.bench import arms
from tools.bench.figures import Figure, quantile
from tools.bench.filter_latency import NODES
from tools.bench.helpers import Caller, Calls
from tools.bench.processes import MeasurementError
from tools.bench.stub import Stub
from tools.kit.programs import fetch

CONNECTIONS = 8
PAGES = ("/api/v1/nodes", "/metrics")
PAGES_EVERY_S = 1.0
TIMEOUT_S = 1.0
AT_ONCE, AT_ONCE_NAMES = 64, 812
WIDE = 16_000  # nodes, and names in a request
SHORT_S = 5.0
CROWD = 120  # connections, each with 5,000 names without a pause
BEFORE_S = 2.0  # so long the one who asks was there before they come
PATIENCE_S = 20.0  # of all, as it is measured how long they wait


def measure(progress: Callable[[str], None], *, quick: bool) -> list[Figure]:
    """Two minutes and a half, half of one if it is to be quick."""
    binary = arms.go_binary(progress)
    stub = Stub(binary, nodes=NODES)
    seconds = 10.0 if quick else 60.0
    with stub.child:
        arm = arms.start_readygate(stub.api)
        with arm.child:
            arms.wait_synced(arm)
            progress(f"rate: one connection, {seconds:.0f} s")
            (one,) = _call(binary, arm, seconds, connections=1)
            with arms.start_status_api(arm), looking(arm.pages_url) as looked:
                progress(f"rate: {CONNECTIONS} connections beside the status API, {seconds:.0f} s")
                many = _call(binary, arm, seconds, connections=CONNECTIONS)
            progress(f"rate: {AT_ONCE} calls at once, {SHORT_S:.0f} s")
            options = {"names": AT_ONCE_NAMES, "nodes": NODES, "connections": AT_ONCE}
            with Caller(binary, arm.url, limit_s=SHORT_S, timeout_s=TIMEOUT_S, pause_s=0.0, **options) as caller:
                at_once = caller.calls()
            progress(f"rate: one that was there before {CROWD} that ask as much, {SHORT_S:.0f} s")
            beside, crowd = _beside_crowd(binary, arm)
    short = short_figures(at_once, _wide(binary, progress))
    return [*figures(one, many, looked, seconds=seconds), *short, crowd_figure(beside, crowd)]


def _beside_crowd(binary: Path, arm: arms.Arm) -> tuple[Calls, Calls]:
    """Of the one that was there before, from then on, and of the crowd."""
    options = {"names": NODES, "nodes": NODES, "timeout_s": PATIENCE_S, "pause_s": 0.0}
    with Caller(binary, arm.url, limit_s=BEFORE_S + SHORT_S, **options) as caller:
        time.sleep(BEFORE_S)
        with Caller(binary, arm.url, limit_s=SHORT_S, connections=CROWD, **options) as crowd:
            return caller.calls(), crowd.calls()


def _wide(binary: Path, progress: Callable[[str], None]) -> Calls:
    """In a cluster of its own, after the other one has ended."""
    stub = Stub(binary, nodes=WIDE)
    with stub.child:
        arm = arms.start_readygate(stub.api)
        with arm.child:
            arms.wait_synced(arm)
            progress(f"rate: {WIDE:,} names, {SHORT_S:.0f} s")
            options = {"names": WIDE, "nodes": WIDE}
            with Caller(binary, arm.url, limit_s=SHORT_S, timeout_s=TIMEOUT_S, pause_s=0.0, **options) as caller:
                return caller.calls()


def _call(binary: Path, arm: arms.Arm, seconds: float, *, connections: int) -> list[Calls]:
    with ExitStack() as callers:
        options = {"limit_s": seconds, "names": NODES, "nodes": NODES, "timeout_s": TIMEOUT_S, "pause_s": 0.0}
        started = [callers.enter_context(Caller(binary, arm.url, **options)) for _ in range(connections)]
        return [caller.calls() for caller in started]


@contextmanager
def looking(url: str) -> Iterator[list[int]]:
    """Reads the pages each second, in a thread. The statuses so far; 0 for no answer."""
    seen: list[int] = []
    over = threading.Event()

    def look() -> None:
        while not over.wait(PAGES_EVERY_S):
            seen.extend(fetch(url + page)[0] for page in PAGES)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()


def figures(one: Calls, many: Sequence[Calls], looked: Sequence[int], *, seconds: float) -> list[Figure]:
    """looked: statuses of pages. Raises MeasurementError where hardly any was asked for."""
    if len(looked) < seconds / PAGES_EVERY_S:
        raise MeasurementError(f"only {len(looked)} pages were looked at in {seconds:.0f} s")
    alone = one.waited_ms(TIMEOUT_S * 1000)
    beside = [took for calls in many for took in calls.waited_ms(TIMEOUT_S * 1000)]
    pages = sum(status != HTTPStatus.OK for status in looked)
    note = f"{len(many)} connections, {len(beside) / seconds:.0f} calls/s, {len(looked)} pages"
    return [
        Figure("rate_5000_p50_ms", quantile(alone, 0.5), "ms", f"{len(alone)} calls"),
        Figure("rate_5000_p99_ms", quantile(alone, 0.99), "ms", f"slowest {max(alone):.1f} ms"),
        Figure("rate_5000_calls_s", len(one.took_ms) / seconds, "1/s", f"failed: {one.causes}"),
        Figure("rate_5000_many_p99_ms", quantile(beside, 0.99), "ms", note),
        Figure("rate_5000_many_failed", sum(one.failures for one in many) + pages, "calls", f"{pages} of them pages"),
    ]


def crowd_figure(beside: Calls, crowd: Calls) -> Figure:
    """Raises MeasurementError for a crowd that was none, or where somebody failed."""
    if beside.failures or crowd.failures or len(crowd.took_ms) < CROWD:
        causes = f"{beside.causes} beside, {crowd.causes} of {len(crowd.took_ms)} of the crowd"
        raise MeasurementError(f"failed beside a crowd: {causes}")
    note = f"{len(beside.took_ms)} calls; of the crowd p50 {quantile(crowd.took_ms, 0.5):.0f} ms"
    return Figure("rate_5000_beside_crowd_ms", max(beside.took_ms), "ms", note)


def short_figures(at_once: Calls, wide: Calls) -> list[Figure]:
    """A call that failed has taken its whole timeout."""
    found = []
    for name, calls in ((f"rate_{AT_ONCE_NAMES}_at_once_p99_ms", at_once), (f"rate_{WIDE}_p99_ms", wide)):
        waited = calls.waited_ms(TIMEOUT_S * 1000)
        note = f"{len(waited)} calls, p50 {quantile(waited, 0.5):.1f} ms; failed: {calls.causes}"
        found.append(Figure(name, quantile(waited, 0.99), "ms", note))
    return found
