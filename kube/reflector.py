"""Keeps a store equal to the API server, over cuts, expiry and restarts: list, then watch, for ever.

`kube.watching` decides what follows from what; this module has the clock and the order of steps, in a thread of
`component.loop`. A store is called from this thread only, with no lock held.
"""

import logging
import math
import random as random_module
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

from component.loop import Loop
from kube import watching
from kube.errors import CredentialsInvalid, Gone, KubeError, MalformedReply, Unauthorized, was_sent
from kube.listing import HasMetadata, ListerWatcher, Page, Store
from kube.objects import UNREADABLE
from kube.retry_policy import ASKED_LIMIT_S, STEADY_S, Guard, RetryPolicy
from kube.server_health import ServerHealth
from kube.staleness import Lag
from kube.watching import OPERATIONS, Change, Failure, Next, Operation, Skip

__all__ = ["ListerWatcher", "Reflector", "Store"]

log = logging.getLogger(__name__)

FIRST_PAGE_SIZE = 500
RELIST_PAGE_SIZE = 100  # decoding a page holds the interpreter; at the start nobody is served yet
WATCH_TIMEOUT_S = (300, 600)  # a random time between them: keeps replicas apart, and spreads them over API servers
LOOK_S = 10.0  # how often a quiet watch checks whether a list is due
GRACE_S = 30.0  # added to the longest time of a step, before the thread counts as stuck

T = TypeVar("T", bound=HasMetadata)


