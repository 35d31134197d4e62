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


@dataclass(frozen=True, slots=True)
class Entry:
    """One of node.healthPods. `checks`: the names of those that it names; empty: it names none."""

    pods: HealthPods
    checks: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Counting:
    """`where`: by a check's name, the entries for whose health pods it counts; those that are gone are there too, as
    their word stands until the new ones have said something. `rest`: the entries that name none, for all others."""

    entries: tuple[Entry, ...]
    rest: frozenset[HealthPods]
    where: Mapping[str, frozenset[HealthPods]] = field(default_factory=dict)

    @property
    def parts(self) -> bool:
        """Whether one pod is told of other checks than another."""
        return any(entry.checks for entry in self.entries)

    def health(self, statuses: Sequence[CheckStatus], chosen_by: Collection[HealthPods]) -> NodeHealth | None:
        """For a pod that these entries have chosen; None where no check counts for it."""
        counted = [s for s in statuses if not self.where.get(s.name, self.rest).isdisjoint(chosen_by)]
        return node_health(counted) if counted else None

    def for_nobody(self, checks: Collection[str]) -> list[str]:
        """Those that count for no health pod: no entry names them, and each names others."""
        return [name for name in checks if not self.where.get(name, self.rest)]


def counting_of(entries: Sequence[Entry], checks: Collection[str], before: Counting | None = None) -> Counting:
    """What a file says. checks: the names of all that it has. before: what held until it was read again; which pods are
    looked at waits for the next start, so for an entry that the file has no more counts what it named before."""
    kept = [] if before is None else [e for e in before.entries if e.pods not in {entry.pods for entry in entries}]
    rest = frozenset(entry.pods for entry in entries if not entry.checks)
    rest_kept = frozenset(entry.pods for entry in kept if not entry.checks)
    named = {name: _naming(name, entries) for name in checks}
    where = {} if before is None else dict(before.where)
    for name in checks:
        where[name] = (named[name] or rest | rest_kept) | _naming(name, kept)
    return Counting((*entries, *kept), rest | rest_kept, where)


def _naming(name: str, entries: Sequence[Entry]) -> frozenset[HealthPods]:
    return frozenset(entry.pods for entry in entries if name in entry.checks)
