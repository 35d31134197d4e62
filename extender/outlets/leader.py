"""The thread that holds the Lease `readygate-extender`, or waits for it: its replica writes the Nodes' condition and
Events.

Guaranteed: leads() is True in one replica at most (see `election` for the rule), turns False by the clock alone, and
waits for no network and no lock. Without a leader nothing is written, and nothing else is affected.
"""

import logging
import math
import random as random_module
import socket
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Protocol

from component.backoff import Backoff
from component.loop import LOG_AGAIN_S, Loop
from extender.outlets import wire
from extender.outlets.election import LOOK_EVERY_S, RENEW_EVERY_S, WRITE_S, Election, Record
from kube import contract, paths
from kube.errors import AlreadyExists, Conflict, CredentialsInvalid, Forbidden, KubeError, NotFound, Unreachable
from kube.objects import UNREADABLE
from kube.times import format_micro_time

log = logging.getLogger(__name__)

FORBIDDEN_S = 60.0  # asking more often does not grant a missing right
RELEASE_S = 0.8  # for the last write, while the program stops
RETRY = Backoff(first_s=1.0, limit_s=15.0, jitter=0.2)
REMEDY = (
    "allow the extender's user the verbs get, create and update on leases in its namespace, "
    "as the playbooks' Role does, or switch off outlets.nodeCondition and outlets.events"
)


class Client(Protocol):
    """The part of kube.client.Client that is used here."""

    def get(self, path: str, *, deadline_s: float | None = None) -> bytes: ...
    def create(self, path: str, body: bytes, *, deadline_s: float | None = None) -> bytes: ...
    def replace(self, path: str, body: bytes, *, deadline_s: float | None = None) -> bytes: ...
    def close(self) -> None: ...


def new_identity() -> str:
    """Returns the host's name, for humans, with a unique suffix."""
    return f"{socket.gethostname()[:63]}_{uuid.uuid4()}"


class Leader:
    """A Service with one thread. client: with its own connections; last: another such, for the last write."""

    name = "leader"

    def __init__(
        self,
        client: Client,
        last: Client,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        random: Callable[[], float] = random_module.random,
        identity: Callable[[], str] = new_identity,
        namespace: str = contract.NAMESPACE,
    ) -> None:
        """identity: called in the first turn, in the process whose identity it is. namespace: of the Lease."""
        self._namespace = namespace
        self._path = paths.lease(namespace, contract.NAME_EXTENDER)
        self._client = client
        self._last = last
        self._monotonic = monotonic
        self._wall = wall
        self._random = random
        self._new_identity = identity
        self._election: Election | None = None
        self._latest: wire.LeaseObject | None = None
        self._retry = RETRY
        self._led = False
        self._logged_at: dict[str, float] = {}
        self._counts = {"renewed": 0}
        # Healthy as long as its thread lives: a restart would not make the API server answer.
        self._loop = Loop(
            "leader",
            self.turn,
            stuck_after_s=math.inf,
            unblock=client.close,
            at_end=self.release,
            monotonic=monotonic,
        )
        self.start, self.stop, self.healthy = self._loop.start, self._loop.stop, self._loop.healthy

    def leads(self) -> bool:
        """Returns whether this replica may begin a write now. Call it before each write, from any thread."""
        election = self._election
        return election is not None and election.leads(self._monotonic())

    @property
    def counters(self) -> Mapping[str, int]:
        """Renewals by result: renewed, and the cause of each failure."""
        return dict(self._counts)

    def turn(self) -> float:
        """Takes or renews the Lease if allowed. Returns the seconds until the next time."""
        try:
            return self._turn()
        finally:
            self._tell()

    def _turn(self) -> float:
        try:
            self._elect()
        except Forbidden as e:
            self._failed(e, f"{e}; {REMEDY}")
            return FORBIDDEN_S
        except Conflict:
            # another replica wrote: the Lease is read again, at once if this replica led, but not repeatedly
            self._latest = None
            self._count("Conflict")
            first = not self._retry.failures
            _, self._retry = self._retry.next(self._random)
            return 0.0 if first and self.leads() else LOOK_EVERY_S
        except (KubeError, CredentialsInvalid, *UNREADABLE) as e:
            self._latest = None
            # Other threads, which need the API server, log that it is away.
            self._failed(e, str(e), logging.DEBUG if isinstance(e, Unreachable) else logging.WARNING)
            pause_s, self._retry = self._retry.next(self._random, getattr(e, "retry_after_s", None))
            return min(pause_s, RENEW_EVERY_S) if self.leads() else pause_s
        self._retry = RETRY
        self._logged_at.clear()
        return RENEW_EVERY_S if self.leads() else LOOK_EVERY_S

    def release(self) -> None:
        """Called in the thread after its last turn, so that other replicas need not wait for the Lease to expire."""
        election, latest = self._election, self._latest
        if election is not None and latest is not None and election.leads(self._monotonic()):
            self._election = election.released()
            record = election.release(format_micro_time(self._wall()))
            try:
                self._last.replace(self._path, wire.write_lease(record, latest, self._namespace), deadline_s=RELEASE_S)
            except (KubeError, CredentialsInvalid) as e:
                log.info("lease not released", extra={"cause": type(e).__name__, "error": str(e)})
        self._last.close()

    def _elect(self) -> None:
        election = self._election or Election(self._new_identity())
        if self._latest is None:
            try:
                self._latest, seen = wire.read_lease(self._client.get(self._path, deadline_s=WRITE_S))
            except NotFound:
                self._election = self._take(election, self._create)
                return
            election = self._election = election.saw(seen, self._monotonic())
        if not election.may_take(self._monotonic()):
            self._latest = None  # the next turn reads the Lease and does not use the cached one
            return
        self._election = self._take(election, self._replace)

    def _take(self, election: Election, write: Callable[[Record], bytes]) -> Election:
        began = self._monotonic()
        self._latest, taken = wire.read_lease(write(election.claim(format_micro_time(self._wall()))))
        self._count("renewed")
        return election.wrote(taken, began)

    def _create(self, record: Record) -> bytes:
        try:
            return self._client.create(
                paths.leases(self._namespace), wire.write_lease(record, None, self._namespace), deadline_s=WRITE_S
            )
        except AlreadyExists:
            self._latest = None
            raise

    def _replace(self, record: Record) -> bytes:
        body = wire.write_lease(record, self._latest, self._namespace)
        return self._client.replace(self._path, body, deadline_s=WRITE_S)

    def _tell(self) -> None:
        leads = self.leads()
        if leads is not self._led and self._election is not None and self._election.record is not None:
            self._led = leads
            facts = {"holder": self._election.record.holder}
            if leads:
                log.info("leader", extra=facts)
            else:
                log.info("not the leader any more", extra=facts)

    def _failed(self, error: Exception, text: str, level: int = logging.WARNING) -> None:
        cause = type(error).__name__
        self._count(cause)
        monotonic = self._monotonic()
        if not self._loop.stopping and monotonic - self._logged_at.get(cause, -math.inf) >= LOG_AGAIN_S:
            self._logged_at[cause] = monotonic
            log.log(level, "lease of the leader not to be had", extra={"cause": cause, "error": text})

    def _count(self, result: str) -> None:
        self._counts[result] = self._counts.get(result, 0) + 1
