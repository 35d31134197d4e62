"""How long one filter call takes: all extenders alive at once, the same client, the same bodies, in turns."""

import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tools.bench import arms
from tools.bench.figures import Figure, median, quantile, spread
from tools.bench.processes import MeasurementError
from tools.bench.stub import Stub

NODES = 5000
UPDATES_PER_S = 500
HEARTBEAT_LIMIT_S = 20
# A kubelet renews its Lease each 10 s.
LEASES_PER_S = NODES // 10
WARM_CALLS = 100  # the load client's, before it measures
PARTS = ("p50", "p99", "cpu")


@dataclass(frozen=True)
class Round:
    """One arm in one round, times in ms."""

    p50: float
    p99: float
    cpu: float  # of a call: processor time of the arm's processes by the number of calls, its watch streams included


@dataclass(frozen=True)
class Load:
    """names: in a request. label: part of the figures' names. pods_per_s, leases_per_s: updates that stream."""

    names: int
    label: str = ""
    pods_per_s: int = 0
    leases_per_s: int = 0

    @property
    def prefix(self) -> str:
        return f"filter_{self.names}{self.label}"

    @property
    def note(self) -> str:
        if self.pods_per_s:
            return f"{self.pods_per_s} pod and {self.leases_per_s} Lease updates/s"
        return "no updates"


ALONE = [Load(100), Load(420), Load(812), Load(NODES)]
BUSY = [Load(812, "_busy", UPDATES_PER_S), Load(NODES, "_busy", UPDATES_PER_S)]
HEARTBEATS = [Load(812, "_heartbeats", UPDATES_PER_S, LEASES_PER_S)]


def run_load(
    binary: Path,
    targets: Sequence[arms.Arm],
    *,
    names: int,
    requests: int,
    nodes: int = NODES,
    turn: int = 50,
    same: bool = True,
) -> dict[str, Round]:
    """One round: `requests` calls to each target, in turns of `turn`. The first wrong answer is a MeasurementError."""
    argv = [str(binary), "load", "-names", str(names), "-nodes", str(nodes), "-requests", str(requests)]
    argv += ["-turn", str(turn), "-warm", str(WARM_CALLS), f"-same={str(same).lower()}"]
    for arm in targets:
        argv += ["-target" if arm.decides else "-null", f"{arm.name}={arm.url}"]
    before = {arm.name: arm.child.cpu_s() for arm in targets}
    done = subprocess.run(argv, capture_output=True, text=True, timeout=180, check=False)
    if done.returncode != 0:
        raise MeasurementError(done.stderr.strip() or f"the load client ended with code {done.returncode}")
    reports = json.loads(done.stdout)
    rounds = {}
    for arm in targets:
        took_ms = [microseconds / 1000 for microseconds in reports[arm.name]["latency_us"]]
        calls = requests + WARM_CALLS  # those cost processor time too
        rounds[arm.name] = Round(
            quantile(took_ms, 0.5), quantile(took_ms, 0.99), (arm.child.cpu_s() - before[arm.name]) * 1000 / calls
        )
    return rounds


def summarise(load: Load, rounds: Sequence[Mapping[str, Round]]) -> list[Figure]:
    """The figures of one load: medians over the rounds, ratios round by round to each of the other arms."""
    others = [name for name in rounds[0] if name != "readygate"]
    values = {name: {part: [getattr(one[name], part) for one in rounds] for part in PARTS} for name in rounds[0]}
    figures = []
    for part in PARTS:
        ours = values["readygate"][part]
        seen = "; ".join(f"{name} {median(values[name][part]):.2f} ({spread(values[name][part])})" for name in others)
        figures.append(
            Figure(f"{load.prefix}_{part}_ms", median(ours), "ms", f"{load.note}; rounds {spread(ours)}; {seen}")
        )
        for name in others:
            if name == "go400" and part != "p99":
                continue  # it is what the collector is tuned for
            ratios = [a / b for a, b in zip(ours, values[name][part], strict=True)]
            note = f"{len(ratios)} rounds {spread(ratios)}"
            figures.append(Figure(f"{load.prefix}_{part}_ratio_to_{name}", median(ratios), "ratio", note))
    return figures


def measure(progress: Callable[[str], None], *, quick: bool) -> list[Figure]:
    """All filter figures; about four minutes, quick a tenth of it."""
    binary = arms.go_binary(progress)
    stub = Stub(binary, nodes=NODES)
    figures: list[Figure] = []
    with stub.child:
        for loads, lease_limit_s in ((ALONE, 0), (BUSY, 0), (HEARTBEATS, HEARTBEAT_LIMIT_S)):
            figures += _measure_loads(binary, stub, loads, progress, lease_limit_s=lease_limit_s, quick=quick)
    return figures


def _measure_loads(
    binary: Path,
    stub: Stub,
    loads: Sequence[Load],
    progress: Callable[[str], None],
    *,
    lease_limit_s: int,
    quick: bool,
) -> list[Figure]:
    figures: list[Figure] = []
    stub.stream(leases_per_s=loads[0].leases_per_s)
    with ExitStack() as running:

        def ended(arm: arms.Arm) -> arms.Arm:
            running.enter_context(arm.child)
            return arm

        targets = [ended(arms.start_go(binary, stub.api, lease_limit_s=lease_limit_s))]
        if not loads[0].pods_per_s:
            # Beside updates there are two arms only: each one that follows them takes its part of two cores.
            targets += [ended(arms.start_go400(binary, stub.api)), ended(arms.start_null(binary))]
        targets.append(ended(arms.start_readygate(stub.api, lease_limit_s=lease_limit_s)))
        for arm in targets:
            arms.wait_synced(arm)
        for load in loads:
            stub.stream(pods_per_s=load.pods_per_s, leases_per_s=load.leases_per_s)
            rounds = []
            for number in range(2 if quick else 5):
                progress(f"filter{load.label or ' alone'}: {load.names} names, round {number + 1}")
                requests = (400 if load.names == NODES else 1000) // (4 if quick else 1)
                # While verdicts flip, two replies taken one after the other may rightly differ.
                same = not load.pods_per_s
                rounds.append(run_load(binary, targets, names=load.names, requests=requests, same=same))
            figures += summarise(load, rounds)
    stub.stream()
    return figures
