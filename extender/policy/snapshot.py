"""Pure: the decisions as all others see them, looked up by requests.

A Snapshot never changes; a new one takes the place of the old one as a whole. The Board holds the newest, and notes
what is refused to requests, in the order that loses no kick (`refusals`). A request takes no lock.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import filterfalse
from typing import NamedTuple, Self

from extender.policy.decide import Decision
from extender.policy.reasons import CLOSED_NO_HEALTH_POD, OPEN
from extender.policy.refusals import Refusals

UNKNOWN_NODE = CLOSED_NO_HEALTH_POD  # the reason for a name in no snapshot: not seen yet, or no node at all
INHERITED_KICKS = 2  # kicks after which no pod waits any more that another process refused
ANY_FEW = 8  # any open node will do; more than one, because nodes go


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """gates: gate -> node -> Decision. reasons: node -> reason, OPEN if none. open: the nodes without a reason, a set.

    Nobody writes into these once the snapshot is made. with_decisions() keeps reasons and open in step.
    """

    gates: Mapping[str, Mapping[str, Decision]] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    open: AbstractSet[str] = frozenset()

    def with_decisions(self, gate: str, decisions: Mapping[str, Decision | None]) -> Self:
        """The snapshot after these; None is for a node that is no more. What has not changed is shared."""
        of_gate = dict(self.gates.get(gate, {}))
        reasons = dict(self.reasons)
        opened = set(self.open)
        for name, decision in decisions.items():
            opened.discard(name)
            if decision is None:
                of_gate.pop(name, None)
                reasons.pop(name, None)
            else:
                of_gate[name] = decision
                reasons[name] = decision.reason
                if decision.reason == OPEN:
                    opened.add(name)
        gates = {**self.gates, gate: of_gate}
        if all(reasons.get(name) == self.reasons.get(name) for name in decisions):
            return type(self)(gates, self.reasons, self.open)
        return type(self)(gates, reasons, opened)


class Answer(NamedTuple):
    """survivors: in the order asked, each once. refused: the other names, each with its reason. unknown: which of them
    no snapshot holds."""

    survivors: list[str]
    refused: dict[str, str]
    unknown: Sequence[str] = ()


class Board:
    """The newest snapshot, for any thread to read.

    on_late_release(nodes): called in the thread of a request that found out that nodes opened while it was refusing
    them; must not block. All other releases are what swap() gives back.
    """

    def __init__(self, on_late_release: Callable[[Sequence[str]], None]) -> None:
        self._on_late_release = on_late_release
        self._snapshot = NOTHING
        self.filled = False  # whether there was a first swap; names are not to be looked up before
        self._refusals = Refusals()
        self._inherited_kicks = INHERITED_KICKS

    @property
    def snapshot(self) -> Snapshot:
        return self._snapshot

    def look_up(self, names: Sequence[str]) -> Answer:
        """Which of these nodes may be used. Each name is looked up once, in one snapshot.

        With an empty name among them nothing is noted: the whole request is answered with an Error.
        """
        snapshot = self._snapshot
        answer = sort_out(names, snapshot)
        refused = answer.refused
        if refused and "" not in refused:
            self._refusals.note(refused, answer.unknown)
            if self._snapshot is not snapshot:
                released = self._refusals.take_of(refused, self._snapshot.open)
                if released:
                    self._on_late_release(released)
        return answer

    def swap(self, snapshot: Snapshot) -> list[str]:
        """Puts the snapshot in the place of the last one; refused nodes that are open in it, to be kicked.

        What the process before us refused nobody knows. So the first snapshot gives a few open nodes, and as long as
        no kick was taken, every node that opens counts as refused.
        """
        before = self._snapshot
        self._snapshot = snapshot
        first, self.filled = not self.filled, True
        if snapshot.reasons is before.reasons and not first:
            return []
        released = self._refusals.take(snapshot.reasons, snapshot.open)
        if self._inherited_kicks and not released:
            opened = snapshot.open - before.open
            released = [name for name in snapshot.reasons if name in opened][:ANY_FEW]
        return released

    def before_kick(self) -> None:
        """Called by the thread that kicks, before it writes."""
        self._refusals.turn()

    def after_kick(self) -> None:
        """Called by the thread that kicks, when its write was taken: every refused pod is asked for again.

        Two of them, and none can be left that was refused by the process before us: while that one is about to end, it
        may still have answered what the first kick woke.
        """
        self._refusals.settle()
        self._inherited_kicks = max(0, self._inherited_kicks - 1)


NOTHING = Snapshot()


def sort_out(names: Sequence[str], snapshot: Snapshot) -> Answer:
    """In C speed: this is what a scheduling attempt waits for."""
    asked = set(names)
    if len(asked) != len(names):
        names = each_once(names)
    if asked.isdisjoint(snapshot.open):
        survivors: list[str] = []
        closed: Collection[str] = names
    else:
        closed = asked - snapshot.open
        if not closed:
            return Answer(list(names), {}, ())
        survivors = list(filterfalse(closed.__contains__, names))
    reasons = [*map(snapshot.reasons.get, closed)]
    unknown: Sequence[str] = ()
    if not all(reasons):
        unknown = [name for name in closed if name not in snapshot.reasons]
        reasons = [reason or UNKNOWN_NODE for reason in reasons]
    return Answer(survivors, dict(zip(closed, reasons, strict=True)), unknown)  # type: ignore[arg-type]


def each_once(names: Sequence[str]) -> list[str]:
    """In the order asked."""
    return list(dict.fromkeys(names))
