"""The thread that writes Events. Mirrors recordToSink of client-go/tools/record/event.go."""

import logging
import math
import queue
import random as random_module
import time
from collections.abc import Callable
from typing import Protocol

from agent.kubelet.events.correlate import Correlator, Write
from agent.kubelet.events.event import Event
from agent.processes.rate_limit import RateLimit
from agent.wire.event import InvolvedObject, count_event, create_event, namespace_of
from component.loop import Loop
from kube import paths
from kube.errors import (
    AlreadyExists,
    CredentialsInvalid,
    Forbidden,
    KubeError,
    NotFound,
    ServerError,
    TooManyRequests,
    Unreachable,
)

log = logging.getLogger(__name__)

QUEUED_MAX = 1000  # maxQueuedEvents
TRIES = 12  # maxTriesPerEvent
PAUSE_S = 10.0  # defaultSleepDuration
PER_SECOND, BURST = 50, 100  # eventRecordQPS, eventBurst
LOG_EVERY_S = 600.0
WRITE_S = 10.0
REMEDY = "allow the node's user the verbs create and patch on events, as the ClusterRole system:node does"
# Another try may go better; anything else will not, and is given up.
PASSING = (Unreachable, ServerError, TooManyRequests, CredentialsInvalid)


class EventClient(Protocol):
    """The part of kube.client.Client that is used."""

    def create(self, path: str, body: bytes, *, deadline_s: float | None = None) -> bytes: ...
    def patch(self, path: str, body: bytes, *, deadline_s: float | None = None) -> bytes: ...
    def close(self) -> None: ...


class Recorder:
    """A Service with one thread; record() is called from any. What comes while a thousand wait is dropped, and so is
    what waits when it is stopped. host: the node that tells."""

    name = "events"

    def __init__(
        self,
        client: EventClient,
        host: str,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        random: Callable[[], float] = random_module.random,
    ) -> None:
        self._client = client
        self._host = host
        self._monotonic = monotonic
        self._wall = wall
        self._random = random
        self._inbox: queue.Queue[Event] = queue.Queue(QUEUED_MAX)
        self._correlator = Correlator()
        self._rate = RateLimit(BURST, 1 / PER_SECOND)
        self._lines = RateLimit(1, LOG_EVERY_S)
        self._write: Write | None = None
        self._tries = 0
        self.dropped = 0
        self._loop = Loop(
            "events",
            self.turn,
            stuck_after_s=math.inf,  # a restart would not make the API server answer
            first_pause_s=math.inf,
            unblock=client.close,
            monotonic=monotonic,
        )
        self.start, self.stop, self.healthy = self._loop.start, self._loop.stop, self._loop.healthy

    def record(self, event: Event) -> None:
        """Never waits."""
        try:
            self._inbox.put_nowait(event)
        except queue.Full:
            self.dropped += 1
            return
        self._loop.wake()

    def turn(self) -> float:
        """Writes one at most; seconds until the next turn."""
        write = self._write = self._write or self._next()
        if write is None:
            return math.inf if self._inbox.empty() else 0.0
        monotonic = self._monotonic()
        if wait_s := self._rate.wait_s(monotonic):
            return wait_s
        self._rate.take(monotonic)
        pause_s = self._try(write)
        if pause_s is not None:
            return pause_s
        self._write, self._tries = None, 0
        return 0.0

    def _next(self) -> Write | None:
        try:
            event = self._inbox.get_nowait()
        except queue.Empty:
            return None
        return self._correlator.correlate(event, monotonic=self._monotonic(), wall=self._wall())

    def _try(self, write: Write) -> float | None:
        """Seconds until another try, None if there is nothing more to do for it."""
        try:
            self._send(write)
        except PASSING as e:
            self._tries += 1
            if self._tries < TRIES and not self._loop.stopping:
                return PAUSE_S * (self._random() if self._tries == 1 else 1.0)
            self._lost(e)
        except AlreadyExists:
            pass  # by a try whose answer was lost
        except KubeError as e:
            self._lost(e)
        return None

    def _send(self, write: Write) -> None:
        event, about = write.event, write.event.about
        involved = InvolvedObject(about.kind, about.name, "v1", about.namespace, about.uid, about.field_path)
        namespace = namespace_of(involved)
        if write.count > 1:
            body = count_event(event.message, write.count, write.last_at)
            try:
                self._client.patch(paths.event(namespace, write.name), body, deadline_s=WRITE_S)
            except NotFound:  # the API server forgets Events after an hour
                pass
            else:
                return
        body = create_event(
            involved,
            name=write.name,
            type_=event.type,
            reason=event.reason,
            message=event.message,
            count=write.count,
            first_at=write.first_at,
            last_at=write.last_at,
            host=self._host,
        )
        self._client.create(paths.events(namespace), body, deadline_s=WRITE_S)

    def _lost(self, error: Exception) -> None:
        self.dropped += 1
        if not self._loop.stopping and self._lines.take(self._monotonic()):
            text = f"{error}; {REMEDY}" if isinstance(error, Forbidden) else str(error)
            facts = {"cause": type(error).__name__, "error": text, "more_like_it": self._lines.left_out}
            log.warning("event not written", extra=facts)
