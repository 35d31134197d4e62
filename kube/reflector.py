"""Keeps a store equal to what the API server has, over cuts, expiry and restarts: list, then watch, for ever.

What follows from what is decided in `kube.watching`; here are the thread, the clock and the order of things. A store
is called from this thread only, with no lock held.
"""

import logging
import math
import random as random_module
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

from kube import watching
from kube.errors import CredentialsInvalid, Gone, KubeError, MalformedReply
from kube.listing import HasMetadata, ListerWatcher, Page
from kube.objects import UNREADABLE
from kube.watching import Backoff, Change, Failure, Next, Operation, Skip

__all__ = ["ListerWatcher", "Reflector", "Store"]

log = logging.getLogger(__name__)

FIRST_PAGE_SIZE = 500
RELIST_PAGE_SIZE = 100  # a page's decode holds the interpreter; at start nobody is served yet
WATCH_TIMEOUT_S = (300, 600)  # uniform between: keeps replicas apart, and spreads them over API servers
STOP_LIMIT_S = 1.0
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
        stop: threading.Event | None = None,
        now: Callable[[], float] = time.monotonic,
        wait: Callable[[float], bool] | None = None,
        random: Callable[[], float] = random_module.random,
        silence_limit_s: float = 70.0,
    ) -> None:
        """stop: set by stop(), so share it only among those who end together. wait: like `stop.wait`."""
        self._lister_watcher = lister_watcher
        self._store: Store[T] = store
        self._name = name
        self._stop = stop if stop is not None else threading.Event()
        self._now = now
        self._wait = wait if wait is not None else self._stop.wait
        self._random = random
        self._silence_limit_s = silence_limit_s
        self._synced = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"reflector-{name}", daemon=True)
        self._backoff = Backoff(last_start=now())
        self._resource_version = ""
        self._kind = ""
        self._refused_since: float | None = None
        self._asked_s: float | None = None  # Retry-After of the last failure
        self._due = math.inf  # when the next sign of life must have come
        self._skips_told: set[str] = set()
        self._trouble = ""  # cause logged last; empty while all is well
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
        self._due = self._now() + GRACE_S
        self._thread.start()

    def stop(self) -> None:
        """Ask, unblock the socket, join for at most a second. May be called twice, also without start()."""
        self._stop.set()
        self._lister_watcher.close()
        if self._thread.ident is not None and self._thread is not threading.current_thread():
            self._thread.join(STOP_LIMIT_S)

    def wait_synced(self, timeout_s: float) -> bool:
        return self._synced.wait(timeout_s)

    def age_s(self, now: float) -> float:
        """Seconds since the last line or list; infinite before the first."""
        return math.inf if self.last_contact is None else max(0.0, now - self.last_contact)

    def healthy(self, now: float) -> bool:
        """The thread lives and is not stuck in a step. An API server that is away does not make it unhealthy."""
        return self._thread.is_alive() and now <= self._due

    def _run(self) -> None:
        log.info("reflector started", extra={"reflector": self._name, "path": self._lister_watcher.path})
        step: Next | None = None  # the first list needs no pause
        while not self._stop.is_set():
            try:
                step = self._take(step)
            except Exception as e:  # noqa: BLE001 - top of the loop: a fault of ours must not end it
                step = self._failed(e, Next.LIST_LATER)
            if self._stop.is_set():
                break
            if step is not Next.WATCH and self._pause():
                break
        log.info("reflector stopped", extra={"reflector": self._name})

    def _take(self, step: Next | None) -> Next:
        if step is None or step is Next.LIST_LATER:
            failed = self._list()
            if failed is not None:
                return failed
        else:
            self._count("watch_restarts")
        return self._watch()

    def _pause(self) -> bool:
        """Wait as long as the back-off says. True: stop."""
        delay_s, self._backoff = self._backoff.step(self._now(), self._random, self._asked_s)
        self._asked_s = None
        self._due = self._now() + delay_s + GRACE_S
        return self._wait(delay_s)

    def _list(self) -> Next | None:
        """None: the store was replaced."""
        if self.synced:
            self._count("relists")
        try:
            items, last_page = self._pages()
        except (KubeError, CredentialsInvalid) as e:
            return self._failed(e, Next.LIST_LATER)
        version, now = last_page.resource_version, self._now()
        if not watching.believe_list(
            version=version, last=self._resource_version, refused_since=self._refused_since, now=now
        ):
            self._refused_since = now if self._refused_since is None else self._refused_since
            older = MalformedReply(
                path=self._lister_watcher.path, reason="OlderList", message=f"{version} < {self._resource_version}"
            )
            return self._failed(older, Next.LIST_LATER)
        if self._refused_since is not None and watching.is_older(version, self._resource_version):
            self._count("rewinds")
            log.warning("the server was set back in time and is believed", extra={"reflector": self._name})
        self._refused_since = None
        self._store.replace(items)
        self._kind = last_page.kind
        self._resource_version = version
        self.last_contact = now
        self._synced.set()
        return None

    def _pages(self) -> tuple[list[T], Page[T]]:
        """All items, and the last page, which tells the resourceVersion (the same on each)."""
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
        self._due = self._now() + self._silence_limit_s + GRACE_S
        page = self._lister_watcher.page(limit=limit, more=more)
        if page.skipped:
            self._count("skipped", page.skipped)
            log.warning("objects skipped", extra={"reflector": self._name, "cause": "type", "count": page.skipped})
        return page

    def _watch(self) -> Next:
        low, high = WATCH_TIMEOUT_S
        timeout_s = int(low + self._random() * (high - low))
        began = self._now()
        self._due = began + self._silence_limit_s + GRACE_S
        try:
            stream = self._lister_watcher.watch(
                self._resource_version, timeout_s=timeout_s, silence_limit_s=self._silence_limit_s
            )
        except (KubeError, CredentialsInvalid) as e:
            return self._failed(e, watching.after_open_error(e))
        seen = 0
        with stream:
            try:
                for line in stream:
                    self.last_contact = now = self._now()
                    self._due = now + self._silence_limit_s + GRACE_S
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
        following = watching.after_end(lasted_s=self._now() - began, events=seen)
        if following is not Next.WATCH:
            if self._stop.is_set():
                return following
            short = MalformedReply(path=self._lister_watcher.path, reason="VeryShortWatch")
            return self._failed(short, following)
        self._recovered()
        return following

    def _apply(self, line: bytes, change: Change) -> KubeError | None:
        """An error if the event told of something that cannot be left out."""
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
                    # Whom it was about is unknown to the store, and what is deleted must not stay healthy.
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
        if self._stop.is_set():
            return following
        self._count(f"errors.{cause}")
        self._asked_s = getattr(error, "retry_after_s", None)
        if cause != self._trouble:
            self._trouble = cause
            own_fault = not isinstance(error, KubeError | CredentialsInvalid)
            facts = {"reflector": self._name, "cause": cause, "error": str(error), "next": following.name}
            log.warning("reflector in trouble", extra=facts, exc_info=error if own_fault else None)
        return following

    def _recovered(self) -> None:
        if self._trouble:
            log.info("reflector recovered", extra={"reflector": self._name, "after": self._trouble})
            self._trouble = ""

    def _skipped(self, cause: str) -> None:
        self._count("skipped")
        if cause not in self._skips_told:  # an object that stays broken comes again with each of its changes
            self._skips_told.add(cause)
            log.warning("watch event skipped", extra={"reflector": self._name, "cause": cause})

    def _count(self, key: str, by: int = 1) -> None:
        self._counters[key] = self._counters.get(key, 0) + by
