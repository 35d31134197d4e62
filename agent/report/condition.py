"""Keeps the condition readygate.dev/NodeHealthy of a health pod true to the health of the node: in mode `pod` that of
the agent's own pod, in mode `node` of each one on the node that asks for it.

Guarantees:
1. Only our condition is sent, with the pod's uid: the API server refuses the write to another pod of the same name.
2. A change of the health is written at once, where the last changes were not just now: five at once, then one in ten
   seconds, the newest. What closes the node never waits for that (the next that opens it waits longer); another reason
   leaves three, for a node that opens, closes and opens, and a change that is neither waits for all others. Nothing
   else is written but a refresh every five minutes (jittered).
3. While the API server is away nothing queues up: when it is back, one write brings it to the newest health.
4. lastTransitionTime moves only when the status changes, also across a restart of the agent.
5. When the pod is gone (404, another uid), nothing is written any more.
6. stop() writes False Terminating and returns within about a second, whether it worked or not. Mode `node` writes
   nothing then: the service may be back at once, and its pod lives on.
7. Nothing is written while the pod says that the other agent speaks for it (`readygate.dev/speaker`): each reply tells,
   and a patch that changes nothing comes before the first write, and before a True where the last reply is older than
   LOOK_AFTER_S. While it is so that is asked again at each refresh. What closes does not wait: one may still land.
"""

import logging
import math
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from agent.processes.rate_limit import RateLimit
from agent.wire.condition import (
    REASON_STARTING,
    REASON_TERMINATING,
    SPEAKER_POD,
    OwnPod,
    condition_patch,
    no_patch,
    parse_own_pod,
)
from component.backoff import Backoff
from component.loop import Loop
from kube import contract, errors, paths
from kube.media_types import STRATEGIC_MERGE_PATCH
from kube.objects import UNREADABLE
from kube.times import format_time

log = logging.getLogger(__name__)

REFRESH_S = 300.0  # as the kubelet's own nodeStatusReportFrequency
REFRESH_JITTER = 0.1
# 0.5 s doubling to 30 s, each a quarter less to a quarter more: of 5,000 agents fewer than 200 ask an API server in
# need in a second, and soon after its return it knows the newest health.
RETRY = Backoff(first_s=0.375, limit_s=22.5, jitter=2 / 3, at_least_limit_s=60.0)
# Written at once; after them one in so many seconds. A fault takes two, and four where one check sees its end before
# another one has failed; with five the next fault soon after it finds room too.
CHANGES = 5
REASON_LEAVES = 3
CHANGE_S = 10.0  # checks that flap on a shared cause do so on all nodes
BUG_PAUSE_S = 8.0
WRITE_DEADLINE_S = 5.0
# Twice a check's default timeout: by then the first findings are nearly always there, and a start costs one write.
STARTING_HOLD_S = 2.0
LOOK_AFTER_S = 10.0
STOP_JOIN_S = 0.1
STOP_WAIT_S = 0.3  # for a write that is under way
STOP_WRITE_DEADLINE_S = 0.6  # for both writes when nothing was learned yet: half of it each
STUCK_S = 60.0  # a turn takes two writes at most, and the look-up of a name, which knows no deadline


class Patcher(Protocol):
    """kube.client.Client, as far as it is needed here."""

    def patch(self, path: str, body: bytes, *, content_type: str = ..., deadline_s: float | None = None) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Condition:
    """What our condition says. Two with equal `identity` mean the same: a new message alone waits for the refresh."""

    status: str
    reason: str
    message: str
    identity: object = None


