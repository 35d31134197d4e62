"""Lists Leases (of kubelets, of agents) when their watch has been silent for too long.

A watch sends nothing about the last kubelet that stops, so its age could never count. A list shows that the API server
(and etcd, as lists are quorum reads) answers, and which Leases have not moved. With many kubelets some Lease always
moves, and nothing is listed here unless their watch is broken.
"""

import logging
import math
import random as random_module
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from component.backoff import Backoff
from component.loop import Loop
from extender.cluster import observed
from kube.errors import CredentialsInvalid, Forbidden, Gone, KubeError, Unauthorized
from kube.listing import Page

log = logging.getLogger(__name__)

PAGE_SIZE = 500
PAGE_S = 1.0  # a list of several pages is requested again only after so long for each page
PAUSE_MAX_S = 5.0
# two calls of at most 10 s, plus name resolution and credential plugins, which have no deadline of readygate's
STUCK_AFTER_S = 60.0
RETRY = Backoff(first_s=1.0, limit_s=32.0, jitter=0.5)
EARLY_S = 5.0  # after a failure, if the reflectors have received an answer since


class Lister(Protocol):
    """The part of kube.listing.ListerWatcher that is used here."""

    def page(self, *, limit: int | None, more: str = "") -> Page[observed.Lease]: ...
    def close(self) -> None: ...


class Reading(Protocol):
    """The part of cluster.heartbeats.Heartbeats that is used here."""

    def leases_due_at(self) -> float: ...
    def read_leases(self, leases: Sequence[observed.Lease], began: float) -> None: ...
    def leases_unread(self) -> None: ...
    def answered_since(self) -> bool: ...


class LeaseReader:
    """A Service with one thread, which calls turn(). look_every_s: how soon a list is read after it became due; less
    than what then remains of BLIND_LIMIT_S."""

    name = "lease-reader"

    def __init__(
        self,
        lister: Lister,
        beats: Reading,
        *,
        look_every_s: float = PAUSE_MAX_S,
        monotonic: Callable[[], float] = time.monotonic,
        random: Callable[[], float] = random_module.random,
    ) -> None:
        self._lister = lister
        self._beats = beats
        self._look_every_s = look_every_s
        self._monotonic = monotonic
        self._random = random
        self._retry = RETRY
        self._not_before = self._early = -math.inf
        self._loop = Loop(
            "lease-reader", self.turn, stuck_after_s=STUCK_AFTER_S, unblock=lister.close, monotonic=monotonic
        )
        self.start, self.stop, self.wake = self._loop.start, self._loop.stop, self._loop.wake
        self.healthy = self._loop.healthy

    def turn(self) -> float:
        """Lists if it is time to. Returns the seconds until the next call."""
        not_before = self._early if self._beats.answered_since() else self._not_before
        wait_s = max(self._beats.leases_due_at(), not_before) - self._monotonic()
        if wait_s > 0:
            return min(wait_s, self._look_every_s)
        try:
            began, leases, pages = self._read()
        except (KubeError, CredentialsInvalid) as e:
            self._beats.leases_unread()
            pause_s, self._retry = self._retry.next(self._random, getattr(e, "retry_after_s", None))
            self._not_before = self._early = self._monotonic() + pause_s
            if not isinstance(e, Forbidden | Unauthorized | CredentialsInvalid):
                self._early = min(self._not_before, self._monotonic() + EARLY_S)
            if self._retry.failures == 1 and not self._loop.stopping:
                log.warning("Leases not read", extra={"cause": type(e).__name__, "error": str(e)})
            return min(pause_s, self._look_every_s)
        if self._retry.failures:
            log.info("Leases read again")
        self._retry = self._retry.reset()
        self._not_before = self._early = began + (pages * PAGE_S if pages > 1 else 0.0)
        self._beats.read_leases(leases, began)
        return self._look_every_s

    def _read(self) -> tuple[float, list[observed.Lease], int]:
        """Returns the Leases, when they were requested, and the number of pages. All pages are of the version of the
        first."""
        began, page = self._first()
        leases, pages = list(page.items), 1
        while page.more:
            self._loop.progressed()
            pages += 1
            try:
                page = self._lister.page(limit=PAGE_SIZE, more=page.more)
            except Gone:  # that version was compacted in the meantime: one page, which cannot be
                began = self._monotonic()
                leases, page = [], self._lister.page(limit=None)
            leases.extend(page.items)
        return began, leases, pages

    def _first(self) -> tuple[float, Page[observed.Lease]]:
        """The first page has a second try, because the idle connection may be closed."""
        began = self._monotonic()
        try:
            return began, self._lister.page(limit=PAGE_SIZE)
        except KubeError:
            if self._retry.failures:
                raise
            self._loop.progressed()
            began = self._monotonic()
            return began, self._lister.page(limit=PAGE_SIZE)
