"""Keeps a store equal to what the API server has, over cuts, expiry and restarts: list, then watch, for ever.

What follows from what is decided in `kube.watching`; here are the clock and the order of things, on a thread of
`component.loop`. A store is called from this thread only, with no lock held.
"""

import logging
import math
import random as random_module
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

from component.loop import Loop
from kube import watching
from kube.errors import CredentialsInvalid, Gone, KubeError, MalformedReply
from kube.listing import HasMetadata, ListerWatcher, Page
from kube.objects import UNREADABLE
from kube.watching import BACKOFF, Change, Failure, Next, Operation, Skip

__all__ = ["ListerWatcher", "Reflector", "Store"]

log = logging.getLogger(__name__)

FIRST_PAGE_SIZE = 500
RELIST_PAGE_SIZE = 100  # a page's decode holds the interpreter; at start nobody is served yet
WATCH_TIMEOUT_S = (300, 600)  # uniform between: keeps replicas apart, and spreads them over API servers
GRACE_S = 30.0  # beyond the longest time a step may take, before the thread counts as stuck

T = TypeVar("T", bound=HasMetadata)
C = TypeVar("C", contravariant=True)


class Store(Protocol[C]):
    """What the reflector fills. An exception is logged and counted; it stops neither the stream nor the thread."""

    def replace(self, items: Sequence[C]) -> None:
        """The whole truth, to be taken over atomically: what is missing was deleted, in a state nobody saw."""
        ...

    def upsert(self, item: C) -> None: ...

    def remove(self, item: C) -> None:
        """item: its last state. It may be unknown here."""
        ...