class ConditionPublisher:
    """A Service. `publish` says what the condition shall be; one thread writes it.

    `written` is what the API server has, as far as we know. A write is due for one of two reasons, an update or a
    refresh, and never before the pause after a failed one is over: see `turn`. `not_before`: of the first, monotonic.
    """

    name = "publisher"

    def __init__(
        self,
        client: Patcher,
        *,
        namespace: str,
        pod_name: str,
        pod_uid: str,
        speaker: str = SPEAKER_POD,
        farewell: bool = True,
        not_before: float = 0.0,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        random: Callable[[], float] = random.random,
    ) -> None:
        self._client = client
        self._path = paths.pod_status(namespace, pod_name)
        self._uid = pod_uid
        self._speaker = speaker
        self._farewell = farewell
        self._wall = wall
        self._monotonic = monotonic
        self._random = random
        self._lock = threading.Lock()  # what publish() and turn() share: _wanted and the times
        self._writing = threading.Lock()  # one write at a time
        self._loop = Loop(
            "publisher",
            self.turn,
            stuck_after_s=STUCK_S,
            error_pause_s=BUG_PAUSE_S,
            join_limit_s=STOP_JOIN_S,
            monotonic=monotonic,
        )
        self._wanted: Condition | None = None
        self._written: Condition | None = None
        self._transition: tuple[str, str] | None = None  # status and lastTransitionTime as the API server has them
        self._transition_known = False
        self._update_due_at = 0.0  # monotonic, as the next two
        self._refresh_due_at = 0.0
        self._retry_due_at = not_before
        self._replied_at = -math.inf  # monotonic
        self._backoff = RETRY
        self._changes = RateLimit(CHANGES, CHANGE_S)
        self.gone = False
        self.silenced = False  # the other agent speaks for this pod
        self.writes = 0
        self.errors = 0

    def start(self) -> None:
        self._loop.start()

    def publish(self, condition: Condition) -> None:
        """Makes this the condition. Never waits for the network."""
        with self._lock:
            before, self._wanted = self._wanted, condition
            if condition.reason != REASON_STARTING:
                self._update_due_at = 0.0
            elif before is None:
                self._update_due_at = self._monotonic() + STARTING_HOLD_S
        if before is None or before.identity != condition.identity:
            self._loop.wake()

    def stop(self) -> None:
        if self._loop.stopping:
            return
        started = self._loop.healthy(-math.inf)
        self._loop.stop()
        if started and self._farewell:  # in a thread of its own: looking up the server's name knows no deadline
            last = threading.Thread(target=self._write_terminating, name="publisher-end", daemon=True)
            last.start()
            last.join(STOP_WAIT_S + STOP_WRITE_DEADLINE_S)

    def healthy(self, monotonic: float) -> bool:
        return self._loop.healthy(monotonic)

    def turn(self) -> float:
        """Writes the condition if that is due. Returns the seconds until it will be, 0.0: look again at once."""
        with self._lock:
            wanted = self._wanted
            if wanted is None or self.gone or self._loop.stopping:
                return math.inf
            monotonic = self._monotonic()
            due_at = self._refresh_due_at
            if self._needs_update() and not self.silenced:
                due_at = max(self._update_due_at, monotonic + self._change_wait_s(wanted, monotonic))
            wait_s = max(due_at, self._retry_due_at) - monotonic
        if wait_s > 0:
            return wait_s
        with self._writing:
            if not self._loop.stopping:
                self._write(wanted, WRITE_DEADLINE_S)
        return 0.0

    def _needs_update(self) -> bool:
        wanted, written = self._wanted, self._written
        return wanted is not None and (written is None or written.identity != wanted.identity)

    def _change_wait_s(self, wanted: Condition, monotonic: float) -> float:
        before = self._written
        if before is None:
            return self._changes.wait_s(monotonic)
        if wanted.status != before.status == contract.STATUS_TRUE:
            return 0.0
        if wanted.status != before.status and wanted.status == contract.STATUS_TRUE:
            left = 0
        elif (wanted.status, wanted.reason) != (before.status, before.reason):
            left = REASON_LEAVES
        else:
            left = CHANGES - 1
        return self._changes.wait_s(monotonic, left=left)

    def _write_terminating(self) -> None:
        locked = self._writing.acquire(timeout=STOP_WAIT_S)
        try:
            if not self.gone and not self.silenced:
                terminating = Condition(contract.STATUS_FALSE, REASON_TERMINATING, "the agent is terminating")
                writes = 1 if self._transition_known else 2
                self._write(terminating, STOP_WRITE_DEADLINE_S / writes)
        finally:
            if locked:
                self._writing.release()

    def _write(self, condition: Condition, deadline_s: float) -> None:
        try:
            if self.silenced or not self._transition_known or self._should_look(condition):
                self._learn_transition_time(deadline_s)
            since = self._since(condition)
            patch = condition_patch(
                self._uid, status=condition.status, reason=condition.reason, message=condition.message, since=since
            )
            self._patch(patch, deadline_s)
        except _GoneError as e:
            self.gone = True
            log.warning("health pod deleted; stopped publishing", extra={"path": self._path, "error": str(e)})
        except _SilencedError:
            self._fell_silent()
        except (errors.KubeError, errors.CredentialsInvalid, *UNREADABLE) as e:
            self._failed(e)
        else:
            self._succeeded(condition, since)

    def _should_look(self, condition: Condition) -> bool:
        """What the other agent may have closed meanwhile is not opened."""
        old = self._monotonic() - self._replied_at > LOOK_AFTER_S
        return old and condition.status == contract.STATUS_TRUE

    def _succeeded(self, condition: Condition, since: str) -> None:
        if self._backoff.failures:
            log.info("condition patch succeeded again", extra={"failures": self._backoff.failures})
        if self._written is None or self._written.status != condition.status:
            log.info("condition written", extra={"status": condition.status, "reason": condition.reason})
        jitter = REFRESH_JITTER * (2 * self._random() - 1)
        with self._lock:
            if self._written is None or self._written.identity != condition.identity:
                self._changes.spend(self._monotonic())
            self._written = condition
            self._transition = (condition.status, since)
            self._backoff = RETRY
            self.writes += 1
            self._update_due_at = self._retry_due_at = 0.0
            self._refresh_due_at = self._monotonic() + REFRESH_S * (1 + jitter)

    def _fell_silent(self) -> None:
        if not self.silenced:
            log.info("the other agent speaks for this pod; nothing is written", extra={"path": self._path})
        with self._lock:
            self.silenced, self._written, self._transition_known = True, None, False
            self._backoff, self._retry_due_at = RETRY, 0.0
            self._refresh_due_at = self._monotonic() + REFRESH_S * (1 + REFRESH_JITTER * (2 * self._random() - 1))

    def _failed(self, error: Exception) -> None:
        asked_s = getattr(error, "retry_after_s", None)
        if asked_s:  # all agents are asked for the same: they shall not come back together
            asked_s *= 1 + RETRY.jitter * self._random()
        with self._lock:
            pause_s, self._backoff = self._backoff.next(self._random, asked_s)
            self._retry_due_at = self._monotonic() + pause_s
            self.errors += 1
        if self._backoff.failures == 1:  # one line an outage
            log.warning(
                "condition patch failed, will retry", extra={"cause": type(error).__name__, "error": str(error)}
            )

    def _learn_transition_time(self, deadline_s: float) -> None:
        """What the API server has, by a patch that changes nothing: we may patch our pod, but not read it."""
        self._transition = self._patch(no_patch(self._uid), deadline_s).transition
        self._transition_known = True
        self.silenced = False

    def _since(self, condition: Condition) -> str:
        if self._transition is not None and self._transition[0] == condition.status:
            return self._transition[1]
        return format_time(self._wall())

    def _patch(self, body: bytes, deadline_s: float) -> OwnPod:
        """Raises _GoneError, _SilencedError, KubeError, CredentialsInvalid, one of UNREADABLE."""
        try:
            reply = self._client.patch(self._path, body, content_type=STRATEGIC_MERGE_PATCH, deadline_s=deadline_s)
        except (errors.NotFound, errors.Conflict, errors.Invalid) as e:
            if _says_gone(e):
                raise _GoneError(str(e)) from e
            raise
        pod = parse_own_pod(reply)
        self._replied_at = self._monotonic()
        if pod.uid != self._uid:
            raise _GoneError(f"the pod of that name has uid {pod.uid[:64]}")
        if pod.speaker != self._speaker:
            raise _SilencedError
        return pod


class _GoneError(Exception):
    """Our pod is not there any more."""


class _SilencedError(Exception):
    """The pod says that another agent speaks for it."""


def _says_gone(error: errors.KubeError) -> bool:
    """Only the API server's own words count: a proxy's 404, a policy's 422 or a lost race say nothing about the pod."""
    match error:
        case errors.NotFound():
            return error.message.startswith("pods ") and error.message.endswith(" not found")
        case errors.Conflict():
            return "UID in precondition" in error.message
        case _:
            return error.message.startswith("metadata.uid: ") or " metadata.uid: " in error.message
