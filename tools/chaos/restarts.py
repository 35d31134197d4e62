"""The extender is killed, restarted and reloaded: R26 under the real kube-scheduler, R27 with kept connections."""

import signal
import threading
import time
from typing import Self

from tests.plane.cluster import WITHOUT_CONTROLLERS, Cluster
from tests.plane.load import Load
from tests.scripted.extender_process import ExtenderProcess
from tools.fakes.api_server import FakeApiServer
from tools.kit.ports import free_port
from tools.kit.waiting import wait_for
from tools.soak import stage
from tools.soak.rows import Progress, Trial
from tools.testbed.plane.plane import Plane
from tools.testbed.plane.programs import Extender

MODES = ("enforce", "protect")
KILLS_MINUTES = 20.0  # both modes together
KILL_EVERY_S = 5.0
SERVES_S = 1.0  # so long a start that was slow answers before the next kill
PODS_PER_S = 20.0
BUDGET_S = 2.0  # a node may have closed so long before a pod is bound there
MADE = 0.95  # of the pods: who makes them loses a little between two
ALL_BOUND_WITHIN_S = 15.0
RESTARTS_MINUTES = 5.0
RESTART_EVERY_S = 30.0
CALLERS = 8
CALLS_PER_S = 80.0  # of all of them; on a quiet machine twice as many
DRAIN_LIMIT_S = 3.0
GAP_LIMIT_S = 1.5


def hold_kills(trial: Trial) -> None:
    """R26: in both modes, half of the time each."""
    with (
        Plane("chaos-kills", without_controllers=WITHOUT_CONTROLLERS, progress=trial.say) as plane,
        Cluster(plane) as cluster,
    ):
        nodes = cluster.add_nodes(6, pods="20000", cpu="2000")
        cluster.add_health_pods(nodes, ready=True)
        extender = cluster.start_extender()
        for mode in MODES:
            cluster.use_extender(extender.url, mode=mode)
            _kill(trial, cluster, extender, nodes, mode)


def _kill(trial: Trial, cluster: Cluster, extender: Extender, nodes: list[str], mode: str) -> None:
    """Every five seconds the extender is killed whole and started again, and a node turns. While it is away `protect`
    places pods unfiltered, as it is meant to: how many is told; those of `enforce` must be none."""
    closed_since: dict[str, float] = {}
    history: list[tuple[str, float, float]] = []
    away: list[tuple[float, float]] = []
    kills = 0
    progress = Progress(trial.say)
    with Load(cluster.api, per_s=PODS_PER_S) as load:
        ends = time.monotonic() + trial.seconds / len(MODES)
        while time.monotonic() < ends or not kills:
            began = time.monotonic()
            node = nodes[kills % (len(nodes) - 1)]  # the last one stays open
            if node in closed_since:
                history.append((node, closed_since.pop(node), time.monotonic()))
                cluster.health_pods[node].say(ready=True)
            else:
                cluster.health_pods[node].say(ready=False)
                closed_since[node] = time.monotonic()
            killed_at = time.monotonic()
            extender.process.kill()
            kills += 1
            extender.start()
            away.append((killed_at, time.monotonic() + BUDGET_S))
            progress(f"{mode}: {kills} kills, {len(load.made)} pods, {len(load.unbound())} not bound")
            time.sleep(max(SERVES_S, began + KILL_EVERY_S - time.monotonic()))
        load.stop()
        last = time.monotonic()
        wait_for(lambda: not load.unbound(), timeout_s=60.0)
        all_bound_s = time.monotonic() - last
        history += [(node, since, float("inf")) for node, since in closed_since.items()]
        late_s: dict[str, float] = {}  # by pod, after its node had closed
        for node, since, until in history:
            for pod in load.on([node], after=since + BUDGET_S, until=until):
                late_s[pod] = load.bound[pod].at - since
        judge_kills(trial, mode, kills, len(load.made))
        meanwhile = [pod for pod in late_s if any(start < load.bound[pod].at <= end for start, end in away)]
        if mode == "enforce":
            trial.at_most(0, "enforce: placed on a node closed for more than 2 s", len(late_s), "pods")
        else:
            trial.tell(f"{mode}: away", sum(end - BUDGET_S - start for start, end in away), "s")
            trial.tell(f"{mode}: placed meanwhile on a node closed for more than 2 s", len(meanwhile), "pods")
            trial.at_most(0, f"{mode}: placed there while it answered", len(late_s) - len(meanwhile), "pods")
        trial.tell(
            f"{mode}: the latest of them was bound after its node had closed", max(late_s.values(), default=0), "s"
        )
        trial.at_most(0, f"{mode}: never bound", len(load.unbound()), "pods")
        trial.at_most(0, f"{mode}: bound twice", len(load.bound_twice()), "pods")
        trial.at_most(ALL_BOUND_WITHIN_S, f"{mode}: all bound after the last kill", all_bound_s, "s")
    for node in closed_since:
        cluster.health_pods[node].say(ready=True)


