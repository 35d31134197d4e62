"""Pure: names of nodes as JSON spells them, so that the list of a request can be looked up as it came.

To decode a list into texts and to write what is left of them costs a call as much as to look them up. What is found
here needs neither: a list whose parts are all known to be the spelling of a name is the list of these names.
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
    """told: both, as a member of an object in JSON."""

    name: str
    reason: str
    told: bytes


# With fewer closed nodes than one for so many that are asked about, the closed are looked up among the asked.
FEW_CLOSED = 4

_name, _reason, _told = itemgetter(0), itemgetter(1), itemgetter(2)


class Refused(Collection[str]):
    """Names that are refused. told: the object of them in JSON, each with its reason. reasons: how many have each.

    Nothing is copied for it: who wants the names walks over what the snapshot has of them.
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
    """nodes: all that there are. closed: those of them that are closed. Never changes.

    What is told of all that are closed is made when it is first asked for: of a small cluster kube-scheduler asks about
    every node.
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
        """The same closed ones, of these nodes."""
        return self if nodes is self.nodes else Spelled(nodes, self._refusals)

    def refused(self, closed: Collection[bytes]) -> Refused:
        """closed: some of these."""
        if len(closed) != len(self.closed):
            return self._of(list(map(self._refusals.__getitem__, closed)))
        if self._whole is None:
            self._whole = self._of(tuple(self._refusals.values()))
        return self._whole

    def _of(self, refusals: Collection[Refusal]) -> Refused:
        one = self._one_reason
        return Refused(refusals, {one: len(refusals)} if one else Counter(map(_reason, refusals)))


class Sorted(NamedTuple):
    """survivors: as they were spelled, in the order asked. closed: the others; refused: the same as names."""

    survivors: list[bytes]
    closed: AbstractSet[bytes]
    refused: Refused


def spelled_of(names: Iterable[str]) -> frozenset[bytes]:
    """Made of a set: the table of one that was filled name by name is up to twice as large, and a call waits for it."""
    return frozenset(set(map(spell, names)))


def respelled(before: frozenset[bytes], old: frozenset[str], new: frozenset[str]) -> frozenset[bytes]:
    """Those of `new`, where `before` are those of `old`: most are the same."""
    if old is new:
        return before
    return (before - spelled_of(old - new)) | spelled_of(new - old)


def spelled_at(nodes: frozenset[bytes], view: Mapping[str, str]) -> Spelled:
    """view: the closed nodes with their reasons."""
    reasons = {reason: spell(reason) for reason in set(view.values())}
    refusals = {}
    for name, reason in view.items():
        spelled = spell(name)
        refusals[spelled] = Refusal(name, reason, b"%b:%b" % (spelled, reasons[reason]))
    return Spelled(nodes, refusals)


def sort_out_spelled(asked: list[bytes], spelled: Spelled) -> Sorted | None:
    """None where not each of them is another node that we know. In C speed, as sort_out()."""
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
