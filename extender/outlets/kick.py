"""The kick: one Node write after the release of a node that was refused to some pod.

kube-scheduler retries a refused pod at an event. The event that heals a node wakes the scheduler and our watch at the
same time; if the scheduler asks before our cache has flipped, the pod is refused again and nothing wakes it for five
minutes. So when the cache has flipped we make an event of our own: an annotation of the Node with a value it never had.
Guaranteed: (1) after the flip, (2) never without a refusal before, but for one at the start, (3) once more a little
later, for other replicas, (4) repeated until it was taken or the Node is gone, (5) never in the request path.
"""

import logging
import math
import queue
import random as random_module
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Protocol

import msgspec

from component.backoff import Backoff
from component.loop import Loop
from kube import paths
from kube.errors import CredentialsInvalid, KubeError, NotFound
from kube.media_types import MERGE_PATCH

log = logging.getLogger(__name__)

ANNOTATION_KICK = "readygate.dev/kick"  # of a Node; always with a new value, or it would be no event
KICK_DEADLINE_S = 5.0  # what a client of the API server may wait; the schedule tries again
STUCK_AFTER_S = KICK_DEADLINE_S + 30.0  # resolving a name and credentials of a plugin have no deadline of ours
RETRY = Backoff(first_s=0.2, limit_s=10.0, jitter=1.0)


class Patches(Protocol):
    """The part of kube.client.Client that is used here."""

    def patch(
        self, path: str, body: bytes, *, content_type: str = MERGE_PATCH, deadline_s: float | None = None
    ) -> bytes: ...


@dataclass(frozen=True, slots=True)
class _Due:
    at: float
    repeats: int
    retry: Backoff = RETRY


class Schedule:
    """Which node is to be kicked when. Pure: time is an argument. One entry per node: the earlier kick counts.

    repeat_after_s: 0 = no repeat.
    """

    def __init__(self, *, repeat_after_s: float, random: Callable[[], float] = random_module.random) -> None:
        self._repeat_after_s = repeat_after_s
        self._random = random
        self._due: dict[str, _Due] = {}

    def __len__(self) -> int:
        return len(self._due)

    def request(self, node: str, monotonic: float) -> None:
        self._due[node] = _Due(monotonic, repeats=1 if self._repeat_after_s else 0)

    def due(self, monotonic: float) -> list[str]:
        return [node for node, due in self._due.items() if due.at <= monotonic]

    def next_at(self) -> float | None:
        return min((due.at for due in self._due.values()), default=None)

    def done(self, node: str, monotonic: float) -> None:
        due = self._due.pop(node)
        if due.repeats:
            self._due[node] = _Due(monotonic + self._repeat_after_s, repeats=due.repeats - 1)

    def failed(self, node: str, monotonic: float, retry_after_s: float | None) -> None:
        """Again after a doubling pause with jitter, or after what the server asked for."""
        due = self._due[node]
        pause_s, retry = due.retry.next(self._random, retry_after_s)
        self._due[node] = replace(due, at=monotonic + pause_s, retry=retry)

    def drop(self, node: str) -> None:
        self._due.pop(node, None)


def wall_clock() -> str:
    """A value no kick had before: the time to the microsecond."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


class Kicker:
    """A Service with one thread. request() may be called from any thread and does not block."""

    name = "kick"

    def __init__(
        self,
        client: Patches,
        *,
        repeat_after_s: float,
        monotonic: Callable[[], float] = time.monotonic,
        new_value: Callable[[], str] = wall_clock,
    ) -> None:
        self._client = client
        self._schedule = Schedule(repeat_after_s=repeat_after_s)
        self._monotonic = monotonic
        self._new_value = new_value
        self._requests: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._loop = Loop("kick", self._turn, stuck_after_s=STUCK_AFTER_S, first_pause_s=math.inf, monotonic=monotonic)
        # A Service by its loop.
        self.start, self.stop, self.healthy = self._loop.start, self._loop.stop, self._loop.healthy
        self._last_failure = ""
        self._counts: dict[str, int] = {"sent": 0}

    def request(self, node: str) -> None:
        """A node that was refused has opened."""
        self._requests.put(node)
        self._loop.wake()

    @property
    def counters(self) -> Mapping[str, int]:
        """Kicks by result: sent, gone, and the cause of each failure."""
        return dict(self._counts)

    def _turn(self) -> float:
        self._take_requests()
        for node in self._schedule.due(self._monotonic()):
            if self._loop.stopping:
                break
            self._loop.progressed()
            self._kick(node)
        next_at = self._schedule.next_at()
        return math.inf if next_at is None else next_at - self._monotonic()

    def _take_requests(self) -> None:
        """All that are there: one write per node is enough."""
        while not self._requests.empty():
            self._schedule.request(self._requests.get(), self._monotonic())

    def _kick(self, node: str) -> None:
        body = msgspec.json.encode({"metadata": {"annotations": {ANNOTATION_KICK: self._new_value()}}})
        try:
            self._client.patch(paths.node(node), body, content_type=MERGE_PATCH, deadline_s=KICK_DEADLINE_S)
        except NotFound:
            self._schedule.drop(node)
            self._count("gone")
        except (KubeError, CredentialsInvalid) as e:
            self._failed(node, e)
        except Exception as e:
            log.exception("kick failed", extra={"node": node})
            self._failed(node, e)
        else:
            self._schedule.done(node, self._monotonic())
            self._count("sent")
            log.debug("node kicked", extra={"node": node})
            if self._last_failure:
                log.info("kick succeeded again", extra={"after": self._last_failure})
                self._last_failure = ""

    def _failed(self, node: str, error: Exception) -> None:
        cause = type(error).__name__
        self._schedule.failed(node, self._monotonic(), getattr(error, "retry_after_s", None))
        self._count(cause)
        if cause != self._last_failure:
            self._last_failure = cause
            log.warning("kick failed", extra={"node": node, "cause": cause, "error": str(error)})

    def _count(self, result: str) -> None:
        self._counts[result] = self._counts.get(result, 0) + 1
