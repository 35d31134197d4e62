"""R46: clients attack the extender and its status process while the real kube-scheduler places pods, in both modes.

Two of six nodes are closed and stay empty, so kube-scheduler takes one of them for each pod that it places without an
answer.
"""

import contextlib
import math
import re
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests.plane.cluster import WITHOUT_CONTROLLERS, Cluster
from tests.plane.load import Load, ask, told_after
from tools.chaos import attackers
from tools.kit.waiting import wait_for
from tools.soak import stage
from tools.soak.rows import Trial
from tools.testbed.plane.plane import Plane
from tools.testbed.plane.programs import Extender, StatusApi
from tools.testbed.shared import bare

MINUTES = 6.0  # all attacks in both modes
MODES = ("protect", "enforce")
PODS_PER_S = 10.0
MADE = 0.95  # of the pods: their maker loses a little between two
LARGE_PODS_PER_S = 1.0
ASK_EVERY_S = 0.05
P99_LIMIT_MS = 100.0
BOUND_WITHIN_S = 2.0  # a pod that waits longer has failed an attempt
ALL_BOUND_WITHIN_S = 15.0  # with the back-off of kube-scheduler after failed attempts
CLOSED, OPEN = 2, 4
# kube-scheduler writes it for each failed call in mode protect.
SKIPPED = "Skipping extender as it returned error and has ignorable flag set"
KILLED = "WORKER TIMEOUT"
# An attempt of kube-scheduler to place a pod, the call of the extender included.
ATTEMPTS = re.compile(r'^scheduler_scheduling_algorithm_duration_seconds_bucket\{le="([^"]+)"\} (\d+)', re.MULTILINE)
RECOVERED_WITHIN_S = 120.0


@dataclass(frozen=True)
class Outcome:
    """What an attack has done to kube-scheduler.

    made, in_time: pods, and those that were bound within BOUND_WITHIN_S. never: pods that were not bound within
    ALL_BOUND_WITHIN_S (or what the caller grants) after the last one, with the attack still going on.
    unfiltered: pods on closed nodes, and calls after which kube-scheduler went on without the extender.
    p99_ms: the longest 99 of 100 attempts of kube-scheduler took, by its histogram.
    client_p99_ms, failed: of the calls of a client that asks as kube-scheduler does, over a kept connection.
    killed: workers that gunicorn ended because they were silent. connections: those of the attack.
    """

    made: int
    in_time: int
    never: int
    unfiltered: int
    p99_ms: float
    client_p99_ms: float
    failed: int
    killed: int
    connections: int

    def __str__(self) -> str:
        return (
            f"{self.in_time} of {self.made} pods in time, {self.never} never, {self.unfiltered} unfiltered, "
            f"p99 {self.p99_ms:.0f} ms, of the client {self.client_p99_ms:.0f} ms with {self.failed} calls failed, "
            f"{self.killed} workers killed, "
            f"{self.connections} connections"
        )


