"""200 clients that do not finish what they begin, one kind after the other, and what a scheduler feels of them."""

from collections.abc import Callable, Mapping
from pathlib import Path

from tools.bench import arms
from tools.bench.figures import Figure, quantile
from tools.bench.filter_latency import NODES
from tools.bench.helpers import Caller, Calls, Helper
from tools.bench.stub import Stub

CLIENTS = 200
TIMEOUT_S = 1.0  # of the caller: the httpTimeout that we recommend
# kind of client -> how long they take to arrive. Those who read no answer cost the processor time of what they asked
# for, two megabytes of answers each until the kernel takes no more: they come at a pace that leaves time for others.
KINDS = {"silent": 2.0, "header": 2.0, "body": 2.0, "answer": 10.0}


def measure(progress: Callable[[str], None], *, quick: bool) -> list[Figure]:
    """A minute and a half."""
    binary = arms.go_binary(progress)
    stub = Stub(binary, nodes=NODES)
    seconds = 5.0 if quick else 12.0
    with stub.child:
        found: dict[str, Calls] = {}
        for kind, over_s in {"nobody": 0.0, **KINDS}.items():
            progress(f"stalled: {CLIENTS} clients, {kind}")
            found[kind] = _beside(binary, stub, kind, over_s=over_s, seconds=seconds)
    return figures(found)


def _beside(binary: Path, stub: Stub, kind: str, *, over_s: float, seconds: float) -> Calls:
    """A fresh extender for each kind: one that holds a grudge would spoil the next."""
    arm = arms.start_readygate(stub.api)
    with arm.child:
        arms.wait_synced(arm)
        caller = Caller(binary, arm.url, limit_s=over_s + seconds, timeout_s=TIMEOUT_S)
        with caller:
            if kind == "nobody":
                return caller.calls()
            words = ["-target", arm.address, "-kind", kind, "-clients", str(CLIENTS), "-over", f"{over_s}s"]
            with Helper(binary, "slow", *words, limit_s=over_s + seconds + 2.0):
                return caller.calls()


def figures(found: Mapping[str, Calls]) -> list[Figure]:
    """found: by kind, and for `nobody`. The p99 is that of the worst kind; a call that failed counts as its timeout."""
    p99_ms = {kind: quantile(calls.waited_ms(TIMEOUT_S * 1000), 0.99) for kind, calls in found.items()}
    slow = {kind: value for kind, value in p99_ms.items() if kind != "nobody"}
    worst = max(slow, key=lambda kind: slow[kind])
    note = ", ".join(f"{kind} {value:.1f}" for kind, value in p99_ms.items())
    counts = ", ".join(
        f"{kind} {calls.failures} of {len(calls.took_ms) + calls.failures}" for kind, calls in found.items()
    )
    failed = sum(calls.failures for kind, calls in found.items() if kind != "nobody")
    return [
        Figure(f"stalled_{CLIENTS}_filter_p99_ms", slow[worst], "ms", f"worst kind: {worst}; p99 beside {note}"),
        Figure(f"stalled_{CLIENTS}_failed", failed, "calls", f"timeout {TIMEOUT_S:g} s; {counts}"),
    ]
