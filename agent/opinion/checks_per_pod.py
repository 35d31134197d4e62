"""Pure: which checks count for which health pods.

A check that some entry of node.healthPods names counts for the health pods of those entries alone; one that none names,
for those of all entries that name none. For a pod of several entries counts what counts for any of them, whatever their
order.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from agent.checks.health import NodeHealth, node_health
from agent.checks.state import CheckStatus
from agent.opinion.selection import HealthPods
from agent.wire.condition import REASON_STARTING


@dataclass(frozen=True, slots=True)
class Entry:
    """One of node.healthPods. `checks`: the names of those that it names; empty: it names none."""

    pods: HealthPods
    checks: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ChecksPerPod:
    """`checks`: the names of those that the file has. `where`: by a check's name, the entries for whose health pods it
    counts; those that are gone are there too, as their word stands until the new ones have said something. `rest`: the
    entries that name none, for all others."""

    entries: tuple[Entry, ...]
    checks: frozenset[str]
    rest: frozenset[HealthPods]
    where: Mapping[str, frozenset[HealthPods]] = field(default_factory=dict)

    @property
    def parts(self) -> bool:
        """Whether one pod is told of other checks than another."""
        return any(entry.checks for entry in self.entries)

    def health(self, statuses: Sequence[CheckStatus], chosen_by: Collection[HealthPods]) -> NodeHealth | None:
        """For a pod that these entries have chosen; None where no check counts for it. It is starting, of no check,
        where none of those that do has said anything, as one that has just come; and where the file has none of these
        entries, so nobody knows which do."""
        if not any(entry.pods in chosen_by for entry in self.entries):
            return NodeHealth(False, REASON_STARTING)
        if counted := [status for status in statuses if self._counts(status.name, chosen_by)]:
            return node_health(counted)
        return NodeHealth(False, REASON_STARTING) if any(self._counts(c, chosen_by) for c in self.checks) else None

    def for_nobody(self) -> list[str]:
        """The checks that count for no health pod: no entry names them, and each names others."""
        return sorted(name for name in self.checks if not self.where.get(name, self.rest))

    def _counts(self, check: str, chosen_by: Collection[HealthPods]) -> bool:
        return not self.where.get(check, self.rest).isdisjoint(chosen_by)


def counting_of(entries: Sequence[Entry], checks: Collection[str], before: ChecksPerPod | None = None) -> ChecksPerPod:
    """What a file says. checks: the names of all that it has. before: what held until it was read again, for the checks
    that are gone: those that no entry named count for whoever has the rest."""
    rest = frozenset(entry.pods for entry in entries if not entry.checks)
    named = {name: frozenset(entry.pods for entry in entries if name in entry.checks) for name in checks}
    gone = {} if before is None else {name: of for name, of in before.where.items() if of != before.rest}
    where = gone | {name: of or rest for name, of in named.items()}
    return ChecksPerPod(tuple(entries), frozenset(checks), rest, where)
