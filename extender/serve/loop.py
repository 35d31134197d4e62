"""The serving thread: one epoll and non-blocking sockets. The other modules of this room decide everything else.

A call of kube-scheduler costs three system calls: epoll_wait, recv, send. Connections have no timers: once a second the
loop looks for overdue ones.
"""

import logging
import math
import select
import socket
import time
from collections.abc import Callable, Sequence
from email.utils import formatdate
from http import HTTPStatus

from extender.serve import limits
from extender.serve.accept import Acceptor
from extender.serve.client import Client
from extender.serve.connection import Stage
from extender.serve.connection_table import ConnectionTable
from extender.serve.error_log import ErrorLog
from extender.serve.eviction import is_senior, seniors
from extender.serve.fairness import Fairness, Readable, cost_s
from extender.serve.http import CONTINUE, Heads, Request, head_of, usual_head
from extender.serve.routes import FAILED, Routes
from extender.serve.stream import Stream
from extender.verbs.reply import Reply

log = logging.getLogger(__name__)

LOOK_S = 1.0  # how often the loop looks for overdue connections
DRAIN_LOOK_S = 0.05
# A loop that does not come back for so long was frozen, with the threads that watch the cluster. They must first read
# what piled up, or the next answers would be outdated. kube-scheduler waits longer than that.
FROZEN_S = 3.0
THAW_S = 0.25
_IN = select.EPOLLIN
_BROKEN = select.EPOLLERR | select.EPOLLHUP
_GONE = _BROKEN | select.EPOLLRDHUP
_ASKED, _IDLE = Stage.ASKED, Stage.IDLE