def judge_kills(trial: Trial, mode: str, kills: int, pods: int) -> None:
    """Whether as much was played in that mode as the row is about: 120 kills and 12,000 pods."""
    mode_s = KILLS_MINUTES * 60 / len(MODES)
    trial.played(mode_s / KILL_EVERY_S, KILLS_MINUTES, f"{mode}: kills", kills, "")
    trial.played(MADE * PODS_PER_S * mode_s, KILLS_MINUTES, f"{mode}: pods", pods, "")


def hold_restarts(trial: Trial) -> None:
    """R27: SIGTERM and a new start, at the same port, with kept connections of callers who ask all the time."""
    port = free_port()
    with FakeApiServer() as api:
        names = stage.fill(api, 100)
        process = ExtenderProcess(api, trial.folder, config={"listen": {"address": "127.0.0.1", "port": port}})
        drains: list[float] = []
        gaps: list[float] = []
        with process:
            process.wait_ready(30)
            with _Callers(port, names) as callers:
                progress = Progress(trial.say)
                ends = time.monotonic() + trial.seconds
                due = time.monotonic()
                while time.monotonic() < ends or not drains:
                    due += min(RESTART_EVERY_S, trial.seconds / 3)  # by the clock, however long a start takes
                    time.sleep(max(SERVES_S, due - time.monotonic()))
                    code, drained_s = process.stop(signal.SIGTERM)
                    assert code == 0, code
                    process.start()
                    answered = callers.last_answer_at
                    wait_for(lambda: callers.last_answer_at > answered, timeout_s=20, every_s=0.01)  # noqa: B023
                    drains.append(drained_s)
                    gaps.append(callers.last_answer_at - answered)
                    progress(f"{len(drains)} restarts, {callers.failures}")
        judge_restarts(trial, len(drains), callers.count)
        trial.at_most(DRAIN_LIMIT_S, "the longest stop", max(drains), "s")
        refused = {word for word in callers.failures if "Refused" in word}
        others = {word: n for word, n in callers.failures.items() if word not in refused}
        trial.tell("calls refused in the gaps", sum(callers.failures[word] for word in refused), "")
        trial.at_most(0, "calls lost in another way", sum(others.values()), "")
        trial.at_most(GAP_LIMIT_S, "the longest gap", max(gaps), "s")
        if others:
            trial.say(f"lost: {others}")


def judge_restarts(trial: Trial, restarts: int, calls: int) -> None:
    """Whether as much was played as the row is about: 10 restarts in five minutes, under load."""
    seconds = RESTARTS_MINUTES * 60
    trial.played(seconds / RESTART_EVERY_S, RESTARTS_MINUTES, "restarts", restarts, "")
    trial.played(CALLS_PER_S * seconds, RESTARTS_MINUTES, "calls", calls, "")


class _Callers:
    """failures: by word. last_answer_at: by the monotonic clock."""

    def __init__(self, port: int, names: list[str]) -> None:
        self.failures: dict[str, int] = {}
        self.count = 0
        self.last_answer_at = 0.0
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(port, names), daemon=True) for _ in range(CALLERS)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(5)

    def _run(self, port: int, names: list[str]) -> None:
        caller = stage.Caller(port, names)
        while not self._stop.wait(0.05):
            before = dict(caller.calls.failures)
            answer = caller.ask()
            self.count += 1
            if answer is not None and not answer.get("Error"):
                self.last_answer_at = time.monotonic()
            for word, n in caller.calls.failures.items():
                if n > before.get(word, 0):
                    self.failures[word] = self.failures.get(word, 0) + 1
        caller.close()
