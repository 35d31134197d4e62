"""The kick: one Node write after the release of a node that was refused to some pod.

kube-scheduler retries a refused pod at an event. The event that heals a node wakes the scheduler and our watch at the
same time; if the scheduler asks before our cache has flipped, the pod is refused again and nothing wakes it for five
minutes. So when the cache has flipped we make an event of our own: an annotation of the Node with a value it never had.
Guaranteed: (1) after the flip, (2) never without a refusal before, (3) once more a little later, for other replicas,
(4) repeated until it was taken or the Node is gone, (5) never in the request path.
"""

import logging
import queue
import random as random_module
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

import msgspec

from kube import contract, paths
from kube.errors import CredentialsInvalid, KubeError, NotFound
from kube.media_types import MERGE_PATCH

log = logging.getLogger(__name__)

KICK_DEADLINE_S = 5.0
BACKOFF_FIRST_S = 0.2
BACKOFF_LIMIT_S = 10.0
GRACE_S = 30.0  # beyond the deadline of a write, before the thread counts as stuck
STOP_LIMIT_S = 1.0


class Patches(Protocol):
    """The part of kube.client.Client that is used here."""

    def patch(
        self, path: str, body: bytes, *, content_type: str = MERGE_PATCH, deadline_s: float | None = None
    ) -> bytes: ...


@dataclass(frozen=True, slots=True)
class _Due:
    at: float
    repeats: int
    failures: int = 0


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

    def ring(self, node: str, now: float) -> None:
        self._due[node] = _Due(now, repeats=1 if self._repeat_after_s else 0)

    def due(self, now: float) -> list[str]:
        return [node for node, due in self._due.items() if due.at <= now]

    def next_at(self) -> float | None:
        return min((due.at for due in self._due.values()), default=None)

    def done(self, node: str, now: float) -> None:
        due = self._due.pop(node)
        if due.repeats:
            self._due[node] = _Due(now + self._repeat_after_s, repeats=due.repeats - 1)

    def failed(self, node: str, now: float, retry_after_s: float | None) -> None:
        """Again after a doubling pause with jitter, or after what the server asked for."""
        due = self._due[node]
        pause_s = min(BACKOFF_FIRST_S * 2**due.failures, BACKOFF_LIMIT_S) * (1 + self._random())
        self._due[node] = _Due(now + max(pause_s, retry_after_s or 0), due.repeats, min(due.failures + 1, 16))

    def drop(self, node: str) -> None:
        self._due.pop(node, None)


def wall_clock() -> str:
    """A value no kick had before: the time to the microsecond."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


class Publisher:
    """One thread from start() to stop(). ring() may be called from any thread and takes no lock of ours."""

    def __init__(
        self,
        client: Patches,
        *,
        repeat_after_s: float,
        now: Callable[[], float] = time.monotonic,
        new_value: Callable[[], str] = wall_clock,
    ) -> None:
        self._client = client
        self._schedule = Schedule(repeat_after_s=repeat_after_s)
        self._now = now
        self._new_value = new_value
        self._bell: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="publisher", daemon=True)
        self._alive_at = now()
        self._trouble = ""
        self._counts: dict[str, int] = {"sent": 0}

    def ring(self, node: str) -> None:
        self._bell.put(node)

    @property
    def counters(self) -> Mapping[str, int]:
        """Kicks by result: sent, gone, and the cause of each failure."""
        return dict(self._counts)

    def start(self) -> None:
        self._alive_at = self._now()
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._bell.put(None)
        if self._thread.ident is not None:
            self._thread.join(STOP_LIMIT_S)

    def healthy(self, now: float) -> bool:
        return self._thread.is_alive() and now - self._alive_at <= KICK_DEADLINE_S + GRACE_S

    def _run(self) -> None:
        while not self._stop.is_set():
            self._alive_at = now = self._now()
            next_at = self._schedule.next_at()
            self._listen(1.0 if next_at is None else min(1.0, max(0.0, next_at - now)))
            for node in self._schedule.due(self._now()):
                if self._stop.is_set():
                    return
                self._alive_at = self._now()
                self._kick(node)

    def _listen(self, timeout_s: float) -> None:
        """Waits for the bell, then takes all that has been rung: one write per node is enough."""
        try:
            node = self._bell.get(timeout=timeout_s)
            while node is not None:
                self._schedule.ring(node, self._now())
                node = self._bell.get_nowait()
        except queue.Empty:
            return

    def _kick(self, node: str) -> None:
        body = msgspec.json.encode({"metadata": {"annotations": {contract.ANNOTATION_KICK: self._new_value()}}})
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
            self._schedule.done(node, self._now())
            self._count("sent")
            log.debug("node kicked", extra={"node": node})
            if self._trouble:
                log.info("kicks work again", extra={"after": self._trouble})
                self._trouble = ""

    def _failed(self, node: str, error: Exception) -> None:
        cause = type(error).__name__
        self._schedule.failed(node, self._now(), getattr(error, "retry_after_s", None))
        self._count(cause)
        if cause != self._trouble:
            self._trouble = cause
            log.warning("kick failed", extra={"node": node, "cause": cause, "error": str(error)})

    def _count(self, result: str) -> None:
        self._counts[result] = self._counts.get(result, 0) + 1
