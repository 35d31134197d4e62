"""The thread that reads what a container runtime tells by itself, and opens it again when it has ended."""

import logging
import math
import threading
from collections.abc import Callable

from agent.cri.base import CriError, Events, Reader
from agent.wire.containers import ContainerEvent
from component.loop import Loop

log = logging.getLogger(__name__)

AGAIN_S = 1.0  # after it has ended


class RuntimeEvents:
    """A Service, started before who asks whether events come: that is EventGenerator, as `events_come`. `take`: in this
    thread, and it must not fail. Where the runtime offers none, they never come, and lists are all there is."""

    name = "runtime events"

    def __init__(self, reader: Reader, take: Callable[[ContainerEvent], None]) -> None:
        self._reader = reader
        self._take = take
        self._lock = threading.Lock()
        self._events: Events | None = None
        self._said = ""  # why they do not come
        # A turn may last for ever: a node where nothing happens is silent.
        self._loop = Loop("runtime-events", self.turn, stuck_after_s=math.inf, unblock=self._cancel)
        # A Service by its loop.
        self.start, self.stop, self.healthy = self._loop.start, self._loop.stop, self._loop.healthy

    def come(self, _monotonic: float) -> bool:
        """Is the runtime listened to now?"""
        with self._lock:
            return self._events is not None

    def turn(self) -> float:
        """Reads until there are no more."""
        try:
            events = self._reader.events()
            with self._lock:
                self._events = events
            if self._loop.stopping:
                events.cancel()
            for event in events:
                self._said = ""
                self._take(event)
            self._tell("the container runtime has ended them")
        except CriError as e:
            self._tell(str(e))
        finally:
            self._cancel()
            with self._lock:
                self._events = None
        return AGAIN_S

    def _cancel(self) -> None:
        with self._lock:
            events = self._events
        if events is not None:
            events.cancel()

    def _tell(self, error: str) -> None:
        """Once for each reason."""
        if error != self._said and not self._loop.stopping:
            log.warning("no events of the container runtime", extra={"error": error})
        self._said = error
