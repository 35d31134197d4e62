"""Pure: which nodes that gates want to close are held open, because there are too many of them."""

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NamedTuple

from extender.policy.caps import Caps, Limit, Place, Sizes, beyond, beyond_caps, room_for
from extender.policy.decision import HeldBy
from extender.policy.memory import Held
from extender.policy.node_rows import Row
from extender.policy.reasons import OPEN
from extender.policy.storm import StormRule, Turned, Weather, weather

Rank = tuple[bool, str]


class Competing(NamedTuple):
    """A gate and its bad nodes that count. total: how many nodes count. held: open in any case."""

    gate: str
    limit: Limit | None
    total: int
    rows: Mapping[str, Row]
    held: Mapping[str, Held]


def turned(rows: Mapping[str, Row]) -> dict[str, Turned]:
    """Returns the bad nodes for the detection of storms. A node that only waits to be trusted again is not bad."""
    return {
        name: Turned((row.verdict.reason, row.verdict.cause), row.turned_at, row.verdict.evidence)
        for name, row in rows.items()
        if row.verdict.reason != OPEN
    }


def storms_of(
    rule: StormRule | None,
    total: int,
    rows: Mapping[str, Row],
    before: Sequence[Weather],
    *,
    monotonic: float,
    first: bool,
) -> tuple[Weather, ...]:
    if rule is None or not (before or rule.many(len(rows), total)):
        return ()
    return weather(rule, total, turned(rows), before, monotonic=monotonic, first=first)


def held_by_storms(rule: StormRule | None, storms: Iterable[Weather]) -> dict[str, Held]:
    held: dict[str, Held] = {}
    for storm in storms:
        reason, cause = storm.cause
        words = f"many nodes turned at once: {cause or reason}"
        until = None if rule is None else storm.until(rule)
        held.update(dict.fromkeys(storm.nodes, Held(HeldBy.STORM, words, until)))
    return held


def held_back(rows: Mapping[str, Row], closed: Container[str]) -> dict[str, Held]:
    """Returns the nodes that must not be closed now. closed: the nodes that are closed already."""
    return {name: lingering(row) for name, row in rows.items() if row.lingers and name not in closed}


def lingering(row: Row) -> Held:
    """Returns whether the node may stay closed. In a pause: its verdict is bad. Otherwise: it has healed, and only the
    grace of its pod still counts."""
    if row.held_by is HeldBy.PAUSE:
        return Held(HeldBy.PAUSE, row.note, row.until)
    if row.verdict.bare != row.verdict.reason:
        return Held(HeldBy.GRACE, row.verdict.evidence, row.verdict.changes_at)
    return Held(HeldBy.NONE, row.note, row.until)


def held_by_caps(
    caps: Caps, sizes: Sizes, places: Mapping[str, Place], gates: Sequence[Competing]
) -> dict[str, dict[str, Held]]:
    """Returns held nodes by gate, for gates with such nodes. The gates share the caps of cluster, zones and pools. A
    node that several gates close is one node, as old as the oldest of its closures. places: the nodes that count."""
    if _room_for_all(caps, sizes, places, gates):
        return {}
    held: dict[str, dict[str, Held]] = {}
    oldest: dict[str, Rank] = {}
    closing: dict[str, list[str]] = {}
    for gate, limit, total, rows, anyway in gates:
        wanted = _oldest_first({name: row.rank for name, row in rows.items() if name not in anyway})
        over = beyond(limit, total, wanted)
        held[gate] = dict.fromkeys(over, Held(HeldBy.CAP, f"cap of gate {gate}: {limit}"))
        closing[gate] = [name for name in wanted[: len(wanted) - len(over)] if name in places]
        for name in closing[gate]:
            rank = rows[name].rank
            oldest[name] = min(rank, oldest.get(name, rank))
    over_all = beyond_caps(caps, sizes, ((name, places[name]) for name in _oldest_first(oldest)))
    if over_all:
        for gate, names in closing.items():
            held[gate].update((name, Held(HeldBy.CAP, over_all[name])) for name in names if name in over_all)
    return {gate: those for gate, those in held.items() if those}


def _room_for_all(caps: Caps, sizes: Sizes, places: Mapping[str, Place], gates: Iterable[Competing]) -> bool:
    """Returns whether no cap is reached, the usual case, so that the order of the nodes does not matter."""
    closing: dict[str, Place] = {}
    for _, limit, total, rows, anyway in gates:
        if not rows:
            continue
        wanted = [name for name in rows if name not in anyway] if anyway else rows
        if limit is not None and wanted and len(wanted) > limit.of(total):
            return False
        for name in wanted:
            place = places.get(name)
            if place is not None:
                closing[name] = place
    return room_for(caps, sizes, closing.values())


def _oldest_first(ranks: Mapping[str, Rank]) -> list[str]:
    return [name for _, name in sorted((rank, name) for name, rank in ranks.items())]