class Loop:
    """Serves until it is drained. All methods are called from its thread: by run() and by its chores.

    chores: called at the start, at the time that it returned last (monotonic clock), and after each callback of a
    watched descriptor. stream: makes the TLS end of a connection, None = no TLS.
    """

    def __init__(
        self,
        routes: Routes,
        *,
        chores: Callable[[float], float],
        stream: Callable[[], Stream] | None = None,
        connections_max: int = limits.CONNECTIONS_MAX,
        held_max_bytes: int = limits.HELD_MAX_BYTES,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._routes = routes
        self._chores = chores
        self._stream = stream
        self._connections_max = connections_max
        self._monotonic = monotonic
        self._sleep = sleep
        self._epoll = select.epoll()
        self._faults = ErrorLog(monotonic)
        self._places = ConnectionTable(
            self._epoll,
            routes.lost,
            places_max=connections_max,
            held_max_bytes=held_max_bytes,
            monotonic=monotonic,
        )
        # local names, because each call looks them up
        self._clients, self._held = self._places.by_fd, self._places.held
        self._entrance = Acceptor(self._epoll, self._welcome, self._places.make, routes.lost, self._faults)
        self._watched: dict[int, Callable[[], None]] = {}
        self._turns: Fairness[Client] = Fairness(connections_max)
        self._ready, self._shaking = Readable(), Readable()
        self._buffer = bytearray(limits.RECEIVE_BYTES)
        self._view = memoryview(self._buffer)
        self._heads = Heads()
        self._date = self._usual_head = b""
        self._look_at = 0.0
        self._frozen_at = math.inf
        self._drained_at: float | None = None
        self._idle_until = 0.0

    def watch(self, fd: int, readable: Callable[[], None]) -> None:
        """Calls `readable` whenever the descriptor can be read."""
        self._watched[fd] = readable
        self._epoll.register(fd, _IN)

    def forget(self, fd: int) -> None:
        if self._watched.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def open(self, listeners: Sequence[socket.socket]) -> None:
        """Accepts connections of these non-blocking listeners from now on."""
        self._entrance.open(listeners)

    def drain(self, *, idle_s: float, limit_s: float) -> None:
        """Stops accepting connections; they are refused if no other process has the listeners. Answers from now on end
        their connections. Ends run() when no connection is left, at the latest after limit_s. A connection without a
        request stays open for idle_s, so that a request that is just arriving is not lost."""
        monotonic = self._monotonic()
        self._entrance.close(monotonic)
        self._idle_until = min(self._idle_until, monotonic + idle_s) if self.draining else monotonic + idle_s
        self._drained_at = min(self._drained_at or monotonic + limit_s, monotonic + limit_s)
        self._look_at = 0.0

    @property
    def draining(self) -> bool:
        return self._drained_at is not None

    def run(self) -> None:
        chores_at = 0.0
        try:
            while True:
                monotonic = self._monotonic()
                if monotonic >= chores_at:
                    chores_at = self._chores(monotonic)
                if monotonic >= self._look_at:
                    self._look(monotonic)
                    if self._drained_at is not None and (not self._clients or monotonic >= self._drained_at):
                        return
                wait_s = 0.0 if self._turns.waiting else max(0.0, min(chores_at, self._look_at) - monotonic)
                if self._turn(wait_s):
                    chores_at = 0.0
        finally:
            for client in list(self._clients.values()):
                self._places.close(client)
            self._epoll.close()

    def _turn(self, wait_s: float) -> bool:
        """Reads and answers once. Returns whether a watched descriptor was ready."""
        events = self._epoll.poll(wait_s, limits.EVENTS_MAX)
        monotonic = self._monotonic()
        if monotonic >= self._frozen_at:
            self._sleep(THAW_S)
            monotonic = self._monotonic()
        self._frozen_at = monotonic + FROZEN_S
        if len(events) == 1 and not self._turns.waiting:  # the usual case
            fd, event = events[0]
            client = self._clients.get(fd)
            if client is not None:
                self._take(client, event, monotonic)
                return False
        first: frozenset[int] = frozenset()
        if len(events) == limits.EVENTS_MAX:
            first = frozenset(one.fd for one in seniors(self._clients.values()))
            events = self._chosen(first)
        asked: list[Client] = []
        others: list[int] = []
        shaking: list[tuple[Client, int]] = []
        for fd, event in events:
            client = self._clients.get(fd)
            if client is None:
                others.append(fd)
            elif client.shakes:
                shaking.append((client, event))
            elif client.queued:
                self._guarded(self._disturb, client, event)
            elif self._guarded(self._serve, client, event, monotonic) or (
                fd in first and self._guarded(self._read_on, client, monotonic)
            ):
                asked.append(client)
        if asked or self._turns.waiting:
            self._answer_in_turn(asked, monotonic)
        all_shaken = not shaking or self._shake(shaking)
        return bool(others) and self._serve_others(others, monotonic, may_come=all_shaken)

    def _chosen(self, first: frozenset[int]) -> list[tuple[int, int]]:
        """Returns the ready connections of this turn. Handshakes are all included: they have their own time limit."""
        events = self._epoll.poll(0, self._connections_max + limits.EVENTS_MAX)
        shaking = {fd for fd, _ in events if (client := self._clients.get(fd)) is not None and client.shakes}
        others = [event for event in events if event[0] not in shaking]
        first |= self._watched.keys()
        return [
            *self._ready.chosen(others, first.__contains__, limits.EVENTS_MAX),
            *self._shaking.chosen([event for event in events if event[0] in shaking], self._greeted, len(events)),
        ]

    def _greeted(self, fd: int) -> bool:
        """Returns whether the client goes on with a handshake. A crowd that only repeats its first message does not
        count."""
        return self._clients[fd].greeted

    def _shake(self, clients: list[tuple[Client, int]]) -> bool:
        """Continues as many handshakes as fit into a slice, because one costs ten times as much as an answer. Returns
        whether all were continued; if not, no connection is accepted, because it could evict one that was not read."""
        ends = self._monotonic() + limits.SLICE_S
        for number, (client, event) in enumerate(clients, 1):
            monotonic = self._monotonic()
            if event & _GONE:  # it left within the handshake: not worth a signature
                self._places.close(client)
            elif self._guarded(self._serve, client, event, monotonic):
                self._queue(client, monotonic)
            if self._monotonic() >= ends:
                self._shaking.left([client.fd for client, _ in clients[number:]])
                return number == len(clients)
        return True

    def _serve_others(self, fds: list[int], monotonic: float, *, may_come: bool) -> bool:
        """Serves the other descriptors. Last in a turn, because a new connection may get the descriptor of one that was
        closed in this turn."""
        watched = False
        for fd in fds:
            if fd in self._entrance:
                if may_come and not self._entrance.accept(fd, monotonic):
                    self._look_at = min(self._look_at, monotonic + limits.NO_DESCRIPTORS_S)
            elif fd in self._watched:
                self._watched[fd]()
                watched = True
        return watched

    def _answer_in_turn(self, asked: list[Client], monotonic: float) -> None:
        for client in asked:
            self._queue(client, monotonic)
        monotonic = self._monotonic()
        ends = monotonic + limits.SLICE_S
        while self._turns.waiting and monotonic < ends:
            client = self._turns.take()
            client.queued = False
            if self._places.has(client):
                self._guarded(self._answer, client, monotonic)
                began, monotonic = monotonic, self._monotonic()
                client.charged_until = self._turns.charged(client.charged_until, monotonic - began, monotonic)

    def _queue(self, client: Client, monotonic: float) -> None:
        client.queued = True
        cost = cost_s(client.requests[0].body if client.requests else b"")
        senior = len(self._turns.waiting) > limits.FEW and is_senior(client, self._clients.values())
        self._turns.put(client, cost, monotonic, client.charged_until, senior=senior)
        self._places.book(client)

    # One connection.

    def _guarded(self, do: Callable[..., bool | None], client: Client, *details: float) -> bool | None:
        """Limits a bug that one client triggers to that client. Does nothing for a client that was closed earlier in
        this turn."""
        try:
            return do(client, *details) if self._clients.get(client.fd) is client else None
        except Exception:
            if self._faults.may_tell("a connection failed"):
                log.exception("a connection failed")
            self._places.close(client)
            return None

    def _take(self, client: Client, event: int, monotonic: float) -> None:
        """_guarded() for the only ready client."""
        try:
            if self._serve(client, event, monotonic):
                self._answer(client, monotonic)
        except Exception:
            if self._faults.may_tell("a connection failed"):
                log.exception("a connection failed")
            self._places.close(client)

    def _welcome(self, sock: socket.socket, monotonic: float) -> None:
        """Adds a new connection. Raises any error of the kernel or OpenSSL; then the connection is not added."""
        self._places.give(Client(sock, self._stream() if self._stream else None, monotonic, self._heads))

    def _disturb(self, client: Client, event: int) -> None:
        """Handles an event of a client whose request waits. Bytes that it sends stay in the kernel for now."""
        if event & _BROKEN:
            self._places.close(client)
        else:
            self._places.want(client)

    def _serve(self, client: Client, event: int, monotonic: float) -> bool:
        """Handles an event of a client. Returns whether its request can be answered now."""
        if event & _IN:
            if not client.receive_some(self._view, monotonic):
                self._places.close(client)
            elif client.stage is _ASKED:
                return True
            elif not client.asked:
                self._received_part(client, monotonic)
        elif event & _BROKEN:
            self._places.close(client)
        else:
            self._send(client, monotonic)
            return client.stage is _ASKED and self._places.has(client)
        return False

    def _read_on(self, client: Client, monotonic: float) -> bool:
        """Reads the rest of a body, as far as it has arrived. Returns whether the request can be answered now."""
        for _ in range(limits.RECEIVES_MAX - 1):
            if client.stage is not Stage.BODY or not client.wants_bytes or not self._places.has(client):
                break
            if self._serve(client, _IN, monotonic):
                return True
        return False

    def _received_part(self, client: Client, monotonic: float) -> None:
        """Handles bytes that end no request, or the end of the stream."""
        if client.ended or (client.gone and (client.finished or not client.out)):
            self._places.close(client)
        else:
            if client.large and not self._places.ask_large(client, monotonic):
                self._look_at = min(self._look_at, monotonic + limits.LARGE_BODY_LOOK_S)
            if client.expects:
                client.expects = False
                client.put(CONTINUE)
                self._send(client, monotonic)
            self._places.book(client)
            self._places.want(client)

    def _answer(self, client: Client, monotonic: float) -> None:
        asked = client.requests.popleft() if client.requests else client.next()
        if asked is None:
            return
        reply: Reply | None = None
        if isinstance(asked, Request):
            large = len(asked.body) > limits.LARGE_BODY_BYTES
            try:
                answer, verdict, reply = self._routes.answer(asked, may_ask=client.may_ask)
            except Exception:
                if self._faults.may_tell("a request failed"):
                    log.exception("a request failed")
                answer, verdict = FAILED, False
            keep = asked.keep and self._drained_at is None
            client.verdicts += verdict
            body = b"" if asked.method == b"HEAD" else answer.body
        else:
            large = verdict = False
            answer, keep = self._routes.refuse(asked), False
            body = answer.body
        if large or not keep:
            self._places.leave_large(client, monotonic)
        head = self._usual_head % len(body) if verdict and keep else head_of(answer, self._date, keep=keep)
        took_s = 0.0 if reply is None else self._monotonic() - monotonic
        rests = client.send_whole(head, body, monotonic)
        if reply is not None:
            self._account(reply, took_s)
        if rests and keep and not self._held.sum_bytes:
            return
        del asked, answer, body, reply
        if not keep:
            client.end()
        self._send(client, monotonic)
        if client.stage is _ASKED and self._places.has(client):
            self._queue(client, monotonic)

    def _account(self, reply: Reply, took_s: float) -> None:
        """Counts and records a reply after it was sent, while kube-scheduler continues."""
        try:
            self._routes.account(reply, took_s)
        except Exception:
            if self._faults.may_tell("an answer was not counted"):
                log.exception("an answer was not counted")

    def _send(self, client: Client, monotonic: float) -> None:
        if not client.send_some(monotonic):
            self._places.close(client)
            return
        out = client.out
        if client.finished:
            self._finish(client)
        elif out or client.events != _IN or client.waits:
            self._places.want(client)
        if out or client.stage is not _IDLE or self._held.sum_bytes:
            self._places.book(client)

    def _finish(self, client: Client) -> None:
        """Ends a connection whose answers are sent or queued. A close with unread bytes could discard the answers. So
        the client is notified first, and its bytes are read until it closes."""
        if client.gone or not client.say_end():
            self._places.close(client)
        else:
            self._places.want(client)

    # Once a second.

    def _look(self, monotonic: float) -> None:
        self._date = formatdate(usegmt=True).encode()
        self._usual_head = usual_head(self._date)
        self._entrance.wake()
        for client in [one for one in self._clients.values() if one.deadline <= monotonic]:
            self._guarded(self._overdue, client, monotonic)
        self._places.pass_large(monotonic)
        soon_s = DRAIN_LOOK_S if self.draining else LOOK_S
        self._look_at = monotonic + (limits.LARGE_BODY_LOOK_S if self._places.large.waiting else soon_s)
        if self.draining and monotonic >= self._idle_until:
            for client in [one for one in self._clients.values() if one.stage is _IDLE and one.silent()]:
                self._places.close(client)

    def _overdue(self, client: Client, monotonic: float) -> None:
        if client.stage is Stage.BODY:
            text = "other large bodies are being read" if client.waits else "the body did not come in time"
            client.fail(HTTPStatus.REQUEST_TIMEOUT, text, monotonic)
            self._answer(client, monotonic)
        else:
            self._places.close(client)
