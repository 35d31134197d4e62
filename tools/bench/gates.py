"""What five gates and all remembered refusals cost a filter call, to one gate and none: in this process, in turns.

Both arms answer calls for pods of different names from the same nodes, a fifth of which is closed, and remember them
with the recorder's own turns; counted is all processor time of both, as the extender's process takes it.
"""

import json
import time
from collections.abc import Callable

from extender.policy.decision import Decision, GateState
from extender.policy.exempt import Rules
from extender.policy.pods import Classes, PodClass
from extender.policy.reasons import CLOSED_UNHEALTHY
from extender.policy.snapshot import Board, Snapshot
from extender.verbs.counts import Counts, RequestResult
from extender.verbs.filter import answer_filter
from extender.verbs.source import Sync
from extender.why.attempts import Attempts
from extender.why.journal import Journal
from extender.why.pods import PODS_MAX
from extender.why.recorder import YIELD_S, Recorder
from tools.bench.figures import SIZES, Figure, median
from tools.bench.processes import MeasurementError

GATES = 5
REMEMBERED = PODS_MAX
CALLS = 200  # of one turn of an arm, fewer where there are thousands of names
ROUNDS = 30
CLOSED = 5  # one node of so many


class Arm:
    """A Source with so many gates. Each closes part of the nodes that are closed; all speak for every pod."""

    def __init__(self, gates: int, nodes: int):
        self.names = [f"node-{number:05}.zone-{number % 3}.example" for number in range(nodes)]
        closed = self.names[::CLOSED]
        states = [_state(f"gate-{one}", self.names, closed[one::gates]) for one in range(gates)]
        self.board = Board(lambda _: None)
        self.board.swap(Snapshot({state.name: state for state in states}, frozenset(self.names)))
        self.exemptions = Rules("readygate-system", None)
        self.classes = Classes(tuple(PodClass() for _ in range(gates)))
        self.counts = Counts()
        self.attempts = Attempts()
        self.recorder = Recorder(self.attempts, self.board, Journal())
        self._made = 0

    def sync(self) -> Sync:
        return Sync.OK

    def bodies(self, count: int) -> list[bytes]:
        """Each about another pod."""
        self._made += count
        return [
            json.dumps(
                {"Pod": _pod(number), "Nodes": None, "NodeNames": self.names}, separators=(",", ":")
            ).encode()  # as kube-scheduler writes it
            for number in range(self._made - count, self._made)
        ]

    def answer(self, bodies: list[bytes]) -> float:
        """Processor seconds of one call."""
        began = time.process_time()
        for body in bodies:
            if answer_filter(self, body).result is not RequestResult.ANSWERED:
                raise MeasurementError("a call was not answered")
        self.remember()
        return (time.process_time() - began) / len(bodies)

    def remember(self) -> None:
        while self.recorder.turn() == YIELD_S:
            pass

    def fill(self, count: int) -> None:
        for _ in range(count // 1000):
            self.answer(self.bodies(1000))


def _state(name: str, names: list[str], closed: list[str]) -> GateState:
    decisions = dict.fromkeys(names, Decision(""))
    decisions.update(dict.fromkeys(closed, Decision(CLOSED_UNHEALTHY, verdict=CLOSED_UNHEALTHY)))
    return GateState(name, decisions, dict.fromkeys(closed, CLOSED_UNHEALTHY))


def _pod(number: int) -> dict[str, object]:
    meta = {"name": f"train-{number}", "namespace": "team-a", "uid": f"{number:08}-0000-4000-8000-000000000000"}
    return {"metadata": meta, "spec": {"containers": [{"name": "main", "image": "registry.invalid/main:1"}]}}


def measure(progress: Callable[[str], None], *, quick: bool = False) -> list[Figure]:
    figures = []
    for nodes in SIZES:
        one, five = Arm(1, nodes), Arm(GATES, nodes)
        # What is remembered is bounded by pods, and by names: of pods that are refused many nodes fewer fit.
        five.fill(2000 if quick else REMEMBERED if nodes == min(SIZES) else REMEMBERED // 10)
        ratios, ones, fives = [], [], []
        for turn in range(4 if quick else ROUNDS):
            arms = (one, five) if turn % 2 else (five, one)
            took = {arm: arm.answer(arm.bodies(min(CALLS, 200_000 // nodes))) for arm in arms}
            ratios.append(took[five] / took[one])
            ones.append(took[one])
            fives.append(took[five])
        held = len(five.recorder.journal.memory.pods)
        note = (
            f"{median(fives) * 1e6:.0f} us to {median(ones) * 1e6:.0f} us of processor a call, {held} pods remembered"
        )
        figures.append(Figure(f"gates_5_cpu_ratio_{nodes}", round(median(ratios), 3), "ratio", note))
        progress(f"{nodes} names, 5 gates to one: {median(ratios):.3f} ({note})")
    return figures
