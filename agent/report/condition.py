"""Mode `pod`: keeps the condition readygate.dev/NodeHealthy of the agent's own pod true to the verdict.

Guarantees:
1. Only our condition is sent, with the pod's uid: the API server refuses the write to another pod of the same name.
2. A change of the verdict is written at once; nothing else is written but a refresh every five minutes (jittered).
3. While the API server is away nothing queues up: when it is back, one write brings it to the newest verdict.
4. lastTransitionTime moves only when the status changes, also across a restart of the agent.
5. When the pod is gone (404, another uid), nothing is written any more.
6. stop() writes False Terminating and returns within about a second, whether it worked or not.
"""

import logging
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

import msgspec

from kube import contract, errors, paths

log = logging.getLogger(__name__)

STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
REFRESH_S = 300.0
REFRESH_JITTER = 0.1
RETRY_FIRST_S = 0.5
RETRY_MOST_S = 8.0  # with its jitter below 10 s: so soon after its return the API server knows the newest verdict
WRITE_DEADLINE_S = 5.0
STARTING_HOLD_S = (
    2.0  # the first verdict is nearly always there by then; without the hold each start would cost a write
)
STOP_WAIT_S = 0.3  # for a write that is under way
STOP_WRITE_DEADLINE_S = 0.6  # for both writes when nothing was learned yet: half of it each
STALLED_S = 60.0


