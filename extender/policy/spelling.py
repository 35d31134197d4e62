"""Pure: names of nodes as JSON spells them, so that the list of a request can be looked up as it came.

To decode a list into texts and to write what is left of them costs a call as much as to look them up. What is found
here needs neither: a list whose parts are all known to be the spelling of a name is the list of these names.

A call begins when the processor's caches hold the data of others, so it waits for each line of memory that it looks at.
Hence one table tells all that is asked of a name; the table of a dictionary is small where that of a set is large, and
it has the names in their order, as kube-scheduler asks about neighbours together.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import compress
from operator import add, not_
from typing import NamedTuple

import msgspec

spell = msgspec.json.Encoder().encode
_read_names = msgspec.json.Decoder(list[str]).decode

Names = Mapping[bytes, None]


class Refused(Collection[str]):
    """Names that are refused. spelled: as they were asked for. They are not decoded before somebody wants to know them.

    It waits for the recorder, so it holds as little as there may be.
    """

    __slots__ = ("_endings", "_reasons", "spelled")

    def __init__(self, spelled: list[bytes], endings: Iterable[bytes], reasons: Mapping[bytes, str]) -> None:
        """endings: what follows each name. reasons: by ending, of all that are closed."""
        self.spelled = spelled
        self._endings = () if len(reasons) == 1 else tuple(endings)
        self._reasons = reasons

    @property
    def told(self) -> bytes:
        """The object of them in JSON, each with its reason."""
        if self._endings or not self.spelled:
            return b"{%b}" % b",".join(map(add, self.spelled, self._endings))
        (ending,) = self._reasons
        return b"{%b%b}" % ((ending + b",").join(self.spelled), ending)

    @property
    def reasons(self) -> Mapping[str, int]:
        """How many have each."""
        if self._endings or not self.spelled:
            return {self._reasons[ending]: count for ending, count in Counter(self._endings).items()}
        return dict.fromkeys(self._reasons.values(), len(self.spelled))

    def __len__(self) -> int:
        return len(self.spelled)

    def __iter__(self) -> Iterator[str]:
        return iter(_read_names(b"[%b]" % b",".join(self.spelled)))

    def __contains__(self, name: object) -> bool:
        return name in list(self)


NONE_REFUSED = Refused([], (), {})


class Spelled:
    """names: of all nodes that there are. known: the same; of a closed one what follows its name where it is refused,
    None of an open one. closed: how many are closed. reasons: by what follows a name. Never changes."""

    __slots__ = ("closed", "known", "names", "reasons")

    def __init__(
        self, names: Names, known: Mapping[bytes, bytes | None], closed: int, reasons: Mapping[bytes, str]
    ) -> None:
        self.names = names
        self.known = known
        self.closed = closed
        self.reasons = reasons


class Sorted(NamedTuple):
    """survivors: as they were spelled, in the order asked. refused: the others."""

    survivors: list[bytes]
    refused: Refused


def spelled_of(names: Iterable[str]) -> Names:
    return dict.fromkeys(map(spell, sorted(names)))


def respelled(before: Names, old: frozenset[str], new: frozenset[str]) -> Names:
    """Those of `new`, where `before` are those of `old`: most are the same, and those that came are the last."""
    gone, came = spelled_of(old - new), spelled_of(new - old)
    stays = dict.fromkeys(name for name in before if name not in gone) if gone else before
    return {**stays, **came} if came else stays


def spelled_at(names: Names, view: Mapping[str, str]) -> Spelled:
    """view: the closed nodes with their reasons."""
    endings = {reason: b":" + spell(reason) for reason in set(view.values())}
    closed = {spell(name): endings[reason] for name, reason in view.items()}
    known: dict[bytes, bytes | None] = {**names, **closed}
    if len(known) != len(names):  # a name of no node is none that we know
        for stranger in closed.keys() - names.keys():
            del closed[stranger], known[stranger]
    return Spelled(names, known, len(closed), {ending: reason for reason, ending in endings.items()})


def sort_out_spelled(asked: list[bytes], spelled: Spelled) -> Sorted | None:
    """None where not each of them is another node that we know. In C speed, as sort_out().

    The difference waits for the memory of several names at a time: there is little between two of its look-ups. So
    it goes first, and those of map() find what they look at in a cache.
    """
    known, names = spelled.known, set(asked)
    if len(names) != len(asked) or names.difference(known):
        return None
    found = list(map(known.__getitem__, asked))
    closed = list(compress(asked, found))
    if not closed:
        return Sorted(asked, NONE_REFUSED)
    refused = Refused(closed, filter(None, found), spelled.reasons)
    return Sorted([] if len(closed) == len(asked) else list(compress(asked, map(not_, found))), refused)
