"""Pods a second of the real kube-scheduler at 1,000 nodes: without an extender, with the Go ones, with readygate.

One scheduler knows all extenders, each for pods that ask for a resource of its own (`managedResources`), and meets the
pods in an order that is known: a hundred of one arm, a hundred of the next, by priority. So the arms are a third of a
second apart, and what the machine, the API server's collector or etcd do in a slow moment hits all.
"""

import json
import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import harmonic_mean, quantiles

from kube import paths
from kube.auth import Connection
from kube.connect import connect
from tools.bench import arms, cluster
from tools.bench.figures import Figure, median, median_ratio, spread
from tools.bench.processes import MeasurementError
from tools.testbed.plane import scheduler_config
from tools.testbed.plane.plane import Plane
from tools.testbed.shared.removal import delete_all

ARMS = ("none", "null", "go", "readygate")
NODES = 1000
BATCH = 100  # pods of one arm in a row
TURNS = 21  # of all arms in a round; the first warms up and is not counted
SQUARE = len(ARMS)  # turns in which each arm comes equally often after each other one
EDGE = 10  # pods on either side of the moment in which one batch ends and the next begins: they are bound side by side
MIXED_MAX = 0.05  # share of batches: what waits for a slow moment of the API server is bound all at once after it
AGAIN = 3  # so many rounds with more of that than this are played once more
ROUND_LIMIT_S = 180.0
# The garbage collector would remove health pods whose DaemonSet does not exist; the others only watch what we make.
WITHOUT_CONTROLLERS = (
    "garbage-collector-controller",
    "pod-garbage-collector-controller",
    "daemonset-controller",
    "disruption-controller",
    "taint-eviction-controller",
)


@dataclass(frozen=True)
class Round:
    """One arm in one round: pods a second, in each square of turns, and processor time of the extender by pod."""

    squares_pods_s: tuple[float, ...]
    cpu_ms: float

    @property
    def pods_s(self) -> float:
        """Of all squares, which have equally many pods."""
        return harmonic_mean(self.squares_pods_s)


def measure(progress: Callable[[str], None], *, quick: bool) -> list[Figure]:
    """All figures of the real scheduler; a round takes about 80 s on two cores."""
    binary = arms.go_binary(progress)
    progress("scheduler: starting the control plane")
    with Plane("bench", without_controllers=WITHOUT_CONTROLLERS, scheduler=False, progress=progress) as plane:
        connection = connect(str(plane.kubeconfig))
        cluster.prepare(plane.api, NODES, len(_batches(ARMS)), progress)
        api = service_account(plane.server, plane.kubeconfig_for_extender())
        with ExitStack() as started:
            null = arms.start_null(binary)
            started.enter_context(null.child)
            go = arms.start_go(binary, api)
            started.enter_context(go.child)
            readygate = arms.start_readygate(api)
            started.enter_context(readygate.child)
            for arm in (go, readygate):
                arms.wait_synced(arm)
            running = dict(zip(ARMS, (None, null, go, readygate), strict=True))
            return _figures(_rounds(plane, connection, running, progress, rounds=2 if quick else 5))


def service_account(server: str, kubeconfig: Path) -> arms.Api:
    """The identity of a kubeconfig as the files that a pod has."""
    document = json.loads(kubeconfig.read_text())
    folder = arms.WORK / "extender-account"
    folder.mkdir(parents=True, exist_ok=True)
    ca_file, token_file = folder / "ca.crt", folder / "token"
    shutil.copyfile(document["clusters"][0]["cluster"]["certificate-authority"], ca_file)
    token_file.touch(mode=0o600)
    token_file.write_text(document["users"][0]["user"]["token"])
    return arms.Api(server, kubeconfig, folder, ca_file=ca_file, token_file=token_file)


def resource(arm: str) -> str:
    """What pods ask for, zero of it, so that the scheduler asks this arm about them."""
    return f"bench.example.com/{arm}"


def _batches(arms_: Sequence[str]) -> list[str]:
    """The arm of each batch of a round."""
    return [*order(arms_, TURNS), "none"]  # the scheduler goes on for a while after the last turn


