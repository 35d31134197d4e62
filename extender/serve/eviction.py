"""All connections at once: which one is closed if there are too many or they hold too many bytes, and which large body
is read next. Pure.

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
from extender.serve.fairness import SENIORS
from extender.serve.limits import (
    KEPT_MAX,
    LARGE_BODY_PAUSE_S,
    LARGE_BODY_STEP_BYTES,
    LARGE_BODY_TURN_S,
    NEWCOMERS_MIN,
)

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
    """The bytes that all connections hold together. Only Places.book() and Places.close() change them."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes: dict[C, int] = {}
        self.sum_bytes = 0

    def update(self, connection: C) -> bool:
        """Must be called when the held bytes may have changed. Returns whether the sum exceeds the limit."""
        held_bytes = connection.held_bytes
        self.sum_bytes += held_bytes - self._bytes.pop(connection, 0)
        if held_bytes:
            self._bytes[connection] = held_bytes
        return self.sum_bytes > self._max_bytes

    def forget(self, connection: C) -> None:
        self.sum_bytes -= self._bytes.pop(connection, 0)

    def pop_excess(self) -> C | None:
        """Stops counting the client that must be closed, and returns it; None if the sum is within the limit.

        If all clients wait for an answer, it is the client that holds most. So a complete request is not lost while it
        is smaller than an equal share of the limit.
        """
        if self.sum_bytes <= self._max_bytes:
            return None
        victim = first_to_go(one for one in self._bytes if one.stage is not Stage.ASKED)
        if victim is None:
            victim = max(self._bytes, key=self._bytes.__getitem__)
        self.forget(victim)
        return victim


class LargeBodies(Generic[C]):
    """One large body is read at a time: its client has the turn, and the other clients wait unread.

    A turn ends with the answer to the body. While others wait it ends early, and its client waits behind them,

    - if fewer than LARGE_BODY_STEP_BYTES of the body came within LARGE_BODY_PAUSE_S, or if the turn is older than
      LARGE_BODY_TURN_S, and another client has bytes in the kernel;
    - if a senior has bytes in the kernel, and the client with the turn is not a senior.

    The next turn goes to a senior if there is one, else to the client with the most bytes in the kernel. So clients
    that stall or drip get no turn while another client sends, however many they are.
    """

    def __init__(self, *, ready_bytes: Callable[[C], int], seniors: Callable[[], Collection[C]]) -> None:
        """ready_bytes: the number of bytes of a client that have arrived and were not read. seniors: see seniors()."""
        self._ready_bytes, self._seniors = ready_bytes, seniors
        self._holder: C | None = None
        self._began = 0.0  # when the holder got its turn
        self._step_at, self._step_bytes = 0.0, 0  # when it last had sent a whole step, and its body up to then
        self.waiting: dict[C, None] = {}  # in the order they came

    def asks(self, connection: C, monotonic: float) -> bool:
        """Must be called after each read from a large body. Returns whether its client may go on; if not, it waits."""
        if self._holder is None:
            self._begin(connection, monotonic)
        if self._holder is connection:
            came_bytes = connection.reader.body_bytes
            if not 0 <= came_bytes - self._step_bytes < LARGE_BODY_STEP_BYTES:
                self._step_at, self._step_bytes = monotonic, came_bytes
            return True
        self.waiting[connection] = None
        connection.waits = True
        return False

    def pass_on(self, monotonic: float) -> tuple[C, ...]:
        """Ends the turn if it must end early. Returns the previous and the next client, () if the turn goes on."""
        holder = self._holder
        if holder is None or not self.waiting or holder.stage is Stage.ASKED:
            return ()
        following = self._next()
        if following is None:
            return ()
        progresses = monotonic - self._step_at < LARGE_BODY_PAUSE_S and monotonic - self._began < LARGE_BODY_TURN_S
        if progresses and not self._goes_before(following, holder):
            return ()
        holder.waits = True
        self._begin(following, monotonic)
        self.waiting[holder] = None
        return holder, following

    def leaves(self, connection: C, monotonic: float) -> C | None:
        """Must be called when a client no longer needs the turn or is closed. Returns the client that gets the turn,
        None if it does not change."""
        self.waiting.pop(connection, None)
        connection.waits = False
        if self._holder is not connection:
            return None
        self._holder = None
        following = self._next() or next(iter(self.waiting), None)
        if following is not None:
            self._begin(following, monotonic)
        return following

    def _begin(self, connection: C, monotonic: float) -> None:
        self.waiting.pop(connection, None)
        self._holder = connection
        self._began = self._step_at = monotonic
        self._step_bytes = connection.reader.body_bytes
        connection.granted(monotonic)

    def _next(self) -> C | None:
        """The next client among those that wait and have bytes in the kernel, None if there is none."""
        ready = {one: count for one in self.waiting if (count := self._ready_bytes(one))}
        seniors = self._seniors()
        return max(ready, key=lambda one: (one in seniors, ready[one]), default=None)

    def _goes_before(self, one: C, other: C) -> bool:
        seniors = self._seniors()
        return one in seniors and other not in seniors
