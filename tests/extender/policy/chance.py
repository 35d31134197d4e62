"""A cluster driven by chance, and what must hold after each of its turns. Used by a test and by `make soak`."""

import random
from dataclasses import dataclass, field

from extender.policy.caps import Caps, Limit
from extender.policy.damping import Damping
from extender.policy.decide import decide
from extender.policy.decision import GateState, HeldBy
from extender.policy.evidence import Surroundings
from extender.policy.gates import Gate
from extender.policy.orders import Kind
from extender.policy.reasons import CLOSED_HELD, OPEN, REASONS
from extender.policy.snapshot import Snapshot
from extender.policy.storm import StormRule
from tests.extender.policy.cluster import Cluster

LOOK_CLOSELY = 0.2  # of the steps: these looks take longer than deciding
CAUSES = ("ContainersNotReady", "CheckFailed")
POOLS = ("", "web", "gpu")
LIMITS = (None, Limit(percent=30), Limit(percent=1), Limit(absolute=1), Limit(absolute=3))
RULES = (None, StormRule(), StormRule(percent=20, at_least=3, within_s=10, calm_s=5))


def _told(state: GateState) -> dict[str, tuple[str, str, str]]:
    return {name: (one.reason, one.verdict, one.held_by.value) for name, one in state.decisions.items()}


@dataclass
class Pod:
    """A pod that asks for any node, by the gates of its mask. asked: the kicks before it asked; "" names were open."""

    mask: int
    kicks: int = -1
    refused: set[str] = field(default_factory=set)


