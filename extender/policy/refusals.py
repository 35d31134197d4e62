"""Pure: which nodes a gate refused to some pod and were not kicked since, and the order that loses no kick.

A node that was refused to a pod and opens must be kicked, whatever the interleaving of three kinds of threads:

    a request:   reads the snapshot; looks names up; notes refusals; reads the snapshot again
    a swap:      writes the snapshot; looks at the notes
    a kick:      turns the page; writes the Node; drops the pages before, once the write was taken

Either the swap that opens a node comes to look after the request has noted: then it finds the note. Or it looked
before, so it had written before that, and the request's second reading gives another snapshot than its first: then the
request looks itself. Both take what they find out of the notes, so a refusal gives one kick.

A kick wakes every pod that an extender refused, whatever node the pod waits for, also one that is being scheduled at
that moment: each asks again, and what it is refused then is noted anew. So a kick that was taken settles all notes of
the pages before: who writes into one of them has asked before the kick was written.

What this relies on, in CPython with its interpreter lock: reading or writing an attribute, and `get`, `pop`, `update`,
`copy` and `list()` of a dictionary whose keys are plain text, are one step each. No more than that; only one thread
swaps, and only one kicks.
"""

from collections.abc import Collection, Mapping

UNKNOWN_LIMIT = 1024  # names remembered that no snapshot knows: the scheduler may have seen a node before us
NOTED = "noted"
NAME_LIMIT = 253  # characters; the API takes no longer name of a node


class Refusals:
    """Not more than the names of the nodes we know, twice, and UNKNOWN_LIMIT others: whoever asks, and whatever for."""

    def __init__(self) -> None:
        self._pages: tuple[dict[str, str], ...] = ({},)
        self._unknown: dict[str, str] = {}  # the one noted longest ago is the first

    def __len__(self) -> int:
        return sum(len(names) for names in (*self._pages, self._unknown))

    def note(self, refused: Mapping[str, str], unknown: Collection[str] = ()) -> None:
        """unknown: which of them no snapshot holds."""
        if unknown:
            self._note_unknown(unknown)
            others = set(unknown)
            refused = {name: reason for name, reason in refused.items() if name not in others}
        self._pages[0].update(refused)

    def take(self, known: frozenset[str], closed: Mapping[str, str]) -> list[str]:
        """Called after a swap: those that are known, not closed and were noted; they are not from now on."""
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
        """The same, of these names only: called by a request that has noted them."""
        return [name for name in names if name in known and name not in closed and self._forget(name)]

    def turn(self) -> None:
        """Called before a kick. Not before the last one was taken: its notes are those of this one too."""
        if len(self._pages) == 1:
            self._pages = ({}, *self._pages)

    def settle(self) -> None:
        """Called when a kick was taken: everything that was noted before turn() is done."""
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
