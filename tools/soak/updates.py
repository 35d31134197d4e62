"""R10: more pod updates than a cluster makes, beside a busy kube-scheduler: how far behind are the answers?"""

import time
from pathlib import Path

from extender.config import settings
from extender.feed.replica import Replica
from tools.bench import arms
from tools.bench.asking import node_name
from tools.bench.figures import quantile
from tools.bench.filter_latency import NODES
from tools.bench.stub import Stub
from tools.kit import brakes
from tools.soak import stage
from tools.soak.rows import Progress, Trial

MINUTES = 1.0
UPDATES_PER_S = 10_000
CALLS_PER_S = 100
REALLY = 0.95  # of each rate: who paces a load loses a little of it between two turns
TURN_EVERY_S = 0.5
GIVEN_UP_S = 10.0  # a turn that is not seen by then counts as this late; the stub ends watches that fall behind
LOOK_EVERY_S = 1.0
TURNED = 0  # the number of the node; none that the stream itself turns over


class Turns:
    """The health pod of one node changes now and then; how long until an answer of the filter shows it."""

    def __init__(self, stub: Stub, node: str) -> None:
        self.lags_s: list[float] = []
        self.unseen = 0
        self._stub, self._node = stub, node
        self._open, self._since, self._due = True, 0.0, 0.0

    def step(self, answer: dict[str, object] | None) -> None:
        """answer: to the newest call, None when it failed."""
        monotonic = time.monotonic()
        if self._since:
            late_s = monotonic - self._since
            seen = answer is not None and (self._node in answer["NodeNames"]) == self._open  # type: ignore[operator]
            if not seen and late_s < GIVEN_UP_S:
                return
            self.lags_s.append(late_s)
            self.unseen += not seen
            self._since = 0.0
        if monotonic >= self._due:
            self._due = monotonic + TURN_EVERY_S
            self._open = not self._open
            self._since = time.monotonic()
            self._stub.turn(range(TURNED, TURNED + 1), ready=self._open)


def hold(trial: Trial) -> None:
    stub = Stub(arms.go_binary(trial.say), nodes=NODES)
    with stub.child:
        # A node that turns twice a second flaps: damping would keep it closed, rightly.
        arm = arms.start_readygate(stub.api, gates=[brakes.OFF_AT_GATE])
        with arm.child:
            arms.wait_synced(arm)
            mirror = _follow(arm)
            try:
                _load(trial, stub, arm, mirror)
            finally:
                mirror.stop()


def _load(trial: Trial, stub: Stub, arm: arms.Arm, mirror: Replica) -> None:
    names = [node_name(number) for number in range(stage.NAMES)]
    caller = stage.Caller(int(arm.address.rpartition(":")[2]), names)
    turns, progress = Turns(stub, node_name(TURNED)), Progress(trial.say)
    memory_mib, look_at = 0.0, 0.0
    stub.stream(pods_per_s=UPDATES_PER_S)
    sent, applied, began = stub.events().sent, _applied(mirror), time.monotonic()
    cpu_s = arm.child.cpu_s()
    while time.monotonic() < began + trial.seconds:
        due = time.monotonic() + 1 / CALLS_PER_S
        turns.step(caller.ask())
        if time.monotonic() >= look_at:
            look_at = time.monotonic() + LOOK_EVERY_S
            memory_mib = max(memory_mib, sum(one.pss_mib for one in arm.child.memory()))
            progress(f"{_applied(mirror) - applied} updates, {len(caller.calls.seconds)} calls, {turns.unseen} unseen")
        time.sleep(max(0.0, due - time.monotonic()))
    took_s = time.monotonic() - began
    caller.close()
    offered, done, calls = stub.events().sent - sent, _applied(mirror) - applied, len(caller.calls.seconds)
    judge_rates(trial, offered / took_s, done / took_s, calls / took_s)
    trial.tell("processor", (arm.child.cpu_s() - cpu_s) / took_s * 100, "%")
    trial.at_most(0, "filter calls that failed", caller.calls.failed, "")
    trial.at_most(50, "filter p99", caller.calls.ms(0.99), "ms")
    trial.tell("lag p50", quantile(turns.lags_s, 0.5), "s")
    trial.at_most(1, "lag p99", quantile(turns.lags_s, 0.99), "s")
    trial.at_most(0, "changes never seen", turns.unseen, "")
    trial.at_most(128, "memory", memory_mib, "MiB")


def judge_rates(trial: Trial, offered_per_s: float, applied_per_s: float, calls_per_s: float) -> None:
    """Whether it was the load that the row is about, and the extender kept up with it."""
    trial.at_least(REALLY * UPDATES_PER_S, "updates offered", offered_per_s, "1/s")
    trial.at_least(REALLY * UPDATES_PER_S, "updates applied", applied_per_s, "1/s")
    trial.at_least(REALLY * CALLS_PER_S, "filter calls", calls_per_s, "1/s")


def _follow(arm: arms.Arm) -> Replica:
    """What readygate-status-api follows, without its pages: it says what the caches have counted."""
    assert arm.config is not None
    loaded = settings.load(arm.config)
    socket = Path(loaded.feed.socket or "")
    mirror = Replica(socket, loaded)
    mirror.start()
    while not (mirror.board.filled and mirror.connected):
        arm.child.check()
        time.sleep(0.01)
    return mirror


def _applied(mirror: Replica) -> int:
    status = mirror.status()
    return status.caches["pods"].counters.get("events", 0) if status else 0
