"""The receiving end of the feed: a Source whose board and status are copies of another process's.

While the feed is not connected the last copies stay, and why_not() reports it. They become stale as those of the other
process do, when the API server has not answered for longer than the limit.
"""

import contextlib
import logging
import random as random_module
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from component.backoff import Backoff
from component.loop import Loop
from extender.config.settings import Settings
from extender.feed import wire
from extender.feed.socket_path import address_of, peer, trusted
from extender.feed.status import Status
from extender.feed.wire import FeedError
from extender.policy.decision import Decision, GateState
from extender.policy.exempt import Rules, rules_of
from extender.policy.gates import classes_of
from extender.policy.orders import Orders
from extender.policy.pods import Classes
from extender.policy.reasons import OPEN
from extender.policy.snapshot import Board
from extender.verbs.counts import Counts, Lately
from extender.verbs.source import Sync
from extender.why.entries import Entry
from extender.why.journal import Journal

log = logging.getLogger(__name__)

SILENT_AFTER_S = 5.0  # the other end sends something each second
RECEIVE_BYTES = 256 * 1024
STUCK_AFTER_S = 30.0
LOGGED_MAX = 32
AGAIN = Backoff(first_s=0.05, limit_s=0.5, jitter=0.2)


class Replica:
    """A View and a Service with one thread, which calls turn().

    settings: the own ones until the other process has sent its own; then those, from the first decisions made by them.
    counts: of requests answered here. calls: of requests that the other process answers. orders: as the other process
    has read them.
    """

    name = "replica"

    def __init__(
        self,
        path: Path,
        settings: Settings,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        random: Callable[[], float] = random_module.random,
    ) -> None:
        self._rule(settings)
        self.counts = Counts()
        self.calls = Lately()
        self.attempts = None  # a request here is no attempt of kube-scheduler's
        self.board = Board(lambda _: None)  # a refusal here causes no kick: the other process sends those
        self.monotonic = monotonic
        self._random = random
        self._path = path
        self._connection: socket.socket | None = None
        self._reader = wire.Reader()
        self.orders = Orders()
        self.journal = Journal(steps_max=0)
        self._next: dict[
            str, dict[str, Decision]
        ] = {}  # by gate, the decisions that Complete turns into the next snapshot
        self._changed: set[str] = set()  # gates for which these differ from the newest snapshot
        self._ruled: Settings | None = None  # its settings, if they differ from those of the newest
        self._status: Status | None = None
        self._beats: dict[str, float] = {}
        self._fault: str | None = "not connected yet"  # None while connected
        # Until a connection has lasted for SILENT_AFTER_S: each one costs the other process a whole snapshot.
        self._again = AGAIN
        self._logged: set[object] = set()  # faults, and process ids that were followed
        self._since = monotonic()  # of this connection
        self._loop = Loop(
            "replica",
            self.turn,
            stuck_after_s=STUCK_AFTER_S,
            unblock=self._unblock,
            at_end=self._disconnect,
            monotonic=monotonic,
        )
        self.start, self.stop, self.healthy = self._loop.start, self._loop.stop, self._loop.healthy

    # ---- for the status API

    @property
    def connected(self) -> bool:
        """Returns whether the other process is connected and not silent."""
        return self._fault is None

    def status(self) -> Status | None:
        return self._status

    def beats(self) -> Mapping[str, float]:
        return self._beats

    def sync(self) -> Sync:
        status = self._status
        if status is None or not self.board.filled or status.sync == Sync.NOT_SYNCED.name:
            return Sync.NOT_SYNCED
        stale = status.sync != Sync.OK.name or status.stale(self.monotonic(), self.settings.stale_limit_seconds)
        return Sync.STALE if stale else Sync.OK

    def why_not(self) -> str:
        if self._fault is not None:
            return f"readygate: the extender sends nothing over {self._path}: {self._fault}"
        if self._status is not None and self._status.stopping:
            return "stopping"
        return self.sync().value

    def unhealthy(self) -> list[str]:
        return [] if self.healthy(self.monotonic()) else [self.name]

    # ---- the thread

    def turn(self) -> float:
        """Connects, or reads what has come. Returns the seconds until the next turn."""
        try:
            if self._connection is None:
                self._connection = self._connect()
            data = self._connection.recv(RECEIVE_BYTES)
            if not data:
                raise FeedError("it has ended")
            for frame in self._reader.feed(data):
                self._take(frame)
        except (OSError, FeedError) as e:
            self._failed(e)
            pause_s, self._again = self._again.next(self._random)
            return pause_s
        return 0.0

    def _connect(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(SILENT_AFTER_S)
            with address_of(self._path) as address:
                connection.connect(address)
            _, uid = peer(connection)
            if not trusted(uid):
                raise FeedError(f"another user, {uid}, has taken the path")
        except (OSError, FeedError):
            connection.close()
            raise
        self._reader, self._next, self._ruled = wire.Reader(), {}, None
        self._changed = set(self.board.snapshot.gates)
        self._since = self.monotonic()
        return connection

    def _take(self, frame: wire.Frame) -> None:
        match frame:
            case wire.Hello(protocol=protocol, pid=pid):
                if protocol != wire.PROTOCOL:
                    raise FeedError(wire.OTHER_RELEASE)
                if self._is_news(pid):
                    log.info("following", extra={"peer_pid": pid, "path": str(self._path)})
            case wire.Ruled(settings=settings):
                if self.board.filled:
                    self._ruled = settings
                else:
                    self._rule(settings)
            case wire.Said(status=status):
                self._status = status
                self.calls.note(status.counts, self.monotonic())
                self._fault = None
                if self.monotonic() - self._since >= SILENT_AFTER_S:
                    self._again = self._again.reset()
                    self._logged.clear()
            case wire.Ordered():
                self.orders = frame.orders()
            case wire.Changes(gate=gate, rows=rows, gone=gone):
                decisions = self._next.setdefault(gate, {})
                decisions.update((row.node, row.decision()) for row in rows)
                for name in gone:
                    decisions.pop(name, None)
                self._changed.add(gate)
            case wire.Complete(gates=gates, cap=cap):
                self._swap(gates, cap)
            case wire.Beats(beats=beats):
                self._beats = {**self._beats, **beats}
            case wire.Remembered(entries=entries):
                self._remember(entries)

    def _rule(self, settings: Settings) -> None:
        self.settings = settings
        self.exemptions: Rules = rules_of(settings)
        self.classes: Classes = classes_of(settings)  # claims are not read here, so every one counts

    def _remember(self, entries: Sequence[Entry]) -> None:
        """Applies entries. Until the first Reset of a connection, the history of the last connection stays."""
        try:
            for entry in entries:
                self.journal.write(entry)
        except ValueError as e:
            raise FeedError(f"it does not follow the previous frames: {e}") from e

    def _swap(self, gates: Sequence[wire.Gate], cap: int | None) -> None:
        """Makes all of _next the new snapshot; _next stays for later changes."""
        before = self.board.snapshot
        states = {gate.name: self._state(gate, before.gates.get(gate.name)) for gate in gates}
        nodes = before.nodes
        if self._changed:
            there = frozenset(name for state in states.values() for name in state.decisions)
            nodes = nodes if there == nodes else there
            self._beats = {name: beat for name, beat in self._beats.items() if name in nodes}
        self._changed = set()
        if self._ruled is not None:
            self._rule(self._ruled)
            self._ruled = None
        self.board.swap(before.after(states, nodes, cap))

    def _state(self, gate: wire.Gate, before: GateState | None) -> GateState:
        if before is not None and gate.name not in self._changed:
            decisions, closed = before.decisions, before.closed
        else:
            decisions = dict(self._next.get(gate.name, {}))
            closed = {name: decision.reason for name, decision in decisions.items() if decision.reason != OPEN}
        return GateState(gate.name, decisions, closed, gate.armed, gate.severity, gate.cap, gate.storms)

    def _failed(self, error: OSError | FeedError) -> None:
        self._disconnect()
        said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        fault = f"silent for {SILENT_AFTER_S:g} s" if isinstance(error, TimeoutError) else said
        if self._loop.stopping:
            return
        self._fault = fault
        if self._is_news(fault):
            log.warning("the feed is not connected", extra={"path": str(self._path), "error": fault})

    def _is_news(self, what: object) -> bool:
        known = what in self._logged
        if len(self._logged) >= LOGGED_MAX:
            self._logged.clear()
        self._logged.add(what)
        return not known

    def _unblock(self) -> None:
        connection = self._connection
        if connection is not None:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