class Play:
    """Steps by chance. Each looks whether a cap is overstepped, whether a release came late or was lost, and whether a
    storm closed a node."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        gates = [
            Gate(
                f"g{number}",
                armed=chance.random() < 0.8,
                severity=chance.choice(["gate", "gate", "gate", "preferNot"]),  # type: ignore[arg-type]
                damping=chance.choice([None, Damping(10.0, 60.0, 600.0)]),
                cap=chance.choice(LIMITS),
                missing_grace_s=chance.choice([0.0, 30.0]),
                replace_grace_s=chance.choice([0.0, 60.0]),
            )
            for number in range(chance.choice([1, 1, 2, 3]))
        ]
        caps = Caps(*(chance.choice(LIMITS) for _ in range(3)), leave_in_pool=chance.choice([0, 1]))
        self.cluster = Cluster(*gates, caps=caps, storm=chance.choice(RULES))
        self.made = 0
        self.pods = [Pod(chance.choice([-1, 1, 2, 3])) for _ in range(4)]
        self.kicks = 0
        self.done: list[str] = []
        for _ in range(chance.choice([0, 1, 2, 5, 12, 30])):
            self.add(86_400.0)
        self.cluster.turn()

    def add(self, age_s: float) -> None:
        self.made += 1
        labels = {
            "readygate.dev/pool": self.chance.choice(POOLS),
            "topology.kubernetes.io/zone": self.chance.choice("ab"),
        }
        self.cluster.add(f"n{self.made}", age_s=age_s, labels=labels, good=self.chance.random() < 0.8)

    def step(self) -> None:
        cluster, chance = self.cluster, self.chance
        before = cluster.board.snapshot
        for _ in range(chance.choice([1, 1, 1, 2, 5])):
            self.change()
        after_s = chance.choice([0.0, 0.02, 0.5, 5.0, 31.0, 61.0])
        self.done.append(f"+{after_s}")
        self.agrees_in_any_order(after_s)
        released = cluster.turn(after_s)
        self.never_above_a_cap()
        self.a_storm_closes_nothing()
        self.only_the_bad_are_closed_anew(before)
        if chance.random() < LOOK_CLOSELY:
            self.words_are_known()
            self.nothing_is_forgotten()
        self.no_release_is_lost(released, before)

    def change(self) -> None:
        cluster, chance = self.cluster, self.chance
        names = list(cluster.nodes)
        gate = chance.choice(cluster.rules.gates).name
        what = chance.choice(
            [
                "bad",
                "bad",
                "bad",
                "good",
                "good",
                "all",
                "gone",
                "add",
                "node",
                "label",
                "order",
                "lost",
                "replace",
                "clock",
            ]
        )
        self.done.append(what)
        some = chance.sample(names, min(len(names), chance.choice([1, 1, 1, 3, 10])))
        match what:
            case "bad":
                cluster.bad(*some, gate=gate, cause=chance.choice(CAUSES))
            case "good":
                cluster.good(*some, gate=gate)
            case "all" if chance.random() < 0.2:
                cluster.bad(*names, gate=gate, cause=chance.choice(CAUSES))
            case "gone" if names and chance.random() < 0.3:
                cluster.remove(some[0])
            case "add" if len(names) < 40:
                self.add(chance.choice([0.0, 300.0, 86_400.0]))
            case "node" if names:
                cluster.change(some[0], in_service=chance.random() < 0.5)
            case "label" if names:
                cluster.change(some[0], labels={"readygate.dev/pool": chance.choice(POOLS)})
            case "order":
                self.order(names)
            case "lost" if names:
                cluster.lost ^= {some[0]}
                cluster.changed[some[0]] = None
            case "replace" if names:
                pods = [] if chance.random() < 0.5 else [cluster.pod(some[0], gate, "False", "ContainersNotReady")]
                cluster.replace(some[0], *pods, gate=gate)
            case "clock" if chance.random() < 0.2:
                cluster.wall_ahead += chance.choice([-7200.0, -30.0, 30.0, 7200.0])

    def order(self, names: list[str]) -> None:
        chance = self.chance
        orders = {}
        for number in range(chance.choice([0, 0, 1, 2])):
            kind = chance.choice(["hold", "exempt", "pause", "arm", "disarm"])
            scope = chance.choice(["{}", f"{{gate: {chance.choice(self.cluster.rules.gates).name}}}"])
            if kind in ("hold", "exempt", "pause") and names and chance.random() < 0.7:
                scope = f"{{node: {chance.choice(names)}}}"
            expires = chance.choice(
                ["", f', expires: "2026-01-0{chance.choice([1, 2])}T{chance.choice([12, 13, 18])}:00:00Z"']
            )
            orders[f"o{number}"] = f"{{order: {kind}, scope: {scope}{expires}}}"
        self.cluster.order(**orders)

    # What must hold.

    def agrees_in_any_order(self, after_s: float) -> None:
        """Of one tick: the evidence in another order decides the same."""
        cluster = self.cluster
        if self.chance.random() > 0.05:
            return
        at = cluster.monotonic
        cluster.monotonic += after_s
        due = cluster.previous.due(cluster.monotonic)
        cluster.changed.update(dict.fromkeys(due))
        one = cluster.decide().snapshot
        changed = list(cluster.changed)
        self.chance.shuffle(changed)
        cluster.changed = dict.fromkeys(changed)
        other = cluster.decide().snapshot
        cluster.monotonic = at
        for name, state in one.gates.items():
            there = other.gates[name]
            assert (dict(state.decisions), state.cap) == (dict(there.decisions), there.cap)
            assert set(state.storms) == set(there.storms)

    def never_above_a_cap(self) -> None:
        rules, previous, snapshot = self.cluster.rules, self.cluster.previous, self.cluster.board.snapshot
        for gate in rules.gates:
            memory, state = previous.gates[gate.name], snapshot.gates[gate.name]
            counted = {name for name, row in memory.rows.items() if row.counted}
            closed = counted & set(state.closed)
            assert memory.total == len(counted)
            assert gate.cap is None or len(closed) <= gate.cap.of(len(counted)), (gate.name, closed)
        for group, memory in previous.groups.items():
            self._never_above_caps_of(group, dict(memory.places))

    def _never_above_caps_of(self, group: tuple[str, ...], places: dict[str, object]) -> None:
        caps, snapshot = self.cluster.rules.caps, self.cluster.board.snapshot
        closed = {name for gate in group for name in snapshot.gates[gate].closed} & places.keys()
        assert caps.cluster is None or len(closed) <= caps.cluster.of(len(places)), (group, closed)
        for field_, limit, leave in (("pool", caps.pool, caps.leave_in_pool), ("zone", caps.zone, 0)):
            for value in {getattr(place, field_) for place in places.values()}:
                there = {name for name, place in places.items() if getattr(place, field_) == value}
                assert limit is None or len(closed & there) <= limit.of(len(there)), (group, field_, value)
                assert len(closed & there) <= len(there) - leave or not closed & there

    def a_storm_closes_nothing(self) -> None:
        for gate, memory in self.cluster.previous.gates.items():
            state = self.cluster.board.snapshot.gates[gate]
            for storm in memory.storms:
                assert not storm.nodes & state.closed.keys(), (gate, storm)

    def only_the_bad_are_closed_anew(self, before: Snapshot) -> None:
        """And in a pause no node at all."""
        cluster = self.cluster
        for gate, state in cluster.board.snapshot.gates.items():
            was_closed = before.gates[gate].closed if gate in before.gates else {}
            for name in state.closed.keys() - was_closed.keys():
                decision, row = state.decisions[name], cluster.previous.gates[gate].rows[name]
                order = cluster.orders.for_node(gate, name, row.place.pool, cluster.wall)
                if order is not None and order.kind is Kind.HOLD:
                    continue
                assert decision.verdict != OPEN or decision.held_by is HeldBy.GRACE, (gate, name, decision)
                assert order is None, (gate, name, order)

    def words_are_known(self) -> None:
        snapshot = self.cluster.board.snapshot
        assert snapshot.nodes == self.cluster.nodes.keys()
        for state in snapshot.gates.values():
            assert state.decisions.keys() == self.cluster.nodes.keys()
            assert dict(state.closed) == {n: d.reason for n, d in state.decisions.items() if d.reason != OPEN}
            for decision in state.decisions.values():
                assert decision.reason in (OPEN, *REASONS)
                held = decision.reason != decision.verdict
                assert held == bool(decision.held_by) or decision.held_by is HeldBy.NOT_GATED, decision
                assert (decision.reason == CLOSED_HELD) == (decision.held_by is HeldBy.HOLD)

    def nothing_is_forgotten(self) -> None:
        """Whoever decides on all nodes anew, at the same time, decides the same; and nothing is overdue."""
        cluster = self.cluster
        needs_all = Surroundings({"nobody": None}, cluster.orders)
        evidence = {name: cluster.evidence(name) for name in cluster.nodes}
        at = {"monotonic": cluster.monotonic, "wall": cluster.wall}
        decided = decide(cluster.rules, cluster.previous, evidence, needs_all, **at)
        for name, state in cluster.board.snapshot.gates.items():
            there = decided.snapshot.gates[name]
            assert _told(state) == _told(there), name
        assert cluster.previous.due_at(cluster.monotonic, cluster.wall) > cluster.monotonic

    def no_release_is_lost(self, released: list[str], before: Snapshot) -> None:
        """Pods as kube-scheduler keeps them: one that was refused asks again only when there was a kick."""
        board, names = self.cluster.board, list(self.cluster.nodes)
        if released or self.cluster.kicked:
            self.cluster.kicked.clear()
            board.before_kick()
            self.kicks += 1
            board.after_kick()
        for pod in self.pods:
            answer = board.look_up(names, pod.mask) if pod.kicks < self.kicks else None
            if answer is not None:
                pod.kicks, pod.refused = self.kicks, set(answer.refused)
                continue
            snapshot = board.snapshot
            closed = snapshot.view(pod.mask & snapshot.refusing)
            opened = {name for name in pod.refused if name in snapshot.nodes and name not in closed}
            assert not opened, ("a release that nobody was kicked for", opened, before)
