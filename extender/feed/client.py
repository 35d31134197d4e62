"""One connection of the feed's server. It sends one frame at a time, and makes the next one when the last has left.

So a slow reader gets fewer and larger steps, and nothing queues up for it.
"""

import os
import socket
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Protocol

from extender.config.settings import Settings
from extender.feed import wire
from extender.feed.status import Status
from extender.policy.orders import Orders
from extender.policy.snapshot import NOTHING as NO_SNAPSHOT
from extender.policy.snapshot import Board, Snapshot
from extender.why.journal import Journal

STATUS_EVERY_S = 1.0
BEATS_EVERY_S = 5.0  # kubelets renew every ten
LOOK_EVERY_S = 0.2  # at the decisions: changes within this time are sent together
STEPS_AT_ONCE = 5000  # of the history, in some frames
NOTHING: Iterator[wire.Frame | None] = iter(())


class Published(Protocol):
    """What is sent."""

    @property
    def settings(self) -> Settings: ...
    @property
    def board(self) -> Board: ...
    @property
    def orders(self) -> Orders: ...
    @property
    def journal(self) -> Journal: ...
    def status(self) -> Status: ...
    def beats(self) -> Mapping[str, float]: ...


class FeedClient:
    """One non-blocking connection. left_at: monotonic time when a byte last left, or nothing was left to send; a
    connection is cut when that is too long ago."""

    def __init__(self, connection: socket.socket, published: Published, *, monotonic: float) -> None:
        self.connection = connection
        self.left_at = monotonic
        self._published = published
        self._told: Snapshot = NO_SNAPSHOT  # everything of this was sent
        self._telling: Snapshot = NO_SNAPSHOT
        self._complete = False  # whether a first snapshot was sent
        self._orders = published.orders
        first: list[wire.Frame | None] = [
            wire.Hello(wire.PROTOCOL, os.getpid()),
            wire.Ruled.of(published.settings),
            wire.Said(published.status()),
            wire.Ordered.of(self._orders),
        ]
        self._frames: Iterator[wire.Frame | None] = iter(first)
        self._serial = -1  # the journal's step up to which everything was sent, or is in the frames that follow
        self._remembered_at = monotonic
        self._remembered: Iterator[wire.Frame] = iter(())
        self._out = memoryview(b"")
        self._look_at = monotonic
        self._status_at = monotonic + STATUS_EVERY_S
        self._beats_at = monotonic

    @property
    def blocked(self) -> bool:
        """Returns whether bytes wait that the peer does not accept."""
        return bool(self._out)

    def step(self, monotonic: float) -> bool:
        """Sends at most one frame. Returns whether there may be more at once. Raises OSError when the peer is gone."""
        if not self._out:
            self.left_at = monotonic
            try:
                frame = next(self._frames)
            except StopIteration:
                self._frames = self._next_frames(monotonic)
                return self._frames is not NOTHING
            if frame is None:
                return True
            if isinstance(frame, wire.Complete):
                self._told = self._telling
                self._complete = True
            self._out = memoryview(wire.write(frame))
        try:
            sent = self.connection.send(self._out)
        except BlockingIOError:
            return False
        self._out = self._out[sent:]
        self.left_at = monotonic
        return not self._out

    def _next_frames(self, monotonic: float) -> Iterator[wire.Frame | None]:
        if monotonic >= self._status_at:
            self._status_at = monotonic + STATUS_EVERY_S
            return iter([wire.Said(self._published.status())])
        if monotonic < self._look_at:
            return self._next_remembered(monotonic)
        self._look_at = monotonic + LOOK_EVERY_S
        orders = self._published.orders
        if orders is not self._orders:
            self._orders = orders
            return iter([wire.Ordered.of(orders)])
        snapshot = self._published.board.snapshot
        if self._published.board.filled and (snapshot is not self._told or not self._complete):
            self._telling = snapshot
            frames = wire.changes(self._told, snapshot)
            # The first snapshot is sent at once, and not up to a second later.
            return frames if self._complete else chain(frames, [wire.Said(self._published.status())])
        if self._complete and monotonic >= self._beats_at:
            self._beats_at = monotonic + BEATS_EVERY_S
            return wire.beats(self._published.beats())
        return self._next_remembered(monotonic)

    def _next_remembered(self, monotonic: float) -> Iterator[wire.Frame | None]:
        """Returns one frame of the history. The history may have megabytes, and decisions come first."""
        frame = next(self._remembered, None)
        if frame is None and self._complete and monotonic >= self._remembered_at:
            self._remembered_at = monotonic + LOOK_EVERY_S
            steps = self._published.journal.since(self._serial, STEPS_AT_ONCE)
            if steps is None:
                self._serial, steps = self._published.journal.dump()
            else:
                self._serial += len(steps)
            self._remembered = wire.remembered(steps)
            frame = next(self._remembered, None)
        return NOTHING if frame is None else iter([frame])