class Reflector(Generic[T]):
    """One thread from start() to stop(). All properties may be read from any thread at any time.

    peers: shared by the reflectors of one server. rest_s: how long the lines of a flood may wait to be taken together;
    the first after a pause never waits. stated: called with listed and received objects; returns the RFC 3339 time at
    which an object was written, if it has one. first_pause_s: from start() to the first request. counters: relists,
    watch_restarts, events (lines applied), bookmarks, skipped (objects and lines passed over), refused (by the store),
    rewinds, and `errors.<Cause>` for each cause of a failure."""

    def __init__(
        self,
        lister_watcher: ListerWatcher[T],
        store: Store[T],
        *,
        name: str,
        peers: ServerHealth | None = None,
        rest_s: float = 0.01,
        stated: Callable[[T], str | None] | None = None,
        first_pause_s: float = 0.0,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        random: Callable[[], float] = random_module.random,
        silence_limit_s: float = 70.0,
    ) -> None:
        self._lister_watcher = lister_watcher
        self._store: Store[T] = store
        self._name = name
        self._peers = peers if peers is not None else ServerHealth()
        self._rest_s = rest_s
        self._stated = stated
        self._monotonic = monotonic
        self._wall = wall
        self._random = random
        self._silence_limit_s = silence_limit_s
        self._synced = threading.Event()
        self._loop = Loop(
            f"reflector-{name}",
            self._turn,
            stuck_after_s=silence_limit_s + GRACE_S,
            first_pause_s=first_pause_s,
            unblock=lister_watcher.close,
            at_end=lambda: log.info("reflector stopped", extra={"reflector": name}),
            monotonic=monotonic,
        )
        self._next: Next | None = None  # None: the first list
        self._pace, self._guard = RetryPolicy(), Guard()
        self._error: Exception | None = None  # of the last step, if it failed
        self._requests = 0  # of this step
        self._failing = False  # nothing was received since the last failure
        self._moves = self._bookmarks = 0  # events of this watch that moved the version; bookmarks before it
        self._empty_watches = 0  # consecutive watches that ended at once, with bookmarks at most
        self._resource_version = self._kind = ""
        self._refused_since: float | None = None
        self._lag = Lag()
        self._skips_logged: set[str] = set()
        self._failure = ""  # cause logged last; empty without a failure
        self._counters = dict.fromkeys(
            ("relists", "watch_restarts", "events", "bookmarks", "skipped", "refused", "rewinds"), 0
        )
        # The last answer: a page of a list that has not failed, an opened watch, a line; monotonic.
        self.last_contact: float | None = None
        self.last_word: float | None = None  # the last answer about the state: a line, a whole list; monotonic
        self.list_began: float | None = None  # the last list in the store: its state is no older; monotonic
        # How far the server's clock is ahead of the monotonic one, by its first answer; None: unknown.
        self.list_ahead_s: float | None = None

    @property
    def name(self) -> str:
        return self._name

    @property
    def synced(self) -> bool:
        """Returns whether the store has been filled once."""
        return self._synced.is_set()

    @property
    def resource_version(self) -> str:
        """The version reached so far; everything up to it is in the store."""
        return self._resource_version

    @property
    def counters(self) -> Mapping[str, int]:
        return dict(self._counters)

    def start(self) -> None:
        log.info("reflector started", extra={"reflector": self._name, "path": self._lister_watcher.path})
        self._loop.start()

    def stop(self) -> None:
        """Stops: unblocks the socket, and joins for at most a second. May be called twice, also without start()."""
        self._loop.stop()

    def wait_synced(self, timeout_s: float) -> bool:
        return self._synced.wait(timeout_s)

    def age_s(self, monotonic: float) -> float:
        """Returns the seconds since the server's last answer; infinite before the first."""
        return math.inf if self.last_contact is None else max(0.0, monotonic - self.last_contact)

    @property
    def lag_s(self) -> float | None:
        """Returns how old recent events were when they came; None if no object states when it was written."""
        return self._lag.s(self._monotonic())

    def healthy(self, monotonic: float) -> bool:
        """Returns whether the thread lives and does not hang. An unreachable API server does not count as unhealthy."""
        return self._loop.healthy(monotonic)

    def _turn(self) -> float:
        """Makes one step: a list with its watch, or a watch. Returns the seconds until the next one."""
        self._peers.leave(self)
        self._requests, self._error = 0, None
        try:
            self._next = self._take(self._next)
        except Exception as e:  # noqa: BLE001 - a bug of ours is counted and paced like any failure
            self._next = self._failed(e, Next.LIST_LATER)
        if self._error is None or self._loop.stopping:
            return 0.0
        return self._pause_s(self._error)

    def _pause_s(self, error: Exception) -> float:
        """Returns the pause after a failure. The first watch that gets an answer ends it, unless the server requested
        it."""
        asked_s, monotonic = getattr(error, "retry_after_s", None), self._monotonic()
        pause_s, self._pace = self._pace.failed(
            sent=was_sent(error), asked_s=asked_s, monotonic=monotonic, random=self._random
        )
        if pause_s is None:
            requests = self._requests * (2 if isinstance(error, Unauthorized) else 1)  # the client retries once
            turn_s = self._peers.turn_s(max(requests, 1), monotonic, self._random)
            pause_s = max(turn_s, min(asked_s or 0.0, ASKED_LIMIT_S))
        self._failing = True
        if asked_s is None:
            self._peers.wait(self, self._loop.wake)
        return pause_s

    def _take(self, step: Next | None) -> Next:
        if step in (None, Next.LIST, Next.LIST_LATER):
            failed = self._list()
            if failed is not None:
                return failed
        else:
            self._count("watch_restarts")
        return self._watch()

    def _list(self) -> Next | None:
        """Lists. Returns None if the store was replaced."""
        if self.synced:
            self._count("relists")
        began, contact = self._monotonic(), self.last_contact
        try:
            items, last_page, skipped, ahead_s = self._pages()
        except (KubeError, CredentialsInvalid) as e:
            self.last_contact = contact  # half of a list is in no store, which becomes older
            return self._failed(e, Next.LIST_LATER)
        version, now = last_page.resource_version, self._monotonic()
        last, since = self._resource_version, self._refused_since
        if not watching.believe_list(version=version, last=last, refused_since=since, monotonic=now):
            self._refused_since = now if since is None else since
            older = f"{version} < {last}"
            error = MalformedReply(path=self._lister_watcher.path, reason="OlderList", message=older)
            return self._failed(error, Next.LIST_LATER)
        if self._refused_since is not None and watching.is_older(version, self._resource_version):
            self._count("rewinds")
            log.warning("resourceVersion went back; accepting the restored server", extra={"reflector": self._name})
        self._refused_since = None
        self.list_began, self.list_ahead_s = began, ahead_s
        try:
            self._store.replace(items)
        except BaseException:
            self.last_contact = contact
            raise
        self._kind = last_page.kind
        self._resource_version = version
        self.last_word = now
        self._synced.set()
        guard = self._guard.listed()
        self._guard = guard.troubled(now) if skipped else guard
        if self._stated is not None:  # times in a list are not those of new events
            for item in items:
                self._stated(item)
        return None

    def _pages(self) -> tuple[list[T], Page[T], int, float | None]:
        """Returns all items, the last page, which has the resourceVersion (the same on each), how many were left out,
        and the new `list_ahead_s`."""
        limit = RELIST_PAGE_SIZE if self.synced else FIRST_PAGE_SIZE
        page = self._page(limit, "")
        ahead_s = None if page.date is None else page.date - self._monotonic()
        items, skipped = list(page.items), page.skipped
        while page.more:
            try:
                page = self._page(limit, page.more)
            except Gone:
                # The token expired during the list. One more try in one piece, which cannot expire (client-go's pager).
                self._count("errors.Gone")
                page = self._page(None, "")
                items, skipped = [], 0
            items.extend(page.items)
            skipped += page.skipped
        return items, page, skipped, ahead_s

    def _page(self, limit: int | None, more: str) -> Page[T]:
        self._loop.progressed()
        self._requests += 1
        page = self._lister_watcher.page(limit=limit, more=more)
        self._heard()
        if page.skipped:
            self._count("skipped", page.skipped)
            log.warning("objects skipped", extra={"reflector": self._name, "cause": "type", "count": page.skipped})
        return page

    def _watch(self) -> Next:
        low, high = WATCH_TIMEOUT_S
        timeout_s = int(low + self._random() * (high - low))
        self._loop.progressed()
        self._requests += 1
        began = self._monotonic()
        try:
            stream = self._lister_watcher.watch(
                self._resource_version, timeout_s=timeout_s, silence_limit_s=self._silence_limit_s
            )
        except (KubeError, CredentialsInvalid) as e:
            return self._failed(e, watching.after_open_error(e))
        self._heard()
        opened, self._moves, self._bookmarks = self._monotonic(), 0, self._counters["bookmarks"]
        with stream:
            try:
                for lines in stream.batches(rest_s=self._rest_s, look_s=LOOK_S):
                    following = self._take_over(lines)
                    if following is not None:
                        return following
            except KubeError as e:
                return self._failed(e, watching.after_stream_error(e))
            finally:
                if self._monotonic() - opened >= STEADY_S:
                    self._pace = self._pace.steady()
        return self._ended(self._monotonic() - began)

    def _ended(self, lasted_s: float) -> Next:
        """The server has ended the watch, or it was cut."""
        empty = lasted_s < watching.SHORT_WATCH_S and not self._moves
        self._empty_watches = self._empty_watches + 1 if empty else 0
        bookmarks = self._counters["bookmarks"] - self._bookmarks
        following = watching.after_end(empty_in_a_row=self._empty_watches, bookmarks=bookmarks)
        if following is Next.WATCH:
            self._recovered()
            return following
        return self._failed(MalformedReply(path=self._lister_watcher.path, reason="VeryShortWatch"), following)

    def _take_over(self, lines: Sequence[bytes]) -> Next | None:
        """Applies the lines of the watch. Returns None to go on reading."""
        stated = None
        self._loop.progressed()
        if lines:
            self._heard()
            self.last_word = self.last_contact
        for line in lines:
            event = self._lister_watcher.decode_line(line, self._kind)
            # A line that is clearly an event of this kind needs no second check.
            if event is not None and event.type in OPERATIONS:
                item, version = event.object, event.object.metadata.resource_version
                if version and not watching.is_older(version, self._resource_version):
                    self._hand_over(OPERATIONS[event.type], item)
                    self._move_to(version)
                    if self._stated is not None:
                        told = self._stated(item)
                        stated = told if told and event.type == "MODIFIED" else stated
                    continue
            following = self._look_closer(line)
            if following is not None:
                return following
        if stated is not None:
            self._lag.saw(stated, self._wall(), self._monotonic())
        return Next.LIST if self._monotonic() >= self._guard.due_at else None

    def _look_closer(self, line: bytes) -> Next | None:
        path, last = self._lister_watcher.path, self._resource_version
        outcome = watching.read_event(line, kind=self._kind, last=last, path=path)
        if isinstance(outcome, Failure):
            return self._failed(outcome.error, outcome.next_step)
        if isinstance(outcome, Skip):
            self._skipped(outcome.cause)
            return None
        unread = self._apply(line, outcome)
        return None if unread is None else self._failed(unread, Next.LIST_LATER)

    def _apply(self, line: bytes, change: Change) -> KubeError | None:
        """Applies an event. Returns an error if the event must not be left out."""
        if change.note:
            self._skipped(change.note)
        if change.operation is Operation.NONE and not change.note:
            self._count("bookmarks")
            self._resource_version = change.resource_version
            self._recovered()
            return None
        if change.operation is Operation.NONE:
            self._count("events")
        else:
            try:
                item = self._lister_watcher.decode_event(line)
            except UNREADABLE as e:
                self._skipped("type")
                if change.operation is Operation.REMOVE:
                    # The deleted object is unknown; a new list is needed, or it would stay healthy for ever.
                    return MalformedReply(path=self._lister_watcher.path, reason="UnreadDeletion", message=str(e))
                self._guard = self._guard.troubled(self._monotonic())
            else:
                self._hand_over(change.operation, item)
        self._move_to(change.resource_version)  # only now: a stop in between repeats the event
        self._recovered()
        return None

    def _hand_over(self, operation: Operation, item: T) -> None:
        try:
            if operation is Operation.UPSERT:
                self._store.upsert(item)
            else:
                self._store.remove(item)
        except Exception:
            self._count("refused")
            self._guard = self._guard.troubled(self._monotonic())
            log.exception("the store refused an object", extra={"reflector": self._name})
        self._counters["events"] += 1
        self._recovered()

    def _move_to(self, version: str) -> None:
        self._moves += version != self._resource_version
        self._resource_version = version

    def _heard(self) -> None:
        """The server has answered."""
        self.last_contact = self._monotonic()
        if self._failing:
            self._failing = False
            self._peers.answered(self.last_contact)

    def _failed(self, error: Exception, following: Next) -> Next:
        cause = error.reason if isinstance(error, MalformedReply) else type(error).__name__
        if self._loop.stopping:
            return following
        self._count(f"errors.{cause}")
        self._error = error if following in (Next.WATCH_LATER, Next.LIST_LATER) else None
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
        if cause not in self._skips_logged:  # a broken object comes again with each of its changes
            self._skips_logged.add(cause)
            log.warning("watch event skipped", extra={"reflector": self._name, "cause": cause})

    def _count(self, key: str, by: int = 1) -> None:
        self._counters[key] = self._counters.get(key, 0) + by
