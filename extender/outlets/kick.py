"""The kick: one Node write after the release of nodes that were refused to some pod.

kube-scheduler retries a refused pod when an event comes. The event that heals a node reaches kube-scheduler and the
extender at the same time. If kube-scheduler asks before the extender's cache has changed, the pod is refused again and
nothing wakes it for five minutes. So after the change the extender causes its own event: an annotation of a Node with a
value that it never had. Guaranteed: (1) after the change; (2) never without an earlier refusal, except at the start;
(3) once more a little later, for other replicas; (4) at most one a second, however many nodes are released; (5)
repeated until it succeeds, the right is missing or it has become useless; (6) never in the request path.

The kick keeps its own connection open, because over a slow path the handshake takes longer than everything else.
"""

import logging
import math
import queue
import random as random_module
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Protocol

import msgspec

from component.loop import LOG_AGAIN_S, Loop
from extender.outlets.schedule import Schedule
from kube import paths
from kube.errors import CredentialsInvalid, Forbidden, KubeError, NotFound
from kube.media_types import MERGE_PATCH

log = logging.getLogger(__name__)

ANNOTATION_KICK = "readygate.dev/kick"  # of a Node; always with a new value, or there would be no event
CONNECT_S = 30.0  # for name resolution, connection and handshake: three round trips of 10 s each at worst
ANSWER_S = 15.0
# the API server closes a connection that was idle for 90 s, proxies in front of it close it earlier
WARM_EVERY_S = 30.0
REMEDY = "allow the extender's user the verb patch on nodes, as the playbooks' ClusterRole does"


class Client(Protocol):
    """The part of kube.client.Client that is used here; with its own connections, which end with this object."""

    def get(self, path: str, *, deadline_s: float | None = None, connect_s: float | None = None) -> bytes: ...
    def patch(
        self,
        path: str,
        body: bytes,
        *,
        content_type: str = MERGE_PATCH,
        deadline_s: float | None = None,
        connect_s: float | None = None,
    ) -> bytes: ...
    def close(self) -> None: ...


class Memory(Protocol):
    """The part of policy.snapshot.Board that is used here."""

    def before_kick(self) -> None: ...
    def after_kick(self) -> None: ...


def wall_clock() -> str:
    """Returns a value that no kick had before: the time to the microsecond."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


class Kicker:
    """A Service with one thread. request() may be called from any thread and does not block."""

    name = "kick"

    def __init__(
        self,
        client: Client,
        memory: Memory,
        *,
        repeat_after_s: float,
        monotonic: Callable[[], float] = time.monotonic,
        random: Callable[[], float] = random_module.random,
        new_value: Callable[[], str] = wall_clock,
    ) -> None:
        self._client = client
        self._memory = memory
        self._schedule = Schedule(repeat_after_s=repeat_after_s, random=random)
        self._monotonic = monotonic
        self._new_value = new_value
        self._requests: queue.SimpleQueue[tuple[Sequence[str], float]] = queue.SimpleQueue()
        self._loop = Loop("kick", self.turn, stuck_after_s=math.inf, unblock=client.close, monotonic=monotonic)
        # The loop makes this a Service. It is healthy as long as its thread lives, however long a write takes: a
        # restart would not make the write faster, and would cost the cache.
        self.start, self.stop, self.healthy = self._loop.start, self._loop.stop, self._loop.healthy
        self._warm_at = -math.inf
        self._last_failure = ""
        self._logged_at: dict[str, float] = {}
        self._counts: dict[str, int] = {"sent": 0}

    def request(self, nodes: Sequence[str]) -> None:
        """Requests a kick: refused nodes have opened."""
        self._requests.put((nodes, self._monotonic()))
        self._loop.wake()

    @property
    def counters(self) -> Mapping[str, int]:
        """Kicks by result: sent, gone, given_up, and the cause of each failure."""
        return dict(self._counts)

    def turn(self) -> float:
        """Writes at most once. Returns the seconds until the next write is due."""
        while not self._requests.empty():
            self._schedule.request(*self._requests.get())
        if self._schedule.give_up(self._monotonic()):
            self._count("given_up")
            log.warning(
                "kick given up", extra={"cause": "NoUse", "error": "kube-scheduler has looked by itself by now"}
            )
        node = self._schedule.take(self._monotonic())
        if node is not None:
            self._kick(node)
        elif self._warm_at <= self._monotonic():
            self._keep_warm()
        if not self._requests.empty():
            return 0.0
        return min(self._schedule.next_at(), self._warm_at) - self._monotonic()

    def _kick(self, node: str) -> None:
        body = msgspec.json.encode({"metadata": {"annotations": {ANNOTATION_KICK: self._new_value()}}})
        self._memory.before_kick()
        try:
            self._client.patch(paths.node(node), body, deadline_s=ANSWER_S, connect_s=CONNECT_S)
        except NotFound:
            self._schedule.gone(node)
            self._count("gone")
        except Forbidden as e:
            self._schedule.forbidden(self._monotonic())
            self._failed(e, f"{e}; {REMEDY}")
        except (KubeError, CredentialsInvalid) as e:
            self._schedule.failed(self._monotonic(), getattr(e, "retry_after_s", None))
            self._failed(e, str(e))
        except Exception as e:
            self._schedule.failed(self._monotonic(), None)
            self._count(type(e).__name__)
            raise
        else:
            self._taken(node)

    def _taken(self, node: str) -> None:
        self._memory.after_kick()
        self._schedule.sent()
        self._warm_at = self._monotonic() + WARM_EVERY_S
        self._count("sent")
        log.debug("node kicked", extra={"node": node})
        if self._last_failure:
            log.info("kick succeeded again", extra={"after": self._last_failure})
            self._last_failure = ""
            self._logged_at.clear()

    def _keep_warm(self) -> None:
        """Ignores the answer: only the open connection matters."""
        try:
            self._client.get(paths.version(), deadline_s=ANSWER_S, connect_s=CONNECT_S)
        except (KubeError, CredentialsInvalid) as e:
            log.debug("no connection", extra={"cause": type(e).__name__, "error": str(e)})
        finally:
            self._warm_at = self._monotonic() + WARM_EVERY_S

    def _failed(self, error: Exception, text: str) -> None:
        cause = type(error).__name__
        self._count(cause)
        self._last_failure = cause
        monotonic = self._monotonic()
        if not self._loop.stopping and monotonic - self._logged_at.get(cause, -math.inf) >= LOG_AGAIN_S:
            self._logged_at[cause] = monotonic
            log.warning("kick failed", extra={"cause": cause, "error": text})

    def _count(self, result: str) -> None:
        self._counts[result] = self._counts.get(result, 0) + 1
