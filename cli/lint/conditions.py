"""Solves whether the conditions of a gate can be good, can be bad, and whether each of them matters. Pure.

Every state that a condition can have is tried: it is missing, or its status is True, False or something else, and its
age is below, between or above the limits (`staleAfterSeconds`) of the gate. An entry is the set of the states in which
it is good. Entries about one condition are compared as sets. Different conditions are independent.

Mirrors extender.policy.conditions, and of extender.policy.verdict that a node whose own Ready is False or Unknown is
closed by every gate.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cli.lint.findings import Finding, error, warning
from extender.config.gates import Condition, Conditions
from kube import contract

_Key = tuple[str, str]  # of, type
_State = tuple[str, int]  # the status, "" if the condition is missing; how many limits its age has passed
_States = frozenset[_State]

_OTHER = contract.STATUS_UNKNOWN
_STATUSES = (contract.STATUS_TRUE, contract.STATUS_FALSE, _OTHER)
_MISSING: _State = ("", 0)
_NODES_OWN: _Key = ("node", contract.CONDITION_READY)
_OWN_READY = "every gate closes a node whose own Ready is False or Unknown"


@dataclass(frozen=True)
class _Entry:
    """One entry of allOf or anyOf."""

    place: str  # as `allOf[0]`
    condition: Condition
    by: Mapping[_State, str]  # each state in which the entry is good, with the key that makes it good
    every: _States  # all states of the condition

    @property
    def good(self) -> _States:
        return frozenset(self.by)

    @property
    def key(self) -> _Key:
        return _key(self.condition)


def of_conditions(conditions: Conditions, where: str) -> Iterator[Finding]:
    """Findings about the conditions of a gate. where: their key in the file."""
    all_of, any_of = _entries("allOf", conditions.all_of, conditions), _entries("anyOf", conditions.any_of, conditions)
    yield from _stale_without_limit([*all_of, *any_of], where)
    for entries in (all_of, any_of):
        yield from _twice(entries, where)
    demanded = _joined(all_of)
    closed = [*_never_good(all_of, demanded, where)]
    if closed:
        yield from closed
        return
    yield from _without_effect(all_of, "allOf", where)
    if any_of:
        yield from _of_any(all_of, any_of, demanded, where)


def _of_any(
    all_of: Sequence[_Entry], any_of: Sequence[_Entry], demanded: Mapping[_Key, _States], where: str
) -> Iterator[Finding]:
    """Findings about anyOf if allOf can be good. demanded: the states in which allOf is good."""
    dead = [one for one in any_of if not _possible(one, demanded) & one.good]
    if len(dead) == len(any_of):
        together = " together with allOf" if all_of else ""
        what = f"no entry can be good{together}: the gate closes every node"
        yield error(f"{where}.anyOf", what, "correct the status of an entry")
        return
    for key, named in _by_key(any_of).items():
        within = demanded.get(key, named[0].every)
        if within <= frozenset().union(*(one.good for one in named)):
            yield _always(key, named, within == named[0].every and not all_of, where)
            return
    live = [one for one in any_of if one not in dead]
    for one in dead:
        own = not one.good & _left_open(one.key, one.every)
        cause = _OWN_READY if own else f"allOf demands something else of {_text(one.key)}"
        what = f"this entry is never good: {cause}"
        yield warning(f"{where}.{one.place}", what, "delete the entry, or correct its status")
    yield from _either_status(live, where)
    yield from _without_effect(live, "anyOf", where)
    yield from _good_without_status(live, demanded, where)


def _either_status(any_of: Sequence[_Entry], where: str) -> Iterator[Finding]:
    for key, named in _by_key(any_of).items():
        if {(contract.STATUS_TRUE, 0), (contract.STATUS_FALSE, 0)} <= frozenset().union(*(one.good for one in named)):
            places = _listed([one.place for one in named])
            what = f"{places} are good for True and for False of {_text(key)}: whichever it is, no node is closed"
            yield warning(f"{where}.anyOf", what, "correct the status of an entry")


def _always(key: _Key, named: Sequence[_Entry], open_: bool, where: str) -> Finding:
    """The finding that anyOf is good in every state in which allOf is good."""
    places = _listed([one.place for one in named])
    if open_:
        what = f"{places} cover every status of {_text(key)}: the gate closes no node by its conditions"
        return error(f"{where}.anyOf", what, "correct the status of an entry")
    what = f"{places} {_are(named)} good whenever allOf is: anyOf has no effect"
    return warning(f"{where}.anyOf", what, "delete anyOf, or correct the status of an entry")


def _never_good(all_of: Sequence[_Entry], demanded: Mapping[_Key, _States], where: str) -> Iterator[Finding]:
    for key, named in _by_key(all_of).items():
        if demanded[key]:
            continue
        places = _listed([one.place for one in named])
        joined = frozenset.intersection(*(one.good for one in named))
        if joined:  # the node's own Ready makes the difference
            what = f"{places} {_demand(named)} something else, and {_OWN_READY}"
        else:
            what = f"no status of {_text(key)} is good for {places} at once"
        yield error(f"{where}.allOf", f"{what}: the gate closes every node", "correct the status of an entry")


def _twice(entries: Sequence[_Entry], where: str) -> Iterator[Finding]:
    for place, one in enumerate(entries):
        first = next((other for other in entries[:place] if other.condition == one.condition), None)
        if first is not None:
            yield warning(f"{where}.{one.place}", f"is the same as {first.place}", "delete one of the two")


def _without_effect(entries: Sequence[_Entry], key: str, where: str) -> Iterator[Finding]:
    """Findings about entries that change nothing next to others about the same condition. Equal entries are skipped."""
    left = [one for place, one in enumerate(entries) if all(one.condition != two.condition for two in entries[:place])]
    for named in _by_key(left).values():
        for one in list(named):
            others = [two for two in named if two is not one]
            if not others:
                break
            if key == "allOf":
                moot = frozenset.intersection(*(two.good for two in others)) <= one.good
            else:
                moot = one.good <= frozenset().union(*(two.good for two in others))
            if moot:
                named.remove(one)
                stronger = _listed([two.place for two in others])
                verb = "demand" if key == "allOf" else "allow"
                what = f"has no effect: {stronger} {verb if len(others) > 1 else f'{verb}s'} as much or more"
                about = f"{what} of {_text(one.key)}"
                yield warning(f"{where}.{one.place}", about, "delete the entry, or correct it")


def _good_without_status(any_of: Sequence[_Entry], demanded: Mapping[_Key, _States], where: str) -> Iterator[Finding]:
    """Findings about entries of anyOf that are good without their status, so that other conditions do not matter."""
    for one in any_of:
        if all(other.key == one.key for other in any_of):
            continue
        words = {key for state, key in one.by.items() if state in _possible(one, demanded)}
        for word in sorted(words - {"status"}):
            while_so = f"while {_text(one.key)} is {word}, this entry is good whatever the other entries are"
            remedy = f"delete `{word}: open` here, or put the entry into allOf"
            yield warning(f"{where}.{one.place}.{word}", while_so, remedy)


def _stale_without_limit(entries: Sequence[_Entry], where: str) -> Iterator[Finding]:
    for one in entries:
        if one.condition.stale == "open" and one.condition.stale_after_seconds is None:
            what = "has no effect without staleAfterSeconds: the condition never becomes stale"
            yield warning(f"{where}.{one.place}.stale", what, "add staleAfterSeconds, or delete it")


def _entries(name: str, given: Sequence[Condition], conditions: Conditions) -> list[_Entry]:
    return [_entry(f"{name}[{place}]", one, conditions) for place, one in enumerate(given)]


def _entry(place: str, condition: Condition, conditions: Conditions) -> _Entry:
    about = [one for one in (*conditions.all_of, *conditions.any_of) if _key(one) == _key(condition)]
    limits = sorted({one.stale_after_seconds for one in about if one.stale_after_seconds is not None})
    every = frozenset({_MISSING, *((status, age) for status in _STATUSES for age in range(len(limits) + 1))})
    good = {state: key for state in every if (key := _good_by(condition, state, limits))}
    return _Entry(place, condition, good, every)


def _good_by(condition: Condition, state: _State, limits: Sequence[float]) -> str:
    """The key that makes the condition good in this state; "" if it is bad."""
    status, passed = state
    limit = condition.stale_after_seconds
    if state == _MISSING:
        return "missing" if condition.missing == "open" else ""
    if limit is not None and passed > limits.index(limit):
        return "stale" if condition.stale == "open" else ""
    if status == condition.status:
        return "status"
    return "unknown" if status == _OTHER and condition.unknown == "open" else ""


def _joined(all_of: Sequence[_Entry]) -> dict[_Key, _States]:
    """For each condition, the states in which all its entries are good and the node's own Ready closes no gate."""
    return {
        key: frozenset.intersection(*(one.good for one in named)) & _left_open(key, named[0].every)
        for key, named in _by_key(all_of).items()
    }


def _possible(entry: _Entry, demanded: Mapping[_Key, _States]) -> _States:
    return demanded.get(entry.key, _left_open(entry.key, entry.every))


def _left_open(key: _Key, every: _States) -> _States:
    if key != _NODES_OWN:
        return every
    return frozenset(state for state in every if state[0] in ("", contract.STATUS_TRUE))


def _by_key(entries: Sequence[_Entry]) -> dict[_Key, list[_Entry]]:
    found: dict[_Key, list[_Entry]] = {}
    for one in entries:
        found.setdefault(one.key, []).append(one)
    return found


def _key(condition: Condition) -> _Key:
    return condition.of, condition.type


def _text(key: _Key) -> str:
    return f"{key[0]} condition {key[1]}"


def _listed(places: Sequence[str]) -> str:
    return places[0] if len(places) == 1 else f"{', '.join(places[:-1])} and {places[-1]}"


def _are(named: Sequence[_Entry]) -> str:
    return "is" if len(named) == 1 else "are"


def _demand(named: Sequence[_Entry]) -> str:
    return "demands" if len(named) == 1 else "demand"