class Target:
    """An extender with its status process and six nodes, in a cluster whose kube-scheduler asks it."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self._cluster = cluster
        self._folder = folder
        self._nodes = cluster.add_nodes(CLOSED + OPEN, pods="20000", cpu="2000", memory="2000Gi")
        self._closed, opened = self._nodes[:CLOSED], self._nodes[CLOSED:]
        cluster.add_health_pods(self._closed, ready=False)
        cluster.add_health_pods(opened, ready=True)
        self.extender: Extender = cluster.start_extender()
        self._status = StatusApi(cluster.plane, self.extender)
        self._exit = contextlib.ExitStack()

    def __enter__(self) -> Self:
        self._exit.callback(self._status.stop)
        self._status.start()
        for node in self._closed:
            told_after(self.extender.port, node, is_open=False)
        return self

    def __exit__(self, *_: object) -> None:
        self._exit.close()

    def ask_in(self, mode: str) -> None:
        """Restarts kube-scheduler with the extender in this mode."""
        self._cluster.use_extender(self.extender.url, mode=mode)

    def under(self, attack: attackers.Attack, seconds: float, *, patience_s: float = ALL_BOUND_WITHIN_S) -> Outcome:
        """Attacks for so long while pods come, and until the last is bound, but no longer than patience_s."""
        is_status = attack is attackers.attacks_the_status_port
        port = self._status.port if is_status else self.extender.port
        is_large = "large_body" in attack.__name__
        self._wait_recovered()
        skipped, killed, attempts = self._skipped(), self._killed(), self._attempts()
        with (
            attackers.attacked(attack, port, self._folder) as attacker,
            _Caller(self.extender.port, self._nodes) as caller,
            self._loads(with_large=is_large) as loads,
        ):
            time.sleep(seconds)
            for load in loads:
                load.stop()
            wait_for(lambda: not any(load.unbound() for load in loads), timeout_s=patience_s)
            in_time = sum(load.bound_within(BOUND_WITHIN_S) for load in loads)
            caller.stop()
            connections = attackers.connections_of(attacker)
        on_closed = sum(len(load.on(self._closed)) for load in loads)
        return Outcome(
            made=sum(len(load.made) for load in loads),
            in_time=in_time,
            never=sum(len(load.unbound()) for load in loads),
            unfiltered=max(on_closed, self._skipped() - skipped),
            p99_ms=quantile_s({le: n - attempts.get(le, 0) for le, n in self._attempts().items()}, 0.99) * 1000,
            client_p99_ms=caller.calls.ms(0.99),
            failed=caller.calls.failed,
            killed=self._killed() - killed,
            connections=connections,
        )

    @contextlib.contextmanager
    def _loads(self, *, with_large: bool) -> Iterator[list[Load]]:
        api = self._cluster.api
        with contextlib.ExitStack() as stack:
            loads = [stack.enter_context(Load(api, per_s=PODS_PER_S))]
            if with_large:
                loads.append(stack.enter_context(Load(api, per_s=LARGE_PODS_PER_S, spec=large_spec())))
            yield loads

    def _wait_recovered(self) -> None:
        """Until the extender answers in time again: what an attack leaves behind is not the next one's doing."""

        def answers() -> bool:
            return all(
                len(ask(self.extender.port, self._nodes, timeout_s=2.0).get("NodeNames") or ()) == OPEN
                for _ in range(20)
            )

        assert wait_for(answers, timeout_s=RECOVERED_WITHIN_S), "the extender does not answer any more"

    def _attempts(self) -> dict[float, int]:
        """By upper bound in seconds, how many attempts took at most so long."""
        return {float(le): int(n) for le, n in ATTEMPTS.findall(self._cluster.plane.scheduler_metrics())}

    def _skipped(self) -> int:
        return self._cluster.plane.scheduler_log().count(SKIPPED)

    def _killed(self) -> int:
        return self.extender.process.text().count(KILLED)


def large_spec() -> Mapping[str, object]:
    """Of a pod with which a request of kube-scheduler is a large body."""
    spec = bare.pod_spec()
    spec["containers"][0]["env"] = [{"name": "LARGE", "value": "x" * 1_100_000}]
    return spec


def quantile_s(buckets: Mapping[float, int], fraction: float) -> float:
    """As Prometheus has it: within a bucket all values are spread evenly."""
    below, below_s = 0, 0.0
    wanted = fraction * max(buckets.values(), default=0)
    for bound_s, count in sorted(buckets.items()):
        if count >= wanted:
            if bound_s == math.inf or count == below:
                return below_s
            return below_s + (bound_s - below_s) * (wanted - below) / (count - below)
        below, below_s = count, bound_s
    return below_s


class _Caller:
    """Asks as kube-scheduler does, over a kept connection, in a thread."""

    def __init__(self, port: int, names: list[str]) -> None:
        self._caller = stage.Caller(port, names)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def calls(self) -> stage.Calls:
        return self._caller.calls

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._over.set()
        self._thread.join(5)
        self._caller.close()

    def _run(self) -> None:
        while not self._over.wait(ASK_EVERY_S):
            self._caller.ask()


def hold(trial: Trial) -> None:
    with (
        Plane("chaos-attacks", without_controllers=WITHOUT_CONTROLLERS, progress=trial.say) as plane,
        Cluster(plane) as cluster,
        Target(cluster, trial.folder) as target,
    ):
        seconds = trial.seconds / len(MODES) / len(attackers.ATTACKS)
        made = 0
        for mode in MODES:
            target.ask_in(mode)
            for attack in attackers.ATTACKS:
                outcome = target.under(attack, seconds)
                name = f"{mode}: {attack.__name__.replace('_', ' ')}"
                trial.say(f"{name}: {outcome}")
                made += outcome.made
                trial.at_most(0, f"{name}: not bound in time", outcome.made - outcome.in_time, "pods")
                trial.at_most(0, f"{name}: unfiltered", outcome.unfiltered, "pods")
                trial.at_most(P99_LIMIT_MS, f"{name}: p99 of kube-scheduler", outcome.p99_ms, "ms")
                trial.at_most(P99_LIMIT_MS, f"{name}: p99 of a client", outcome.client_p99_ms, "ms")
                trial.at_most(0, f"{name}: calls failed", outcome.failed, "")
                trial.at_most(0, f"{name}: workers killed", outcome.killed, "")
        judge_pods(trial, made)


def judge_pods(trial: Trial, made: int) -> None:
    """Whether as many pods came as the row is about: ten a second."""
    trial.played(MADE * PODS_PER_S * MINUTES * 60, MINUTES, "pods", made, "")
