"""All connections: their events in epoll, the bytes that they hold, and the evictions."""

import logging
import select
from collections.abc import Callable

from extender.serve.client import Client
from extender.serve.eviction import Held, LargeBodies, place_for_another, seniors
from extender.verbs.counts import Lost

log = logging.getLogger(__name__)

_IN, _OUT = select.EPOLLIN, select.EPOLLOUT


class ConnectionTable:
    """All connections of the server.

    by_fd: clients in the order in which they connected. lost: called with the cause for each client that is evicted.

    Guarantees: `held` counts bytes of clients in `by_fd` alone, because book() is the only way in and close() removes a
    client from both. _shed() ends, because each of its steps removes one client from `held`.
    """

    def __init__(
        self,
        epoll: select.epoll,
        lost: Callable[[Lost], None],
        *,
        places_max: int,
        held_max_bytes: int,
        monotonic: Callable[[], float],
    ) -> None:
        self.by_fd: dict[int, Client] = {}
        self.held: Held[Client] = Held(held_max_bytes)
        self.large: LargeBodies[Client] = LargeBodies(
            ready_bytes=Client.ready_bytes, seniors=lambda: frozenset(seniors(self.by_fd.values()))
        )
        self._epoll = epoll
        self._lost = lost
        self._places_max = places_max
        self._monotonic = monotonic

    def give(self, client: Client) -> None:
        """Adds a client. Raises OSError if the kernel lacks a resource; then the client is not added."""
        if len(self.by_fd) >= self._places_max:
            self.make(Lost.PLACES)
        self._epoll.register(client.fd, _IN | select.EPOLLRDHUP if client.shakes else _IN)
        self.by_fd[client.fd] = client

    def has(self, client: Client) -> bool:
        return self.by_fd.get(client.fd) is client

    def want(self, client: Client) -> None:
        """Asks epoll for the events that the client waits for."""
        events = (_IN if client.wants_bytes else 0) | (_OUT if client.out else 0)
        if events != client.events and self.has(client):
            client.events = events
            self._epoll.modify(client.fd, events)

    def ask_large(self, client: Client, monotonic: float) -> bool:
        """Requests the turn to read a large body. Returns False if the client must wait for it."""
        if self.large.asks(client, monotonic):
            return True
        self.pass_large(monotonic)
        return not client.waits

    def pass_large(self, monotonic: float) -> None:
        """Ends the turn of a client that makes no progress while others wait."""
        for client in self.large.pass_on(monotonic):
            self.want(client)

    def leave_large(self, client: Client, monotonic: float) -> None:
        if (holder := self.large.leaves(client, monotonic)) is not None:
            self.want(holder)

    def book(self, client: Client) -> None:
        """Counts the bytes that the client holds now, and evicts clients until the sum is within the limit. Ignores a
        client that is not in the table."""
        if self.by_fd.get(client.fd) is client and self.held.update(client):
            self._shed()

    def _shed(self) -> None:
        while (victim := self.held.pop_excess()) is not None:
            log.debug("closed a connection: too many bytes are held", extra={"held_bytes": self.held.sum_bytes})
            self._lost(Lost.BYTES)
            self.close(victim)

    def make(self, cause: Lost) -> bool:
        """Evicts one client for a new connection. Returns whether there was one."""
        victim = place_for_another(self.by_fd.values(), Client.silent)
        if victim is None:
            return False
        log.debug("closed a connection: too many, or no descriptor for another", extra={"cause": cause})
        self._lost(cause)
        self.close(victim)
        return True

    def close(self, client: Client) -> None:
        if self.has(client):
            del self.by_fd[client.fd]
            self.held.forget(client)
            self.leave_large(client, self._monotonic())
            client.close()  # also removes it from epoll
