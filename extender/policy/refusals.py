"""Pure: which nodes a gate refused to some pod and no kick has followed yet, and the order of steps that loses no kick.

A node that was refused to a pod and opens must be kicked, whatever the interleaving of three kinds of threads:

    a request:   reads the snapshot; looks names up; notes refusals; reads the snapshot again
    a swap:      writes the snapshot; reads the notes
    a kick:      turns the page; writes the Node; drops the earlier pages, once the write has succeeded

If the swap that opens a node reads after the request has noted, it finds the note. If it read before, it had written
before that, and the request's second reading returns another snapshot than its first: then the request reads the notes
itself. Both remove what they find from the notes, so a refusal causes one kick.

A kick wakes every pod that an extender refused, whatever node the pod waits for, also a pod that is being scheduled at
that moment. Each asks again, and its new refusals are noted again. So a successful kick settles all notes of the
earlier pages: a request that wrote into one of them had asked before the kick was written.

This relies on CPython with its interpreter lock: reading or writing an attribute, and `get`, `pop`, `update`, `copy`
and `list()` of a dictionary with plain text keys, are one step each. It relies on nothing else; only one thread swaps,
and only one kicks.
"""

from collections.abc import Collection, Mapping

UNKNOWN_LIMIT = 1024  # remembered names that are in no snapshot: kube-scheduler may have seen a node before readygate
NOTED = "noted"
NAME_LIMIT = 253  # characters; the limit of node names in the API


class Refusals:
    """Refused names of a gate. Bounded by twice the number of known nodes plus UNKNOWN_LIMIT others, whatever clients
    send."""

    def __init__(self) -> None:
        self._pages: tuple[dict[str, str], ...] = ({},)
        self._unknown: dict[str, str] = {}  # the one noted longest ago is the first

    def __len__(self) -> int:
        return sum(len(names) for names in (*self._pages, self._unknown))

    def note(self, refused: Mapping[str, str], unknown: Collection[str] = ()) -> None:
        """Notes refused names. unknown: those that are in no snapshot."""
        if unknown:
            self._note_unknown(unknown)
            others = set(unknown)
            refused = {name: reason for name, reason in refused.items() if name not in others}
        self._pages[0].update(refused)

    def take(self, known: frozenset[str], closed: Mapping[str, str]) -> list[str]:
        """Called after a swap: returns noted names that are known and not closed, and removes them from the notes."""
        for name in known.intersection(self._unknown.copy()):
            self.note({name: NOTED})
            self._unknown.pop(name, None)
        page = self._pages[0]
        if len(page) > len(known) + UNKNOWN_LIMIT:
            gone = [name for name in page.copy() if name not in known]
            self._note_unknown(gone)
            for name in gone:
                page.pop(name, None)
        noted = {name for page in self._pages for name in known.intersection(page.copy()) if name not in closed}
        return self.take_of(noted, known, closed)

    def take_of(self, names: Collection[str], known: frozenset[str], closed: Mapping[str, str]) -> list[str]:
        """The same for these names only: called by a request that has noted them."""
        return [name for name in names if name in known and name not in closed and self._forget(name)]

    def turn(self) -> None:
        """Called before a kick, after the previous kick has succeeded: otherwise its notes belong to this kick, too."""
        if len(self._pages) == 1:
            self._pages = ({}, *self._pages)

    def settle(self) -> None:
        """Called when a kick has succeeded: everything noted before turn() is settled."""
        self._pages = self._pages[:1]

    def _forget(self, name: str) -> bool:
        found = [names.pop(name, None) for names in (*self._pages, self._unknown)]
        return any(found)

    def _note_unknown(self, names: Collection[str]) -> None:
        for name in list(names)[-UNKNOWN_LIMIT:]:
            if len(name) <= NAME_LIMIT:
                self._unknown.pop(name, None)
                self._unknown[name] = NOTED
        for name in list(self._unknown)[: max(0, len(self._unknown) - UNKNOWN_LIMIT)]:
            self._unknown.pop(name, None)