class Patcher(Protocol):
    """kube.client.Client, as far as it is needed here."""

    def patch(self, path: str, body: bytes, *, content_type: str = ..., deadline_s: float | None = None) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the condition shall say. `identity` is what makes it another one: a message alone waits for the refresh."""

    status: str
    reason: str
    message: str
    identity: object = None


class _Condition(msgspec.Struct, rename="camel"):
    type: str
    status: str
    last_transition_time: str | None = None


class _Status(msgspec.Struct):
    conditions: list[_Condition] | None = None


class _Meta(msgspec.Struct):
    uid: str = ""


class _Pod(msgspec.Struct):
    metadata: _Meta
    status: _Status = msgspec.field(default_factory=_Status)


_POD = msgspec.json.Decoder(_Pod)


class ConditionPublisher:
    """A Service. `show` says what is wanted; one thread writes."""

    name = "publisher"

    def __init__(
        self,
        client: Patcher,
        *,
        namespace: str,
        pod_name: str,
        pod_uid: str,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._client = client
        self._path = paths.pod_status(namespace, pod_name)
        self._uid = pod_uid
        self._now = now
        self._monotonic = monotonic
        self._chance = chance
        self._wake = threading.Condition()
        self._writing = threading.Lock()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="publisher", daemon=True)
        self._progress = 0.0
        self._wanted: Wanted | None = None
        self._written: Wanted | None = None
        self._transition: tuple[str, str] | None = None  # status and lastTransitionTime as the API server has them
        self._recalled = False
        self._due = 0.0  # no write before, whatever is wanted
        self._refresh_at = 0.0
        self._failures = 0
        self.gone = False
        self.writes = 0
        self.errors = 0

    def start(self) -> None:
        self._progress = self._monotonic()
        with self._wake:
            self._due = self._monotonic() + STARTING_HOLD_S
        self._thread.start()

    def show(self, wanted: Wanted) -> None:
        """Makes this the condition. Never waits for the network."""
        with self._wake:
            before, self._wanted = self._wanted, wanted
            if self._failures == 0 and not self._written and wanted.reason != contract.REASON_STARTING:
                self._due = 0.0
            if before is None or before.identity != wanted.identity:
                self._wake.notify()

    def stop(self) -> None:
        with self._wake:
            if self._stopping:
                return
            self._stopping = True
            self._wake.notify()
        if self._thread.ident is None:
            return
        # In a thread of its own: looking up the server's name knows no deadline.
        last = threading.Thread(target=self._say_terminating, name="publisher-end", daemon=True)
        last.start()
        last.join(STOP_WAIT_S + STOP_WRITE_DEADLINE_S + 0.1)
        self._thread.join(0.1)

    def healthy(self, now: float) -> bool:
        return self._thread.is_alive() and now - self._progress < STALLED_S

    def turn(self) -> float:
        """Writes if something is due; returns the seconds until something may be."""
        with self._wake:
            wanted, now = self._wanted, self._monotonic()
            self._progress = now
            if wanted is None or self.gone or self._stopping:
                return REFRESH_S / 10
            changed = self._written is None or self._written.identity != wanted.identity
            at = self._due if changed else max(self._due, self._refresh_at)
            if now < at:
                return min(at - now, REFRESH_S / 10)
        with self._writing:
            if not self._stopping:
                self._write(wanted, WRITE_DEADLINE_S)
        return 0.0

    def _run(self) -> None:
        while True:
            try:
                pause_s = self.turn()
            except Exception:
                log.exception("the condition could not be published")
                pause_s = RETRY_MOST_S
            with self._wake:
                if self._stopping:
                    return
                if pause_s > 0 and not self._is_urgent():
                    self._wake.wait(pause_s)

    def _is_urgent(self) -> bool:
        wanted, written = self._wanted, self._written
        changed = wanted is not None and (written is None or written.identity != wanted.identity)
        return changed and not self.gone and self._monotonic() >= self._due

    def _say_terminating(self) -> None:
        held = self._writing.acquire(timeout=STOP_WAIT_S)
        try:
            if not self.gone:
                terminating = Wanted(contract.STATUS_FALSE, contract.REASON_TERMINATING, "the agent is terminating")
                self._write(terminating, STOP_WRITE_DEADLINE_S if self._recalled else STOP_WRITE_DEADLINE_S / 2)
        finally:
            if held:
                self._writing.release()

    def _write(self, wanted: Wanted, deadline_s: float) -> None:
        try:
            if not self._recalled:
                self._recall(deadline_s)
            since = self._since(wanted)
            reply = self._patch(condition_patch(self._uid, wanted, since), deadline_s)
            self._check_uid(reply)
        except _GoneError as e:
            self.gone = True
            log.warning(
                "own pod is gone, its condition is no longer written", extra={"path": self._path, "cause": str(e)}
            )
            return
        except (errors.KubeError, errors.CredentialsInvalid, msgspec.DecodeError) as e:
            self._failed(e)
            return
        if self._failures:
            log.info("the API server takes our condition again", extra={"failures": self._failures})
        if self._written is None or self._written.status != wanted.status:
            log.info("condition written", extra={"status": wanted.status, "reason": wanted.reason})
        with self._wake:
            self._written = wanted
            self._transition = (wanted.status, since)
            self._failures = 0
            self.writes += 1
            self._due = 0.0
            self._refresh_at = self._monotonic() + REFRESH_S * (
                1 - REFRESH_JITTER + 2 * REFRESH_JITTER * self._chance()
            )

    def _failed(self, error: Exception) -> None:
        with self._wake:
            pause_s = min(RETRY_MOST_S, RETRY_FIRST_S * 2.0 ** min(self._failures, 10)) * (0.75 + 0.5 * self._chance())
            asked_s = getattr(error, "retry_after_s", None)
            self._due = self._monotonic() + max(pause_s, min(asked_s or 0.0, 60.0))
            self._failures += 1
            self.errors += 1
            first = self._failures == 1
        if first:
            log.warning("the condition cannot be written, trying on", extra={"cause": str(error)})

    def _recall(self, deadline_s: float) -> None:
        """Learns what the API server has, by a patch that changes nothing: we may patch our pod, but not read it."""
        reply = self._patch(msgspec.json.encode({"metadata": {"uid": self._uid}}), deadline_s)
        pod = self._check_uid(reply)
        for condition in pod.status.conditions or ():
            if condition.type == contract.CONDITION_NODE_HEALTHY and condition.last_transition_time:
                self._transition = (condition.status, condition.last_transition_time)
        self._recalled = True

    def _since(self, wanted: Wanted) -> str:
        if self._transition is not None and self._transition[0] == wanted.status:
            return self._transition[1]
        return datetime.fromtimestamp(int(self._now()), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def _patch(self, body: bytes, deadline_s: float) -> bytes:
        try:
            return self._client.patch(self._path, body, content_type=STRATEGIC_MERGE_PATCH, deadline_s=deadline_s)
        except (errors.NotFound, errors.Conflict, errors.Invalid) as e:
            if _says_gone(e):
                raise _GoneError(str(e)) from e
            raise

    def _check_uid(self, reply: bytes) -> _Pod:
        pod = _POD.decode(reply)
        if pod.metadata.uid != self._uid:
            raise _GoneError(f"the pod of that name has uid {pod.metadata.uid[:64]}")
        return pod


class _GoneError(Exception):
    """Our pod is not there any more."""


def _says_gone(error: errors.KubeError) -> bool:
    """Only the API server's own words count: a proxy's 404, a policy's 422 or a lost race say nothing about the pod."""
    match error:
        case errors.NotFound():
            return error.message.startswith("pods ") and error.message.endswith(" not found")
        case errors.Conflict():
            return "UID in precondition" in error.message
        case _:
            return error.message.startswith("metadata.uid: ") or " metadata.uid: " in error.message


def condition_patch(uid: str, wanted: Wanted, since: str) -> bytes:
    """The strategic merge patch of our one condition. `since` is RFC 3339."""
    condition = {
        "type": contract.CONDITION_NODE_HEALTHY,
        "status": wanted.status,
        "reason": wanted.reason,
        "message": wanted.message,
        "lastTransitionTime": since,
    }
    return msgspec.json.encode({"metadata": {"uid": uid}, "status": {"conditions": [condition]}})
