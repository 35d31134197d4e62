"""Pure: the state that one decision leaves for the next. A decision does not change it; it changes when the decision
was published."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from extender.policy.caps import Place, Sizes
from extender.policy.deadlines import Deadlines
from extender.policy.decision import Decision, HeldBy
from extender.policy.evidence import Surroundings
from extender.policy.layered_map import LayeredMap
from extender.policy.node_rows import Row
from extender.policy.snapshot import NOTHING, Snapshot
from extender.policy.storm import Weather

STEP_BACK_S = 1.0  # of the wall clock: an order that has ended by it may be in force again


class Held(NamedTuple):
    """Why a node that a gate wants to close is open. until: monotonic seconds, None if it does not end by itself."""

    by: HeldBy
    note: str
    until: float | None = None


class Turn(msgspec.Struct, frozen=True, gc=False):
    """A node whose reason at a gate has changed. before: None for a new node."""

    gate: str
    node: str
    before: Decision | None
    after: Decision


class GateMemory(msgspec.Struct, frozen=True):
    """The state of a gate. rows: all nodes. competing: bad nodes that count. total: how many count. held: competing
    nodes that a storm or a cap holds open."""

    rows: dict[str, Row] = msgspec.field(default_factory=dict)
    competing: Mapping[str, Row] = msgspec.field(default_factory=dict)
    total: int = 0
    storms: tuple[Weather, ...] = ()
    held: Mapping[str, Held] = msgspec.field(default_factory=dict)


class GroupMemory(msgspec.Struct, frozen=True):
    """Gates that share the caps of cluster, zones and pools. places: of all nodes that count."""

    places: LayeredMap[Place] = msgspec.field(default_factory=LayeredMap)
    sizes: Sizes = msgspec.field(default_factory=Sizes)


class NextGate(msgspec.Struct, frozen=True):
    """The changes to a gate's state by a decision. rows: changed rows; None for a node that is gone."""

    rows: Mapping[str, Row | None]
    competing: Mapping[str, Row]
    total: int
    storms: tuple[Weather, ...]
    held: Mapping[str, Held]


Group = tuple[str, ...]


class Decided(msgspec.Struct, frozen=True):
    """A decision. snapshot: the newest; the previous one if nothing differs. turned: in the order of the gates.

    changed: by gate, the nodes whose Decision changed or is gone. looked_at: all nodes whose evidence was used. The
    rest is for DecisionMemory.
    """

    snapshot: Snapshot
    turned: tuple[Turn, ...]
    changed: Mapping[str, tuple[str, ...]]
    looked_at: tuple[str, ...]
    gates: Mapping[str, NextGate]
    groups: Mapping[Group, GroupMemory]
    surroundings: Surroundings
    brakes_at: float
    wall: float


@dataclass(slots=True)
class DecisionMemory:
    """The state of all gates. Not thread-safe: one thread decides. snapshot: the last published one."""

    snapshot: Snapshot = NOTHING
    surroundings: Surroundings = field(default_factory=Surroundings)
    gates: dict[str, GateMemory] = field(default_factory=dict)
    groups: dict[Group, GroupMemory] = field(default_factory=dict)
    _deadlines: Deadlines = field(default_factory=Deadlines)
    _brakes_at: float = math.inf
    _orders_until: float = math.inf  # wall seconds
    _wall: float = -math.inf

    def due(self, monotonic: float) -> list[str]:
        """Returns nodes that must be decided again because time has passed; each is returned once."""
        return self._deadlines.due(monotonic)

    def due_at(self, monotonic: float, wall: float) -> float:
        """Returns the monotonic time before which time alone changes nothing; infinite if it never does."""
        orders_at = (
            monotonic + min(max(0.0, self._orders_until - wall), 60.0) if self._orders_until < math.inf else math.inf
        )
        return min(self._deadlines.next_at(), self._brakes_at, orders_at)

    def needs_all(self, surroundings: Surroundings, wall: float) -> bool:
        """Returns whether the evidence of all nodes is needed: their surroundings have changed, or an order has
        ended."""
        return self.surroundings != surroundings or wall >= self._orders_until or wall < self._wall - STEP_BACK_S

    def keep(self, decided: Decided) -> None:
        """Takes over a decision once it is published."""
        for name, after in decided.gates.items():
            rows = self.gates[name].rows if name in self.gates else {}
            for node, row in after.rows.items():
                if row is None:
                    rows.pop(node, None)
                else:
                    rows[node] = row
            self.gates[name] = GateMemory(rows, after.competing, after.total, after.storms, after.held)
        self.groups = dict(decided.groups)
        self.snapshot, self.surroundings, self._wall = decided.snapshot, decided.surroundings, decided.wall
        self._brakes_at = decided.brakes_at
        self._orders_until = decided.surroundings.orders.next_expiry(decided.wall)
        for node in decided.looked_at:
            times = [row.changes_at for memory in self.gates.values() if (row := memory.rows.get(node)) is not None]
            soonest = min((at for at in times if at is not None), default=None)
            if soonest is None:
                self._deadlines.drop(node)
            else:
                self._deadlines.set(node, soonest)
