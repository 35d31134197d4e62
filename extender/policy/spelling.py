"""Pure: names of nodes as JSON spells them, so that the list of a request can be looked up as it came.

To decode a list into texts and to write what is left of them costs a call as much as to look them up. What is found
here needs neither: a list whose parts are all known to be the spelling of a name is the list of these names.
"""

from collections.abc import Collection, Mapping
from itertools import filterfalse
from typing import NamedTuple

import msgspec

spell = msgspec.json.Encoder().encode


class Refusal(NamedTuple):
    name: str
    reason: str


class Spelled(NamedTuple):
    """nodes: all that there are. closed: those of them that are closed. refusals: what is told of each of these."""

    nodes: frozenset[bytes]
    closed: frozenset[bytes]
    refusals: Mapping[bytes, Refusal]


class Sorted(NamedTuple):
    """survivors: as they were spelled, in the order asked. refused: the other names, each with its reason."""

    survivors: list[bytes]
    refused: dict[str, str]


def spelled_of(names: Collection[str]) -> frozenset[bytes]:
    return frozenset(map(spell, names))


def respelled(before: frozenset[bytes], old: frozenset[str], new: frozenset[str]) -> frozenset[bytes]:
    """Those of `new`, where `before` are those of `old`: most are the same."""
    if old is new:
        return before
    return (before - spelled_of(old - new)) | spelled_of(new - old)


def spelled_at(nodes: frozenset[bytes], view: Mapping[str, str]) -> Spelled:
    """view: the closed nodes with their reasons."""
    refusals = {spell(name): Refusal(name, reason) for name, reason in view.items()}
    return Spelled(nodes, frozenset(refusals), refusals)


def sort_out_spelled(asked: list[bytes], spelled: Spelled) -> Sorted | None:
    """None where not each of them is another node that we know. In C speed, as sort_out()."""
    names = set(asked)
    if len(names) != len(asked) or not names <= spelled.nodes:
        return None
    closed = names & spelled.closed
    if not closed:
        return Sorted(asked, {})
    refused = dict(map(spelled.refusals.__getitem__, closed))
    if len(closed) == len(asked):
        return Sorted([], refused)
    return Sorted(list(filterfalse(closed.__contains__, asked)), refused)
