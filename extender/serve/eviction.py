"""Which connection is evicted if there are too many connections or bytes, and which large body is read next. Pure.

The first to be evicted is the connection that has been waited for longest: for a request, for the rest of one, or for
the client to read. Dripping bytes do not restart that time. A connection whose request waits for an answer is last.

A client that has received a verdict may be an idle kube-scheduler and is never evicted for clients that sent nothing. A
new client may be kube-scheduler, too, and is never evicted for a crowd that has received verdicts. So each of the two
groups has its own share of connections. Within the first group the clients with the most verdicts keep their
connections: a crowd with one verdict each evicts no idle kube-scheduler.
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
    """Returns the connection that is evicted for a new one."""
    newcomers = [one for one in connections if not one.verdicts]
    if len(newcomers) > NEWCOMERS_MIN or len(newcomers) == len(connections):
        return first_to_go(newcomers)
    known = sorted((one for one in connections if one.verdicts), key=lambda one: one.verdicts)
    return first_to_go(known[:-KEPT_MAX] or known)


def place_for_another(connections: Collection[C], silent: Callable[[C], bool]) -> C | None:
    """Returns the same, but spares a request that has arrived and was not read. silent: whether a client has sent
    nothing."""
    crowd = list(connections)
    while (one := gives_its_place(crowd)) is not None:
        if one.stage is not Stage.IDLE or silent(one) or len(crowd) <= len(connections) // 2:
            return one
        crowd.remove(one)
    return None


def seniors(connections: Iterable[C]) -> Iterator[C]:
    """Returns the SENIORS clients that have been connected longest of those with verdicts. connections: all, in the
    order in which they connected."""
    return islice((each for each in connections if each.verdicts), SENIORS)


def is_senior(one: C, connections: Iterable[C]) -> bool:
    return one.verdicts > 0 and any(each is one for each in seniors(connections))


class Held(Generic[C]):
    """The bytes that all connections hold together. Only ConnectionTable.book() and ConnectionTable.close() change
    them."""

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
        self._began = 0.0  # when the client got the turn
        self._step_at, self._step_bytes = 0.0, 0  # when the client last completed a step, and the size of its body then
        self.waiting: dict[C, None] = {}  # in the order of their requests

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
