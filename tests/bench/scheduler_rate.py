"""Pods a second of the real kube-scheduler at 1,000 nodes: without an extender, with the Go ones, with readygate.

The arms take turns within each round, so a slow minute of the machine hits all; the extenders live all the time.
"""

import json
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from kube.auth import Connection
from kube.connect import connect
from tests.bench import arms, cluster
from tests.bench.figures import Figure, median, median_ratio, spread
from tests.testbed.plane import scheduler_config
from tests.testbed.plane.plane import Plane

NODES = 1000
PODS = 2000
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
    """One arm in one round: pods a second, and processor time of the extender by pod."""

    pods_s: float
    cpu_ms: float


def measure(progress: Callable[[str], None], *, quick: bool) -> list[Figure]:
    """All figures of the real scheduler; a round of four arms takes about 80 s on two cores."""
    binary = arms.go_binary(progress)
    progress("scheduler: starting the control plane")
    with Plane("bench", without_controllers=WITHOUT_CONTROLLERS, scheduler=False, progress=progress) as plane:
        connection = connect(str(plane.kubeconfig))
        cluster.prepare(plane.api, NODES, progress)
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
            running = {"none": None, "null": null, "go": go, "readygate": readygate}
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


def _rounds(
    plane: Plane,
    connection: Connection,
    running: dict[str, arms.Arm | None],
    progress: Callable[[str], None],
    *,
    rounds: int,
) -> dict[str, list[Round]]:
    """What each arm did, one entry per round; each round begins with another arm."""
    found: dict[str, list[Round]] = {name: [] for name in running}
    configurations = {}
    for name, arm in running.items():
        # Not ignorable: an extender that fails must not look fast.
        extenders = (
            []
            if arm is None
            else [scheduler_config.extender(arm.url.removesuffix("/filter"), mode="enforce", timeout="5s")]
        )
        # The default of 50 calls/s would be all there is to measure.
        configurations[name] = plane.scheduler_config(extenders, f"bench-{name}", queries_per_s=5000, burst=10000)
    order = list(running)
    for number in range(rounds):
        for name in order[number % len(order) :] + order[: number % len(order)]:
            arm = running[name]
            cluster.create_pods(plane.api, PODS)
            bindings = cluster.Bindings(connection)
            before_s = 0.0 if arm is None else arm.child.cpu_s()
            try:
                plane.start_scheduler(configurations[name])
                times = bindings.wait(PODS, limit_s=ROUND_LIMIT_S)
            finally:
                bindings.stop()
                plane.stop_scheduler()
            spent_s = 0.0 if arm is None else arm.child.cpu_s() - before_s
            one = Round(cluster.rate(times), spent_s * 1000 / PODS)
            found[name].append(one)
            progress(
                f"scheduler: round {number + 1}, {name}: {one.pods_s:.0f} pods/s, extender {one.cpu_ms:.2f} ms/pod"
            )
            cluster.delete_pods(connection)
    return found


def _figures(found: dict[str, list[Round]]) -> list[Figure]:
    note = f"{PODS} pods a round, {len(found['none'])} rounds"
    rates = {name: [one.pods_s for one in rounds] for name, rounds in found.items()}
    figures = [
        Figure(f"scheduler_1000_{name}_pods_s", median(of_arm), "pods/s", f"{note}; {spread(of_arm, 0)}")
        for name, of_arm in rates.items()
    ]
    for other in ("null", "go", "none"):
        ratios = [ours / theirs for ours, theirs in zip(rates["readygate"], rates[other], strict=True)]
        figures.append(Figure(f"scheduler_1000_ratio_to_{other}", median(ratios), "ratio", f"rounds {spread(ratios)}"))
    ours, null, go = ([one.cpu_ms for one in found[name]] for name in ("readygate", "null", "go"))
    note = f"processor time of the extender by pod; rounds {spread(ours)}; null {median(null):.2f}, Go {median(go):.2f}"
    figures.append(Figure("scheduler_1000_cpu_ms", median(ours), "ms", note))
    for other, theirs in (("null", null), ("go", go)):
        figures.append(Figure(f"scheduler_1000_cpu_ratio_to_{other}", median_ratio(ours, theirs), "ratio"))
    return figures
