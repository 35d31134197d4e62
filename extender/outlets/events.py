"""The thread that writes Events, for kubectl describe: on Nodes that close and open, and on Pods that were refused all
nodes.

Guaranteed: (1) callers never wait and never fail; (2) only the leader writes about Nodes, and about a Pod the replica
that answered, once for each cause; (3) the writes a second are bounded, for each object and in all, and so is the
number that waits. kube-scheduler does not watch Events, so they wake no pod.
"""

import logging
import math
import queue
import random as random_module
import time
import uuid
from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from component.loop import LOG_AGAIN_S, Loop
from extender.outlets import wire
from extender.outlets.election import WRITE_S
from extender.outlets.event_text import About, EventText, blames_of, of_node, of_pod
from extender.outlets.node_condition_text import Standing
from extender.outlets.pending_writes import PendingWrites, Waiting
from extender.outlets.rate_limit import RateLimit
from extender.policy.snapshot import Snapshot
from kube import paths
from kube.errors import AlreadyExists, Conflict, CredentialsInvalid, Forbidden, Invalid, KubeError, NotFound

log = logging.getLogger(__name__)

INBOX_MAX = 1000
INBOX_NAMES_MAX = 65_536  # refused names in answers that were not handled yet: they stay in memory so long
LOOKED_AT_S = 10.0  # for so long one Pod is not handled again: it may be refused hundreds of times a second
LOOKED_AT_MAX = 20_000
LOOKS_PER_S, LOOKS_MOST = 20.0, 20.0  # of answers: with 5,000 refused nodes each takes a millisecond or two
YIELD_S = 0.001  # a waiting filter call gets the interpreter
NODES_NAMESPACE = "default"  # of Events on objects without a namespace
REMEDY = (
    "allow the extender's user the verb create on events, as the playbooks' ClusterRole does, or switch off "
    "outlets.events"
)


class Client(Protocol):
    """The part of kube.client.Client that is used here; with its own connections, which end with this object."""

    def create(self, path: str, body: bytes, *, deadline_s: float | None = None) -> bytes: ...
    def close(self) -> None: ...


class Refused(Protocol):
    """The part of why.attempts.Attempt that is used here: an answer without a node for the pod."""

    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def uid(self) -> str: ...
    @property
    def mask(self) -> int: ...
    @property
    def refused(self) -> Collection[str]: ...
    @property
    def snapshot(self) -> Snapshot | None: ...


