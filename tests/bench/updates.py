"""What one watch event costs an extender that nobody asks anything: all follow the same stream at the same time."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack

from tests.bench import arms
from tests.bench.figures import Figure, median, median_ratio, spread
from tests.bench.filter_latency import LEASES_PER_S, NODES, UPDATES_PER_S
from tests.bench.stub import Stub

SECONDS = 6.0
# Leases pause while pods are measured: no node may count as lost for that.
HEARTBEAT_LIMIT_S = 600
STREAMS = {"pod": (UPDATES_PER_S, 0), "lease": (0, LEASES_PER_S)}
RETURNS = {"lease": (0, NODES)}  # all kubelets within a second, as after an outage
RETURN_S = 2.0

# kind of update -> arm -> microseconds of processor time by update, one number a round
Spent = Mapping[str, Mapping[str, list[float]]]


def spend(
    stub: Stub,
    following: Sequence[arms.Arm],
    progress: Callable[[str], None],
    *,
    rounds: int,
    seconds: float,
    streams: Mapping[str, tuple[int, int]] = STREAMS,
) -> Spent:
    """The arms follow Leases too, and are synced. streams: by kind, how many pods and Leases a second."""
    spent: dict[str, dict[str, list[float]]] = {kind: {arm.name: [] for arm in following} for kind in streams}
    for number in range(rounds):
        for kind, (pods_per_s, leases_per_s) in streams.items():
            progress(f"updates: {pods_per_s or leases_per_s} {kind}s/s, round {number + 1}")
            stub.stream(pods_per_s=pods_per_s, leases_per_s=leases_per_s)
            time.sleep(0.2)  # what the last stream has left in the sockets
            sent = stub.events().sent
            before = {arm.name: arm.child.cpu_s() for arm in following}
            time.sleep(seconds)
            sent = stub.events().sent - sent
            for arm in following:
                spent[kind][arm.name].append((arm.child.cpu_s() - before[arm.name]) / max(sent, 1) * 1e6)
    return spent


def measure(progress: Callable[[str], None], *, quick: bool) -> list[Figure]:
    """Processor time by update, of pods and of Leases; about a minute."""
    binary = arms.go_binary(progress)
    stub = Stub(binary, nodes=NODES)
    with ExitStack() as running:
        running.enter_context(stub.child)
        stub.stream(leases_per_s=LEASES_PER_S)
        both = [arms.start_go(binary, stub.api, lease_limit_s=HEARTBEAT_LIMIT_S)]
        running.enter_context(both[0].child)
        both.append(arms.start_readygate(stub.api, lease_limit_s=HEARTBEAT_LIMIT_S))
        running.enter_context(both[1].child)
        for arm in both:
            arms.wait_synced(arm)
        rounds = 2 if quick else 5
        spent = spend(stub, both, progress, rounds=rounds, seconds=SECONDS)
        returned = spend(stub, both, progress, rounds=rounds, seconds=RETURN_S, streams=RETURNS)["lease"]
    return figures_of(spent, returned)


def figures_of(spent: Spent, returned: Mapping[str, list[float]]) -> list[Figure]:
    """returned: of Leases that all come within a second, by arm."""
    figures = []
    for kind, by_arm in spent.items():
        ours, theirs = by_arm["readygate"], by_arm["go"]
        note = f"{sum(STREAMS[kind])} {kind} updates/s; rounds {spread(ours, 0)}; Go {median(theirs):.0f}"
        figures.append(Figure(f"{kind}_update_cpu_us", median(ours), "us", note))
        figures.append(Figure(f"{kind}_update_cpu_ratio_to_go", median_ratio(ours, theirs), "ratio"))
    ours, theirs = returned["readygate"], returned["go"]
    note = f"{NODES} Lease updates/s; rounds {spread(ours, 0)}; Go {median(theirs):.0f}"
    return [*figures, Figure("lease_return_cpu_us", median(ours), "us", note)]
