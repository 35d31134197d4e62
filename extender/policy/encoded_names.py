"""Pure: node names as JSON texts, so that the list of a request can be looked up without decoding it.

Decoding a list and encoding the rest of it take as long as looking the names up. Look-ups here need neither: a list
whose parts are all known JSON texts of names is the list of these names.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from itertools import filterfalse
from operator import itemgetter
from typing import NamedTuple

import msgspec

spell = msgspec.json.Encoder().encode


class Refusal(NamedTuple):
    """A refused node."""

    name: str
    reason: str
    told: bytes  # name and reason, encoded as a member of a JSON object


# If fewer than one in so many of the names is closed, the closed names are looked up among the asked ones.
FEW_CLOSED = 4

_name, _reason, _told = itemgetter(0), itemgetter(1), itemgetter(2)


class Refused(Collection[str]):
    """Refused names. told: all of them as a JSON object, each with its reason. reasons: their number by reason.

    Nothing is copied: a reader of the names iterates over the snapshot's.
    """

    __slots__ = ("_refusals", "reasons", "told")

    def __init__(self, refusals: Collection[Refusal], reasons: Mapping[str, int]) -> None:
        self._refusals = refusals
        self.reasons = reasons
        self.told = b"{%b}" % b",".join(map(_told, refusals))

    def __len__(self) -> int:
        return len(self._refusals)

    def __iter__(self) -> Iterator[str]:
        return map(_name, self._refusals)

    def __contains__(self, name: object) -> bool:
        return any(one.name == name for one in self._refusals)


NONE_REFUSED = Refused((), {})


class Spelled:
    """Encoded names of a snapshot. nodes: all known nodes. closed: those of them that are closed. Immutable.

    The answer for all closed names is made when it is first needed: in a small cluster kube-scheduler asks about every
    node.
    """

    __slots__ = ("_one_reason", "_refusals", "_whole", "closed", "nodes")

    def __init__(self, nodes: frozenset[bytes], refusals: Mapping[bytes, Refusal]) -> None:
        self.nodes = nodes
        self.closed = frozenset(refusals)
        self._refusals = refusals
        reasons = set(map(_reason, refusals.values()))
        self._one_reason = reasons.pop() if len(reasons) == 1 else ""
        self._whole: Refused | None = None

    def among(self, nodes: frozenset[bytes]) -> "Spelled":
        """Returns the same closed names for other nodes."""
        return self if nodes is self.nodes else Spelled(nodes, self._refusals)

    def refused(self, closed: Collection[bytes]) -> Refused:
        """Returns these closed names as refused."""
        if len(closed) != len(self.closed):
            return self._of(list(map(self._refusals.__getitem__, closed)))
        if self._whole is None:
            self._whole = self._of(tuple(self._refusals.values()))
        return self._whole

    def _of(self, refusals: Collection[Refusal]) -> Refused:
        one = self._one_reason
        return Refused(refusals, {one: len(refusals)} if one else Counter(map(_reason, refusals)))


class Sorted(NamedTuple):
    """Divided names. survivors: as encoded, in the order asked. closed: the others; refused: the same as names."""

    survivors: list[bytes]
    closed: AbstractSet[bytes]
    refused: Refused


def spelled_of(names: Iterable[str]) -> frozenset[bytes]:
    """Encodes names. A table made of a set is up to half as large as one that is filled name by name, and a call waits
    for it."""
    return frozenset(set(map(spell, names)))


def respelled(before: frozenset[bytes], old: frozenset[str], new: frozenset[str]) -> frozenset[bytes]:
    """Encodes `new`, reusing `before`, the result for `old`: most names are the same."""
    if old is new:
        return before
    return (before - spelled_of(old - new)) | spelled_of(new - old)


def spelled_at(nodes: frozenset[bytes], view: Mapping[str, str]) -> Spelled:
    """Encodes the names of a snapshot. view: the closed nodes with their reasons."""
    reasons = {reason: spell(reason) for reason in set(view.values())}
    refusals = {}
    for name, reason in view.items():
        spelled = spell(name)
        refusals[spelled] = Refusal(name, reason, b"%b:%b" % (spelled, reasons[reason]))
    return Spelled(nodes, refusals)


def sort_out_spelled(asked: list[bytes], spelled: Spelled) -> Sorted | None:
    """Divides names into survivors and closed ones. Returns None unless each of them is another known node. In C speed,
    as sort_out()."""
    names = set(asked)
    if len(names) != len(asked) or not names <= spelled.nodes:
        return None
    closed: AbstractSet[bytes]
    if len(asked) < FEW_CLOSED * len(spelled.closed):
        closed = spelled.closed.intersection(asked)
    else:
        closed = names & spelled.closed
    if not closed:
        return Sorted(asked, closed, NONE_REFUSED)
    refused = spelled.refused(closed)
    if len(closed) == len(asked):
        return Sorted([], closed, refused)
    return Sorted(list(filterfalse(closed.__contains__, asked)), closed, refused)
