"""All connections at once: who goes when there are too many or too many bytes, who reads a large body. Pure.

The first to go is the one that we have waited for longest: for a request, for the rest of one, or until it reads.
Bytes that drip do not shorten that. One whose request waits for us goes last.

One that has had a verdict may be kube-scheduler at rest, and must not fall to a crowd that says nothing; one that comes
may be kube-scheduler, and must not fall to a crowd that has had verdicts. So each of the two has places of its own. Of
those that have had verdicts some keep theirs by how many it were: a crowd that has had one each takes no place from a
kube-scheduler that rests.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import islice
from typing import Generic, TypeVar

from extender.serve.connection import Connection, Stage
from extender.serve.limits import KEPT_MAX, NEWCOMERS_MIN
from extender.serve.turns import SENIORS

C = TypeVar("C", bound=Connection)


def first_to_go(connections: Iterable[C]) -> C | None:
    return min(connections, key=lambda one: (one.stage is Stage.ASKED, one.since), default=None)


def gives_its_place(connections: Collection[C]) -> C | None:
    """Who goes for a new one."""
    newcomers = [one for one in connections if not one.verdicts]
    if len(newcomers) > NEWCOMERS_MIN or len(newcomers) == len(connections):
        return first_to_go(newcomers)
    known = sorted((one for one in connections if one.verdicts), key=lambda one: one.verdicts)
    return first_to_go(known[:-KEPT_MAX] or known)


def place_for_another(connections: Collection[C], silent: Callable[[C], bool]) -> C | None:
    """The same, but a request that is here and was not read yet shall not be lost. silent: whether nothing has come."""
    crowd = list(connections)
    while (one := gives_its_place(crowd)) is not None:
        if one.stage is not Stage.IDLE or silent(one) or len(crowd) <= len(connections) // 2:
            return one
        crowd.remove(one)
    return None


def seniors(connections: Iterable[C]) -> Iterator[C]:
    """The SENIORS that have been here longest, of those that have had verdicts. connections: all there are, in the
    order they came."""
    return islice((each for each in connections if each.verdicts), SENIORS)


def is_senior(one: C, connections: Iterable[C]) -> bool:
    return one.verdicts > 0 and any(each is one for each in seniors(connections))


class Held(Generic[C]):
    """The bytes that all connections hold together, as far as they were told."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes: dict[C, int] = {}
        self.sum_bytes = 0

    def update(self, connection: C) -> None:
        """To be called when what it holds may have changed."""
        held_bytes = connection.held_bytes
        self.sum_bytes += held_bytes - self._bytes.pop(connection, 0)
        if held_bytes:
            self._bytes[connection] = held_bytes

    def forget(self, connection: C) -> None:
        self.sum_bytes -= self._bytes.pop(connection, 0)

    def too_much(self) -> C | None:
        """Who is to go, if it is too much."""
        return first_to_go(self._bytes) if self.sum_bytes > self._max_bytes else None


class LargeBodies(Generic[C]):
    """One large body at a time: its client has the turn, the others wait in the order they came."""

    def __init__(self) -> None:
        self._holder: C | None = None
        self._waiting: dict[C, None] = {}

    def asks(self, connection: C, monotonic: float) -> bool:
        """Whether it may be read from. If not, it waits."""
        if self._holder is None and not self._waiting:
            self._holder = connection
        if self._holder is connection:
            return True
        if connection not in self._waiting:
            self._waiting[connection] = None
            connection.waits = True
            if self._holder is not None:
                self._holder.hurry(monotonic)
        return False

    def leaves(self, connection: C, monotonic: float) -> C | None:
        """It needs the turn no more, or is closed. Who has the turn now, if that changes."""
        self._waiting.pop(connection, None)
        if self._holder is not connection:
            return None
        self._holder = next(iter(self._waiting), None)
        if self._holder is not None:
            del self._waiting[self._holder]
            self._holder.granted(monotonic)
            if self._waiting:
                self._holder.hurry(monotonic)
        return self._holder