class Reflector(Generic[T]):
    """One thread from start() to stop(). All properties may be read from any thread at any time.

    counters: relists, watch_restarts, events (lines applied), bookmarks, skipped (objects and lines passed over),
    refused (by the store), rewinds, and `errors.<Cause>` for each cause of a failure.
    """

    def __init__(
        self,
        lister_watcher: ListerWatcher[T],
        store: Store[T],
        *,
        name: str,
        monotonic: Callable[[], float] = time.monotonic,
        random: Callable[[], float] = random_module.random,
        silence_limit_s: float = 70.0,
    ) -> None:
        self._lister_watcher = lister_watcher
        self._store: Store[T] = store
        self._name = name
        self._monotonic = monotonic
        self._random = random
        self._silence_limit_s = silence_limit_s
        self._synced = threading.Event()
        self._loop = Loop(
            f"reflector-{name}",
            self._turn,
            stuck_after_s=silence_limit_s + GRACE_S,
            unblock=lister_watcher.close,
            at_end=lambda: log.info("reflector stopped", extra={"reflector": name}),
            monotonic=monotonic,
        )
        self._next: Next | None = None  # None: the first list
        self._backoff = BACKOFF.reset(monotonic())
        self._resource_version = ""
        self._kind = ""
        self._refused_since: float | None = None
        self._asked_s: float | None = None  # Retry-After of the last failure
        self._skips_logged: set[str] = set()
        self._failure = ""  # cause logged last; empty while all is well
        self._counters = dict.fromkeys(
            ("relists", "watch_restarts", "events", "bookmarks", "skipped", "refused", "rewinds"), 0
        )
        self.last_contact: float | None = None

    @property
    def name(self) -> str:
        return self._name

    @property
    def synced(self) -> bool:
        """Whether the store has been filled once."""
        return self._synced.is_set()

    @property
    def resource_version(self) -> str:
        """Reached so far; everything up to it is in the store."""
        return self._resource_version

    @property
    def counters(self) -> Mapping[str, int]:
        return dict(self._counters)

    def start(self) -> None:
        log.info("reflector started", extra={"reflector": self._name, "path": self._lister_watcher.path})
        self._loop.start()

    def stop(self) -> None:
        """Ask, unblock the socket, join for at most a second. May be called twice, also without start()."""
        self._loop.stop()

    def wait_synced(self, timeout_s: float) -> bool:
        return self._synced.wait(timeout_s)

    def age_s(self, monotonic: float) -> float:
        """Seconds since the last line or list; infinite before the first."""
        return math.inf if self.last_contact is None else max(0.0, monotonic - self.last_contact)

    def healthy(self, monotonic: float) -> bool:
        """The thread lives and is not stuck in a step. An API server that is away does not make it unhealthy."""
        return self._loop.healthy(monotonic)

    def _turn(self) -> float:
        """One step: a list with its watch, or a watch. The seconds until the next one."""
        try:
            self._next = self._take(self._next)
        except Exception as e:  # noqa: BLE001 - a bug of ours is counted and paced like any failure
            self._next = self._failed(e, Next.LIST_LATER)
        if self._next is Next.WATCH or self._loop.stopping:
            return 0.0
        delay_s, self._backoff = self._backoff.next(self._random, self._asked_s, monotonic=self._monotonic())
        self._asked_s = None
        return delay_s

    def _take(self, step: Next | None) -> Next:
        if step is None or step is Next.LIST_LATER:
            failed = self._list()
            if failed is not None:
                return failed
        else:
            self._count("watch_restarts")
        return self._watch()

    def _list(self) -> Next | None:
        """None: the store was replaced."""
        if self.synced:
            self._count("relists")
        try:
            items, last_page = self._pages()
        except (KubeError, CredentialsInvalid) as e:
            return self._failed(e, Next.LIST_LATER)
        version, now = last_page.resource_version, self._monotonic()
        if not watching.believe_list(
            version=version, last=self._resource_version, refused_since=self._refused_since, monotonic=now
        ):
            self._refused_since = now if self._refused_since is None else self._refused_since
            older = MalformedReply(
                path=self._lister_watcher.path, reason="OlderList", message=f"{version} < {self._resource_version}"
            )
            return self._failed(older, Next.LIST_LATER)
        if self._refused_since is not None and watching.is_older(version, self._resource_version):
            self._count("rewinds")
            log.warning("resourceVersion went back; accepting the restored server", extra={"reflector": self._name})
        self._refused_since = None
        self._store.replace(items)
        self._kind = last_page.kind
        self._resource_version = version
        self.last_contact = now
        self._synced.set()
        return None

    def _pages(self) -> tuple[list[T], Page[T]]:
        """All items, and the last page, which has the resourceVersion (the same on each)."""
        limit = RELIST_PAGE_SIZE if self.synced else FIRST_PAGE_SIZE
        page = self._page(limit, "")
        items = list(page.items)
        while page.more:
            try:
                page = self._page(limit, page.more)
            except Gone:
                # The token expired while we read. Once, in one piece: that cannot expire half-way (client-go's pager).
                self._count("errors.Gone")
                page = self._page(None, "")
                items = []
            items.extend(page.items)
        return items, page

    def _page(self, limit: int | None, more: str) -> Page[T]:
        self._loop.progressed()
        page = self._lister_watcher.page(limit=limit, more=more)
        if page.skipped:
            self._count("skipped", page.skipped)
            log.warning("objects skipped", extra={"reflector": self._name, "cause": "type", "count": page.skipped})
        return page

    def _watch(self) -> Next:
        low, high = WATCH_TIMEOUT_S
        timeout_s = int(low + self._random() * (high - low))
        began = self._monotonic()
        self._loop.progressed()
        try:
            stream = self._lister_watcher.watch(
                self._resource_version, timeout_s=timeout_s, silence_limit_s=self._silence_limit_s
            )
        except (KubeError, CredentialsInvalid) as e:
            return self._failed(e, watching.after_open_error(e))
        opened, seen = self._monotonic(), 0
        with stream:
            try:
                for line in stream:
                    self.last_contact = self._monotonic()
                    self._loop.progressed()
                    outcome = watching.read_event(
                        line, kind=self._kind, last=self._resource_version, path=self._lister_watcher.path
                    )
                    if isinstance(outcome, Failure):
                        return self._failed(outcome.error, outcome.next_step)
                    if isinstance(outcome, Skip):
                        self._skipped(outcome.cause)
                        continue
                    unread = self._apply(line, outcome)
                    if unread is not None:
                        return self._failed(unread, Next.LIST_LATER)
                    seen += 1
                    self._recovered()
            except KubeError as e:
                return self._failed(e, watching.after_stream_error(e))
            finally:
                ended = self._monotonic()
                if ended - opened >= watching.STEADY_WATCH_S:
                    self._backoff = self._backoff.reset(ended)
        following = watching.after_end(lasted_s=self._monotonic() - began, events=seen)
        if following is not Next.WATCH:
            if self._loop.stopping:
                return following
            short = MalformedReply(path=self._lister_watcher.path, reason="VeryShortWatch")
            return self._failed(short, following)
        self._recovered()
        return following

    def _apply(self, line: bytes, change: Change) -> KubeError | None:
        """An error if the event is one that cannot be left out."""
        if change.note:
            self._skipped(change.note)
        if change.operation is Operation.NONE:
            self._count("bookmarks" if not change.note else "events")
        else:
            try:
                item = self._lister_watcher.decode_event(line)
            except UNREADABLE as e:
                self._skipped("type")
                if change.operation is Operation.REMOVE:
                    # We cannot tell which object was deleted; relist, or it would stay healthy for ever.
                    return MalformedReply(path=self._lister_watcher.path, reason="UnreadDeletion", message=str(e))
                self._resource_version = change.resource_version
                return None
            try:
                if change.operation is Operation.UPSERT:
                    self._store.upsert(item)
                else:
                    self._store.remove(item)
            except Exception:
                self._count("refused")
                log.exception("the store refused an object", extra={"reflector": self._name})
            self._count("events")
        self._resource_version = change.resource_version  # only now: a stop in between repeats the event
        return None

    def _failed(self, error: Exception, following: Next) -> Next:
        cause = error.reason if isinstance(error, MalformedReply) else type(error).__name__
        if self._loop.stopping:
            return following
        self._count(f"errors.{cause}")
        self._asked_s = getattr(error, "retry_after_s", None)
        if cause != self._failure:
            self._failure = cause
            own_fault = not isinstance(error, KubeError | CredentialsInvalid)
            facts = {"reflector": self._name, "cause": cause, "error": str(error), "next": following.name}
            log.warning("watch failed", extra=facts, exc_info=error if own_fault else None)
        return following

    def _recovered(self) -> None:
        if self._failure:
            log.info("watch restored", extra={"reflector": self._name, "after": self._failure})
            self._failure = ""

    def _skipped(self, cause: str) -> None:
        self._count("skipped")
        if cause not in self._skips_logged:  # an object that stays broken comes again with each of its changes
            self._skips_logged.add(cause)
            log.warning("watch event skipped", extra={"reflector": self._name, "cause": cause})

    def _count(self, key: str, by: int = 1) -> None:
        self._counters[key] = self._counters.get(key, 0) + by