def order(arms_: Sequence[str], turns: int) -> list[str]:
    """The arms of batches, one after another: each turn has each arm once and begins with another one.

    Over as many turns as there are arms each comes equally often after each other one, where their number is even
    (Williams' square): what one batch leaves behind, bindings under way above all, is a head start for the next one.
    """
    count = len(arms_)
    zigzag = [-(place // 2) if place % 2 == 0 else place // 2 + 1 for place in range(count)]
    return [arms_[(turn + step) % count] for turn in range(turns) for step in zigzag]


def durations_s(times: Sequence[float], *, batch: int) -> list[float]:
    """How long each batch took but for the first and the last.

    times: of the bindings (monotonic), by pod, one batch after the other. Within a batch they may come in any order,
    and at its end some may come after the first of the next one. Raises MeasurementError where batches are mixed.
    """
    batches = [sorted(times[begin : begin + batch]) for begin in range(0, len(times), batch)]
    mixed = sum(median(earlier) > median(later) for earlier, later in pairwise(batches))
    if mixed > MIXED_MAX * len(batches):
        raise MeasurementError(f"pods are bound in another order: {mixed} of {len(batches)} batches before their turn")
    edge = min(EDGE, batch // 2)
    ends = [median([*earlier[-edge:], *later[:edge]]) for earlier, later in pairwise(batches)]
    return [later - earlier for earlier, later in pairwise(ends)]


def _rounds(
    plane: Plane,
    connection: Connection,
    running: dict[str, arms.Arm | None],
    progress: Callable[[str], None],
    *,
    rounds: int,
) -> dict[str, list[Round]]:
    """What each arm did, one entry per round."""
    found: dict[str, list[Round]] = {name: [] for name in running}
    # Not ignorable: an extender that fails must not look fast.
    extenders = [
        scheduler_config.extender(
            arm.url.removesuffix("/filter"), mode="enforce", timeout="5s", managed_resources=[resource(name)]
        )
        for name, arm in running.items()
        if arm is not None
    ]
    # The default of 50 calls/s would be all there is to measure.
    configuration = plane.scheduler_config(extenders, "bench-arms", queries_per_s=5000, burst=10000)
    again = AGAIN
    while (number := len(found["none"]) + 1) <= rounds:
        try:
            one = _round(plane, connection, running, configuration)
        except MeasurementError as e:
            again -= 1
            if again < 0:
                raise
            progress(f"scheduler: round {number} once more: {e}")
            continue
        for name, of_arm in one.items():
            found[name].append(of_arm)
            progress(f"scheduler: round {number}, {name}: {of_arm.pods_s:.0f} pods/s, {of_arm.cpu_ms:.2f} ms/pod")
    return found


def _round(
    plane: Plane, connection: Connection, running: dict[str, arms.Arm | None], configuration: Path
) -> dict[str, Round]:
    """Raises MeasurementError where batches are mixed; no pod is left in any case."""
    batches = _batches(list(running))
    asked = [resource(name) for name in batches for _ in range(BATCH)]
    names = cluster.create_pods(plane.api, asked, batch=BATCH)
    bindings = cluster.Bindings(connection)
    extenders = {name: arm.child for name, arm in running.items() if arm is not None}
    before_s = {name: child.cpu_s() for name, child in extenders.items()}
    try:
        plane.start_scheduler(configuration)
        bound = bindings.wait(len(names), limit_s=ROUND_LIMIT_S)
    finally:
        bindings.stop()
        plane.stop_scheduler()
        spent_ms = {name: (child.cpu_s() - before_s[name]) * 1000 for name, child in extenders.items()}
        delete_all(plane.api, paths.pods(cluster.NAMESPACE))
    took_s = _by_arm(batches, durations_s([bound[name] for name in names], batch=BATCH))
    return {
        name: Round(
            tuple(BATCH * SQUARE / sum(took_s[name][begin : begin + SQUARE]) for begin in range(0, TURNS - 1, SQUARE)),
            spent_ms.get(name, 0.0) / (BATCH * TURNS),
        )
        for name in running
    }


def _by_arm(batches: Sequence[str], took_s: Sequence[float]) -> dict[str, list[float]]:
    """Seconds of each batch of each arm, without the first turn and what comes after the last.

    took_s: of each batch but for the first one and the last one.
    """
    count = len(set(batches))
    counted = list(zip(batches[1:-1], took_s, strict=True))[count - 1 :]
    return {name: [s for of, s in counted if of == name] for name in set(batches)}


def _figures(found: dict[str, list[Round]]) -> list[Figure]:
    note = f"{BATCH * (TURNS - 1)} pods of each a round, in turns of {BATCH}; {len(found['none'])} rounds"
    rates = {name: [one.pods_s for one in rounds] for name, rounds in found.items()}
    figures = [
        Figure(f"scheduler_1000_{name}_pods_s", median(of_arm), "pods/s", f"{note}; {spread(of_arm, 0)}")
        for name, of_arm in rates.items()
    ]
    for other in ("null", "go", "none"):
        ratios = [
            ours / theirs
            for mine, yours in zip(found["readygate"], found[other], strict=True)
            for ours, theirs in zip(mine.squares_pods_s, yours.squares_pods_s, strict=True)
        ]
        low, _, high = quantiles(ratios, n=4)
        note = f"{len(ratios)} squares of turns, half of them {low:.2f} to {high:.2f}"
        figures.append(Figure(f"scheduler_1000_ratio_to_{other}", median(ratios), "ratio", note))
    ours, null, go = ([one.cpu_ms for one in found[name]] for name in ("readygate", "null", "go"))
    note = f"processor time of the extender by pod; rounds {spread(ours)}; null {median(null):.2f}, Go {median(go):.2f}"
    figures.append(Figure("scheduler_1000_cpu_ms", median(ours), "ms", note))
    for other, theirs in (("null", null), ("go", go)):
        figures.append(Figure(f"scheduler_1000_cpu_ratio_to_{other}", median_ratio(ours, theirs), "ratio"))
    return figures
