"""How long one filter call takes: both extenders alive at once, the same client, the same bodies, in turns."""

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.bench import arms
from tests.bench.figures import Figure, median, median_ratio, quantile, spread
from tests.bench.processes import MeasurementError

NODES = 5000
UPDATES_PER_S = 500
HEARTBEAT_LIMIT_S = 20
# A kubelet renews its Lease each 10 s.
LEASES_PER_S = NODES // 10


@dataclass(frozen=True)
class Round:
    """One arm in one round, times in ms."""

    p50: float
    p99: float
    cpu: float  # of a call: processor time of the arm's processes by the number of calls, its watch streams included


def run_load(
    binary: Path, targets: list[arms.Arm], *, names: int, requests: int, turn: int = 50, same: bool = True
) -> dict[str, Round]:
    """One round: `requests` calls to each target, in turns of `turn`. The first wrong answer is a MeasurementError."""
    argv = [str(binary), "load", "-names", str(names), "-nodes", str(NODES), "-requests", str(requests)]
    argv += ["-turn", str(turn), f"-same={str(same).lower()}"]
    for arm in targets:
        argv += ["-target", f"{arm.name}={arm.url}"]
    before = {arm.name: arm.child.cpu_s() for arm in targets}
    done = subprocess.run(argv, capture_output=True, text=True, timeout=180, check=False)
    if done.returncode != 0:
        raise MeasurementError(done.stderr.strip() or f"the load client ended with code {done.returncode}")
    reports = json.loads(done.stdout)
    rounds = {}
    for arm in targets:
        took_ms = [microseconds / 1000 for microseconds in reports[arm.name]["latency_us"]]
        calls = requests + 100  # those before the measurement cost processor time too
        rounds[arm.name] = Round(
            quantile(took_ms, 0.5), quantile(took_ms, 0.99), (arm.child.cpu_s() - before[arm.name]) * 1000 / calls
        )
    return rounds


def summarise(label: str, rounds: list[dict[str, Round]], note: str) -> list[Figure]:
    """The figures of one load: medians over the rounds, ratios round by round."""
    figures = []
    for part in ("p50", "p99", "cpu"):
        ours = [getattr(one["readygate"], part) for one in rounds]
        theirs = [getattr(one["go"], part) for one in rounds]
        figures += [
            Figure(
                f"{label}_{part}_ms",
                median(ours),
                "ms",
                f"{note}; rounds {spread(ours)}; Go {median(theirs):.2f} ({spread(theirs)})",
            ),
            Figure(f"{label}_{part}_ratio_to_go", median_ratio(ours, theirs), "ratio", f"{len(ours)} rounds"),
        ]
    return figures


def measure(progress: Callable[[str], None], *, quick: bool) -> list[Figure]:
    """All filter figures; about two minutes, quick a third of it."""
    binary = arms.go_binary(progress)
    stub = arms.Stub(binary, nodes=NODES)
    figures: list[Figure] = []
    with stub.child:
        loads = [
            (names, label, rate) for label, rate in (("", 0), ("_busy", UPDATES_PER_S)) for names in (100, 812, 5000)
        ]
        figures += _measure_loads(binary, stub, loads, progress, lease_limit_s=0, quick=quick)
        figures += _measure_loads(
            binary, stub, [(812, "_heartbeats", UPDATES_PER_S)], progress, lease_limit_s=HEARTBEAT_LIMIT_S, quick=quick
        )
    return figures


def _measure_loads(
    binary: Path,
    stub: arms.Stub,
    loads: list[tuple[int, str, int]],
    progress: Callable[[str], None],
    *,
    lease_limit_s: int,
    quick: bool,
) -> list[Figure]:
    figures: list[Figure] = []
    leases_per_s = LEASES_PER_S if lease_limit_s else 0
    stub.stream(leases_per_s=leases_per_s)
    go = arms.start_go(binary, stub.api, lease_limit_s=lease_limit_s)
    with go.child:
        readygate = arms.start_readygate(stub.api, lease_limit_s=lease_limit_s)
        with readygate.child:
            for arm in (go, readygate):
                arms.wait_synced(arm)
            for names, label, rate in loads:
                stub.stream(pods_per_s=rate, leases_per_s=leases_per_s)
                rounds = []
                requests = 400 if names == NODES else 1000
                for number in range(2 if quick else 5):
                    progress(f"filter{label or ' alone'}: {names} names, round {number + 1}")
                    # While verdicts flip, two replies taken one after the other may rightly differ.
                    rounds.append(run_load(binary, [go, readygate], names=names, requests=requests, same=not rate))
                note = f"{rate} pod and {leases_per_s} Lease updates/s" if rate else "no updates"
                figures += summarise(f"filter_{names}{label}", rounds, note)
    stub.stream()
    return figures
