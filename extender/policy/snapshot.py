"""Pure: the decisions as all others see them, and the order that loses no kick.

A Snapshot never changes; a new one takes the place of the old one as a whole. The Board holds the newest, and the
refusals of requests, because a node that was refused to some pod and opens must be kicked, whatever the interleaving:

    a request:   reads the snapshot; looks names up; remembers refusals; reads the snapshot again
    a swap:      writes the snapshot; looks at the remembered refusals

Either the swap that opens a node comes to look after the request has remembered: then it finds the refusal. Or it
looked before, so it had written before that, and the request's second reading gives another snapshot than its first:
then the request looks itself. Both take what they find out of the memory, so each refusal gives one kick.

A request takes no lock. What it relies on, in CPython with its interpreter lock: reading or writing an attribute, and
`get`, `pop`, `update` and `copy` of a dictionary whose keys are plain text, are one step each. No more than that; only
one thread swaps.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import NamedTuple, Self

from extender.policy.decide import Decision
from extender.policy.reasons import CLOSED_NO_HEALTH_POD, OPEN

UNKNOWN_NODE = CLOSED_NO_HEALTH_POD  # the reason for a name in no snapshot: not seen yet, or no node at all
REFUSED_LIMIT = 50_000  # names remembered; beyond it only those of nodes we know


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """gates: gate -> node -> Decision. reasons: node -> reason, OPEN if none; what requests look names up in.

    Nobody writes into these dictionaries once the snapshot is made.
    """

    gates: Mapping[str, Mapping[str, Decision]] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)

    def with_decisions(self, gate: str, decisions: Mapping[str, Decision | None]) -> Self:
        """The snapshot after these; None is for a node that is no more. What has not changed is shared."""
        of_gate = dict(self.gates.get(gate, {}))
        reasons = dict(self.reasons)
        for name, decision in decisions.items():
            if decision is None:
                of_gate.pop(name, None)
                reasons.pop(name, None)
            else:
                of_gate[name] = decision
                reasons[name] = decision.reason
        same = all(reasons.get(name) == self.reasons.get(name) for name in decisions)
        return type(self)({**self.gates, gate: of_gate}, self.reasons if same else reasons)


class Answer(NamedTuple):
    """survivors: in the order asked, each once. refused: the other names, each with its reason."""

    survivors: list[str]
    refused: dict[str, str]


class Board:
    """The newest snapshot, for any thread to read.

    on_late_release(node): called in the thread of a request that found out that a node opened while it was refusing
    it; must not block. All other releases are what swap() gives back.
    """

    def __init__(self, on_late_release: Callable[[str], None]) -> None:
        self._on_late_release = on_late_release
        self._snapshot = NOTHING
        self.filled = False  # whether there was a first swap; names are not to be looked up before
        self._refused: dict[str, str] = {}

    @property
    def snapshot(self) -> Snapshot:
        return self._snapshot

    def look_up(self, names: Sequence[str]) -> Answer:
        """Which of these nodes may be used. Each name is looked up once, in one snapshot.

        With an empty name among them nothing is remembered: the whole request is answered with an Error.
        """
        snapshot = self._snapshot
        answer = sort_out(names, snapshot.reasons, UNKNOWN_NODE)
        _, refused = answer
        if refused and "" not in refused:
            if len(self._refused) > REFUSED_LIMIT:
                refused = {name: reason for name, reason in refused.items() if name in snapshot.reasons}
            self._refused.update(refused)
            if self._snapshot is not snapshot:
                for name in self._released(refused, self._snapshot):
                    self._on_late_release(name)
        return answer

    def swap(self, snapshot: Snapshot) -> list[str]:
        """Puts the snapshot in the place of the last one; refused nodes that are open in it, to be kicked.

        The first one gives one open node although we refused it to nobody: the process before us may have refused a
        node that has opened since, and one kick wakes every refused pod.
        """
        before = self._snapshot
        self._snapshot = snapshot
        if not self.filled:
            self.filled = True
            return [name for name, reason in snapshot.reasons.items() if reason == OPEN][:1]
        if snapshot.reasons is before.reasons:
            return []
        if len(self._refused) > REFUSED_LIMIT:
            for name in self._refused.copy():
                if name not in snapshot.reasons:
                    self._refused.pop(name, None)
        return self._released(self._refused.copy(), snapshot)

    def _released(self, names: Mapping[str, str], snapshot: Snapshot) -> list[str]:
        """Those that are open and still remembered; from now on they are not."""
        return [
            name
            for name in names
            if snapshot.reasons.get(name, UNKNOWN_NODE) == OPEN and self._refused.pop(name, None) is not None
        ]


NOTHING = Snapshot()


def sort_out(names: Sequence[str], reasons: Mapping[str, str], unknown: str) -> Answer:
    """One look-up per name in C speed: this is what a scheduling attempt waits for.

    unknown: the reason for a name that `reasons` does not hold.
    """
    if len(set(names)) != len(names):
        names = each_once(names)
    found = list(map(reasons.get, names, repeat(unknown)))
    if not any(found):
        return Answer(list(names), {})
    survivors = []
    refused = {}
    for name, reason in zip(names, found, strict=True):
        if reason:
            refused[name] = reason
        else:
            survivors.append(name)
    return Answer(survivors, refused)


def each_once(names: Sequence[str]) -> list[str]:
    """In the order asked."""
    return list(dict.fromkeys(names))
