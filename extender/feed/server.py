"""The sending end of the feed: one thread for all clients. Nothing here may make a filter request wait.

It polls for the newest snapshot five times a second while there is a client, and nothing calls it: so the deciding
thread does not depend on it. It releases the interpreter after each frame.
"""

import logging
import math
import os
import selectors
import socket
import time
from collections.abc import Callable
from pathlib import Path

from component.loop import LOG_AGAIN_S, Loop
from extender.feed.client import LOOK_EVERY_S, FeedClient, Published
from extender.feed.socket_path import SocketPath, peer, trusted
from extender.feed.wire import FeedError

log = logging.getLogger(__name__)

FOLLOWERS_MAX = 4
CLAIM_EVERY_S = 2.0  # while another process has the path
LOOK_AT_PLACE_EVERY_S = 5.0
YIELD_S = 0.001  # between two frames: a filter call that waits for the interpreter gets it
STALLED_AFTER_S = 10.0
STUCK_AFTER_S = 30.0


class FeedServer:
    """A Service. A path that cannot be used is logged and tried again: kube-scheduler is answered without a feed."""

    name = "feed"

    def __init__(self, path: Path, published: Published, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._place = SocketPath(path)
        self._published = published
        self._monotonic = monotonic
        self._followers: dict[socket.socket, FeedClient] = {}
        self._selector: selectors.BaseSelector | None = None  # made by the thread itself
        self._woken: int | None = None  # an eventfd, readable once stop() was called
        self._complained = ""
        self._refused_at: dict[str, float] = {}  # when each cause was last logged
        self._loop = Loop(
            "feed",
            self.turn,
            stuck_after_s=STUCK_AFTER_S,
            unblock=self._unblock,
            at_end=self._close,
            monotonic=monotonic,
        )
        self.start, self.stop, self.healthy = self._loop.start, self._loop.stop, self._loop.healthy

    def turn(self) -> float:
        """Waits once for something to do, and does it. Returns the seconds until the next turn."""
        selector = self._selector or self._open()
        if self._place.listener is None and not self._claim(selector):
            return CLAIM_EVERY_S
        more = self._step_all()
        wait_s = YIELD_S if more else LOOK_EVERY_S if self._followers else LOOK_AT_PLACE_EVERY_S
        self._loop.progressed(wait_s)
        if self._loop.stopping:
            return 0.0
        found = selector.select(wait_s)
        pause_s = 0.0
        for key, _ in found:
            if key.fileobj is self._place.listener:
                pause_s = self._accept(selector, self._place.listener)
            elif isinstance(key.fileobj, socket.socket):
                self._heard(key.fileobj)
        if not found and not self._followers and not self._place.ours():
            self._place.close(selector.unregister)
        return pause_s

    def _open(self) -> selectors.BaseSelector:
        self._selector = selectors.DefaultSelector()
        self._woken = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._selector.register(self._woken, selectors.EVENT_READ)
        return self._selector

    def _unblock(self) -> None:
        if self._woken is not None:
            os.eventfd_write(self._woken, 1)

    def _claim(self, selector: selectors.BaseSelector) -> bool:
        try:
            selector.register(self._place.claim(), selectors.EVENT_READ)
        except FeedError as e:
            if str(e) != self._complained:
                self._complained = str(e)
                log.error(
                    "the feed's path cannot be used; the status API gets no data", extra={"error": self._complained}
                )
            return False
        self._complained = ""
        log.info("feed", extra={"path": str(self._place.path)})
        return True

    def _accept(self, selector: selectors.BaseSelector, listener: socket.socket) -> float:
        """Accepts one client. Returns the seconds to pause: without a descriptor the client stays in the backlog, and
        epoll would report it again at once."""
        try:
            connection, _ = listener.accept()
        except OSError:
            return LOOK_EVERY_S
        pid, uid = peer(connection)
        if not trusted(uid) or len(self._followers) >= FOLLOWERS_MAX:
            connection.close()
            self._refused("another user" if not trusted(uid) else "too many follow", pid, uid)
            return 0.0
        connection.setblocking(False)
        selector.register(connection, selectors.EVENT_READ)
        self._followers[connection] = FeedClient(connection, self._published, monotonic=self._monotonic())
        return 0.0

    def _refused(self, cause: str, pid: int, uid: int) -> None:
        """Logs a refusal at intervals: a refused client tries again twice a second."""
        monotonic = self._monotonic()
        if monotonic - self._refused_at.get(cause, -math.inf) >= LOG_AGAIN_S:
            self._refused_at[cause] = monotonic
            log.warning("connection to the feed refused", extra={"cause": cause, "peer_pid": pid, "peer_uid": uid})

    def _heard(self, connection: socket.socket) -> None:
        """Handles bytes of a client. Clients send nothing, so it has ended, or is no readygate process."""
        self._drop(connection)

    def _step_all(self) -> bool:
        """Sends one frame to each client. Returns whether there is more to send at once."""
        more = False
        for connection, follower in list(self._followers.items()):
            try:
                more |= follower.step(self._monotonic())
            except OSError:
                self._drop(connection)
                continue
            if follower.blocked and self._monotonic() - follower.left_at > STALLED_AFTER_S:
                log.warning(
                    "closed the connection of a feed client that does not read", extra={"silent_s": STALLED_AFTER_S}
                )
                self._drop(connection)
        return more

    def _drop(self, connection: socket.socket) -> None:
        if self._followers.pop(connection, None) is not None and self._selector is not None:
            self._selector.unregister(connection)
            connection.close()

    def _close(self) -> None:
        for connection in list(self._followers):
            self._drop(connection)
        self._place.close()
        if self._selector is not None:
            self._selector.close()
