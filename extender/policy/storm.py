"""Pure: detects many nodes that turn bad at once for one cause. The checks themselves may then be broken, so these
nodes are held open, and nodes that were closed before stay closed.

A storm is detected from the times at which nodes turned bad. A new process finds these times in the objects, so it
knows a storm whose beginning it did not see.
"""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

Cause = tuple[str, str]  # one of REASONS, and the word of the condition that turned


@dataclass(frozen=True, slots=True)
class StormRule:
    """The rule: more than `percent` of the nodes, and `at_least` so many, turned bad within within_s. The storm ends
    when fewer than that have been bad for calm_s."""

    percent: int = 20
    at_least: int = 3
    within_s: float = 60.0
    calm_s: float = 60.0

    def many(self, count: int, size: int) -> bool:
        return count >= self.at_least and count * 100 > self.percent * size


@dataclass(frozen=True, slots=True)
class Turned:
    """A bad node. at: monotonic seconds when it turned, -inf if unknown. evidence: for humans."""

    cause: Cause
    at: float
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class Weather:
    """A current storm. nodes: held open; all are still bad. began: when the first of them turned, monotonic.

    calm_since: monotonic seconds since when fewer nodes are bad than make a storm; None while it continues.
    """

    cause: Cause
    nodes: frozenset[str]
    began: float
    calm_since: float | None = None

    def until(self, rule: StormRule) -> float | None:
        return None if self.calm_since is None else self.calm_since + rule.calm_s


def weather(
    rule: StormRule,
    size: int,
    bad: Mapping[str, Turned],
    before: Iterable[Weather],
    *,
    monotonic: float,
    first: bool = False,
) -> tuple[Weather, ...]:
    """Returns the storms of a gate. size: how many nodes count. bad: those of them that are bad. before: the previous
    storms.

    first: there is no memory, so a storm may have begun at any time.
    """
    lasting: list[Weather] = []
    held: set[str] = set()
    for storm in before:
        joined = (name for name, one in bad.items() if one.cause == storm.cause and one.at >= storm.began)
        nodes = frozenset(name for name in (*storm.nodes, *joined) if name in bad and name not in held)
        after = _calmer(rule, replace(storm, nodes=nodes), size, monotonic)
        if after is not None:
            lasting.append(after)
            held |= after.nodes
    since = -math.inf if first else monotonic - rule.within_s
    recent: dict[Cause, list[tuple[float, str]]] = {}
    for name, one in bad.items():
        if name not in held and one.at > since:
            recent.setdefault(one.cause, []).append((one.at, name))
    for cause in sorted(recent):
        began = _dense_from(rule, size, sorted(recent[cause]))
        if began is not None:
            nodes = frozenset(name for at, name in recent[cause] if at >= began)
            lasting.append(Weather(cause, nodes, began))
    return tuple(lasting)


def _calmer(rule: StormRule, storm: Weather, size: int, monotonic: float) -> Weather | None:
    if rule.many(len(storm.nodes), size):
        return replace(storm, calm_since=None)
    since = monotonic if storm.calm_since is None else storm.calm_since
    return None if monotonic - since >= rule.calm_s else replace(storm, calm_since=since)


def _dense_from(rule: StormRule, size: int, turned: list[tuple[float, str]]) -> float | None:
    """Returns when the earliest storm among these began; they are sorted by time."""
    times = [at for at, _ in turned]
    for end, at in enumerate(times):
        begin = bisect_left(times, at - rule.within_s)
        if rule.many(end + 1 - begin, size):
            return times[begin]
    return None


def suspect(storm: Weather, bad: Mapping[str, Turned]) -> str:
    """Returns the most frequent evidence of its nodes, "" if they have none."""
    said = Counter(bad[name].evidence for name in sorted(storm.nodes) if name in bad and bad[name].evidence)
    return said.most_common(1)[0][0] if said else ""
