"""Pure: what is decided on the nodes of a gate, from what is seen of them and what is remembered.

Two stages. The verdict looks at one node for itself, by the table of `verdict`. The decision looks at all nodes of the
gate at once; so far nothing there overrules a verdict, so it adds only since when it holds.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from extender.deadlines import Deadlines
from extender.policy.decision import Decision
from extender.policy.evidence import NodeEvidence
from extender.policy.verdict import Memory, Verdict, verdict_of


@dataclass(frozen=True, slots=True)
class Gate:
    """A gate as far as verdicts depend on it."""

    name: str
    missing_grace_s: float


@dataclass(frozen=True, slots=True)
class Decided:
    """decisions: of the nodes for which something differs from before; None for a node that is no more.

    turned: nodes whose reason is another one than before, new nodes among them. memories: for the Ledger.
    """

    decisions: Mapping[str, Decision | None]
    turned: tuple[str, ...]
    memories: Mapping[str, Memory]


@dataclass(slots=True)
class Ledger:
    """What a gate remembers of its nodes from one decision to the next. Not thread-safe: one thread decides."""

    decisions: dict[str, Decision] = field(default_factory=dict)
    memories: dict[str, Memory] = field(default_factory=dict)
    _deadlines: Deadlines = field(default_factory=Deadlines)

    def due(self, monotonic: float) -> list[str]:
        """Nodes to be decided again because time has passed; each is given once."""
        return self._deadlines.due(monotonic)

    def due_at(self) -> float:
        """Monotonic seconds before which time alone changes nothing; infinite if it never does."""
        return self._deadlines.next_at()

    def keep(self, decided: Decided, looked_at: Iterable[str]) -> None:
        """Takes over what was decided, once it is published. looked_at: all nodes whose evidence it was made of."""
        self.memories.update(decided.memories)
        for name, decision in decided.decisions.items():
            if decision is None:
                self.decisions.pop(name, None)
                self.memories.pop(name, None)
            else:
                self.decisions[name] = decision
        for name in looked_at:
            decision = self.decisions.get(name)
            if decision is None or decision.changes_at is None:
                self._deadlines.drop(name)
            else:
                self._deadlines.set(name, decision.changes_at)


def decide(gate: Gate, ledger: Ledger, evidence: Mapping[str, NodeEvidence | None], *, monotonic: float) -> Decided:
    """Decides on the nodes given, None being a node that is no more, and leaves the ledger as it is."""
    decisions: dict[str, Decision | None] = {}
    memories: dict[str, Memory] = {}
    turned = []
    for name, seen in evidence.items():
        before = ledger.decisions.get(name)
        if seen is None:
            if before is not None:
                decisions[name] = None
            continue
        verdict, memories[name] = verdict_of(
            seen,
            gate.name,
            ledger.memories.get(name, _NEW),
            monotonic=monotonic,
            missing_grace_s=gate.missing_grace_s,
        )
        decision = _decision(verdict, before, monotonic)
        if decision != before:
            decisions[name] = decision
        if before is None or decision.reason != before.reason:
            turned.append(name)
    return Decided(decisions, tuple(turned), memories)


def _decision(verdict: Verdict, before: Decision | None, monotonic: float) -> Decision:
    same = before is not None and before.reason == verdict.reason
    since = before.since_monotonic if before is not None and same else monotonic
    return Decision(verdict.reason, verdict.pod, verdict.evidence, since, verdict.changes_at, verdict=verdict.reason)


_NEW = Memory()