class Events:
    """A Service with one thread. node_changed() and refused_everywhere() are each called from one other thread.

    leads(): whether this replica writes about Nodes.
    """

    name = "events"

    def __init__(
        self,
        client: Client,
        *,
        leads: Callable[[], bool],
        per_second: float,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        random: Callable[[], float] = random_module.random,
    ) -> None:
        self._client = client
        self._leads = leads
        self._monotonic = monotonic
        self._wall = wall
        self._backlog = PendingWrites(per_second=per_second, random=random)
        self._inbox: queue.SimpleQueue[Waiting] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[Refused] = queue.SimpleQueue()
        self._names_put = self._names_taken = 0  # refused names in them; each number is written by one thread
        self._looks = RateLimit(LOOKS_PER_S, LOOKS_MOST)
        self._looked_at: dict[str, float] = {}
        self._logged_at: dict[str, float] = {}
        self._counts = {"written": 0, "dropped": 0}
        self._led = False
        # Healthy as long as its thread lives: a restart would not make the API server answer.
        self._loop = Loop(
            "events",
            self.turn,
            stuck_after_s=math.inf,
            first_pause_s=math.inf,
            unblock=client.close,
            monotonic=monotonic,
        )
        self.start, self.stop, self.healthy = self._loop.start, self._loop.stop, self._loop.healthy

    def node_changed(self, node: str, uid: str, standing: Standing) -> None:
        """Queues an Event for the node's present condition."""
        if self._inbox.qsize() >= INBOX_MAX:
            self._counts["dropped"] += 1
            return
        self._inbox.put(self._waiting(of_node(node, uid, standing)))
        self._loop.wake()

    def refused_everywhere(self, attempt: Refused) -> None:
        """A filter call was answered without a survivor."""
        uid, names = attempt.uid, len(attempt.refused)
        monotonic = self._monotonic()
        if not uid or monotonic - self._looked_at.get(uid, -math.inf) < LOOKED_AT_S:
            return
        if self._names_put - self._names_taken + names > INBOX_NAMES_MAX or self._answers.qsize() >= INBOX_MAX:
            return  # kube-scheduler asks again as long as the pod is refused
        if len(self._looked_at) >= LOOKED_AT_MAX:
            self._looked_at.clear()
        self._looked_at[uid] = monotonic
        self._names_put += names
        self._answers.put(attempt)
        self._loop.wake()

    @property
    def counters(self) -> Mapping[str, int]:
        """Events by result: written, dropped, and the cause of each failure."""
        return {**self._counts, "dropped": self._counts["dropped"] + self._backlog.dropped}

    @property
    def waiting(self) -> int:
        return self._backlog.waiting

    def turn(self) -> float:
        """Handles one answer at most and writes one Event at most. Returns the seconds until the next turn."""
        while not self._inbox.empty():
            self._backlog.add(self._inbox.get())
        leads = self._leads()
        if self._led and not leads:
            self._backlog.forget_nodes()
        self._led = leads
        if not self._answers.empty() and self._looks.free_at(self._monotonic()) <= self._monotonic():
            self._look_at(self._answers.get())
        entry = self._backlog.take(self._monotonic())
        if entry is not None:
            self._write(entry)
        monotonic = self._monotonic()
        look_at = math.inf if self._answers.empty() else self._looks.free_at(monotonic)
        return max(YIELD_S, min(self._backlog.next_at(monotonic), look_at) - monotonic)

    def _look_at(self, answer: Refused) -> None:
        self._looks.take(self._monotonic())
        self._names_taken += len(answer.refused)
        if answer.snapshot is not None:
            about = About("Pod", answer.namespace, answer.name, answer.uid)
            blames = blames_of(answer.snapshot, answer.mask, answer.refused)
            self._backlog.add(self._waiting(of_pod(about, answer.snapshot, blames)))

    def _waiting(self, occasion: EventText) -> Waiting:
        return Waiting(occasion, self._monotonic(), self._wall(), uuid.uuid4().hex)

    def _write(self, entry: Waiting) -> None:
        about = entry.occasion.about
        namespace = about.namespace or NODES_NAMESPACE
        name = wire.event_name(about.name, entry.unique)
        body = wire.write_event(entry.occasion, name=name, namespace=namespace, wall=entry.wall)
        try:
            self._client.create(paths.events(namespace), body, deadline_s=WRITE_S)
        except AlreadyExists:  # by an earlier try whose answer was lost
            self._written(entry)
        except (Forbidden, NotFound, Invalid, Conflict) as e:
            # A namespace is being deleted, or is gone; or this object is not at fault.
            denied = isinstance(e, Forbidden)
            self._backlog.refused(entry, self._monotonic(), denied=denied)
            self._failed(e, f"{e}; {REMEDY}" if denied else str(e))
        except (KubeError, CredentialsInvalid) as e:
            self._backlog.failed(entry, self._monotonic(), getattr(e, "retry_after_s", None))
            self._failed(e, str(e))
        else:
            self._written(entry)

    def _written(self, entry: Waiting) -> None:
        self._backlog.written(entry, self._monotonic())
        self._count("written")

    def _failed(self, error: Exception, text: str) -> None:
        cause = type(error).__name__
        self._count(cause)
        monotonic = self._monotonic()
        if not self._loop.stopping and monotonic - self._logged_at.get(cause, -math.inf) >= LOG_AGAIN_S:
            self._logged_at[cause] = monotonic
            log.warning("event not written", extra={"cause": cause, "error": text})

    def _count(self, result: str) -> None:
        self._counts[result] = self._counts.get(result, 0) + 1
