"""What one watch event costs an extender that nobody asks anything: all follow the same stream at the same time."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from tools.bench import arms
from tools.bench.asking import ask, node_name
from tools.bench.figures import Figure, median, median_ratio, spread
from tools.bench.filter_latency import LEASES_PER_S, NODES, UPDATES_PER_S
from tools.bench.processes import MeasurementError
from tools.bench.stub import Stub
from tools.kit import brakes

SECONDS = 6.0
# Leases pause while pods are measured: no node may count as lost for that.
HEARTBEAT_LIMIT_S = 600
STREAMS = {"pod": (UPDATES_PER_S, 0), "lease": (0, LEASES_PER_S)}
# Of those that return: a tenth of the nodes was lost before, by its Lease alone. More than a fifth would be held.
LOST = NODES // 10
RETURN_LIMIT_S = 16  # the least that Leases which are renewed every 10 s allow
LOST_WITHIN_S = RETURN_LIMIT_S + 20.0
RETURN_S = 1.0  # all kubelets; a busy machine may take longer
SETTLED_S = 1.0  # what is behind is taken over

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


def spend_on_returns(
    stub: Stub, following: Sequence[arms.Arm], progress: Callable[[str], None], *, rounds: int
) -> Mapping[str, list[float]]:
    """By arm, microseconds by Lease when all kubelets are back within a second, and LOST of their nodes were lost.

    The arms follow Leases with a limit of RETURN_LIMIT_S, and are synced.
    """
    lost = [node_name(i) for i in range(LOST)]
    spent: dict[str, list[float]] = {arm.name: [] for arm in following}
    for number in range(rounds):
        progress(f"updates: {LOST} kubelets are silent, round {number + 1}")
        stub.stream(leases_per_s=LEASES_PER_S, silent=LOST)
        for arm in following:
            _wait_lost(arm, lost)
        stub.stream()
        time.sleep(SETTLED_S)
        sent = stub.events().sent
        before = {arm.name: arm.child.cpu_s() for arm in following}
        stub.stream(leases_per_s=NODES)
        until = time.monotonic() + 10 * RETURN_S
        while stub.events().sent < sent + NODES and time.monotonic() < until:
            time.sleep(0.02)
        stub.stream()
        time.sleep(SETTLED_S)
        sent = stub.events().sent - sent
        for arm in following:
            spent[arm.name].append((arm.child.cpu_s() - before[arm.name]) / max(sent, 1) * 1e6)
            if not ask(arm.url, lost):
                raise MeasurementError(f"{arm.name}: of {LOST} nodes none is open after their Leases have come")
    return spent


def _wait_lost(arm: arms.Arm, lost: Sequence[str]) -> None:
    until = time.monotonic() + LOST_WITHIN_S
    while ask(arm.url, lost):
        if time.monotonic() > until:
            raise MeasurementError(f"{arm.name}: {LOST} silent kubelets are not lost within {LOST_WITHIN_S:.0f} s")
        time.sleep(0.2)


def measure(progress: Callable[[str], None], *, quick: bool) -> list[Figure]:
    """Processor time by update, of pods and of Leases; three minutes."""
    binary = arms.go_binary(progress)
    stub = Stub(binary, nodes=NODES)
    rounds = 2 if quick else 5
    with stub.child:
        with ExitStack() as running:
            both = _follow(running, binary, stub, limit_s=HEARTBEAT_LIMIT_S)
            spent = spend(stub, both, progress, rounds=rounds, seconds=SECONDS)
        with ExitStack() as running:
            both = _follow(running, binary, stub, limit_s=RETURN_LIMIT_S)
            returned = spend_on_returns(stub, both, progress, rounds=rounds)
    return figures_of(spent, returned)


def _follow(running: ExitStack, binary: Path, stub: Stub, *, limit_s: int) -> list[arms.Arm]:
    """Both, synced, until the end of the context."""
    stub.stream(leases_per_s=LEASES_PER_S)
    both = [arms.start_go(binary, stub.api, lease_limit_s=limit_s)]
    running.enter_context(both[0].child)
    # A node that is lost in each round flaps: damping would keep it closed, rightly.
    both.append(arms.start_readygate(stub.api, lease_limit_s=limit_s, gates=[brakes.OFF_AT_GATE]))
    running.enter_context(both[1].child)
    for arm in both:
        arms.wait_synced(arm)
    return both


def figures_of(spent: Spent, returned: Mapping[str, list[float]]) -> list[Figure]:
    """returned: of Leases that all come within a second, by arm."""
    figures = []
    for kind, by_arm in spent.items():
        ours, theirs = by_arm["readygate"], by_arm["go"]
        note = f"{sum(STREAMS[kind])} {kind} updates/s; rounds {spread(ours, 0)}; Go {median(theirs):.0f}"
        figures.append(Figure(f"{kind}_update_cpu_us", median(ours), "us", note))
        figures.append(Figure(f"{kind}_update_cpu_ratio_to_go", median_ratio(ours, theirs), "ratio"))
    ours, theirs = returned["readygate"], returned["go"]
    note = f"{NODES} in a second, {LOST} of lost nodes; rounds {spread(ours, 0)}; Go {median(theirs):.0f}"
    return [*figures, Figure("lease_return_cpu_us", median(ours), "us", note)]
