"""Heartbeats of one kind, as Leases: those of the kubelets in kube-node-lease, or those of the agents in readygate's
namespace. A thread-safe store of the age of each node's Lease.

`lease_age` has the rules: ages are measured by the extender's own clock and count only while everything was read. When
many nodes fall silent together, none is lost by that alone: more likely the extender sees no events, or nothing can be
written in that namespace. A node without such a Lease is not judged by it, so agents may come and go one by one.

An agent writes its Lease every few seconds, a kubelet every ten; so a dead node closes within ten seconds, not 25.
"""

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from extender.cluster import observed
from extender.cluster.lease_age import INTERVALS_MIN, LeaseAges

LOOKS_APART_S = 0.5  # seconds between checks of the ages: with thousands of Leases some are always about to expire


def of_an_agent(lease: observed.Lease) -> bool:
    """Returns whether the Lease is an agent's: its holder is the node in its name. An extender's Lease has another
    holder."""
    return lease.spec.holder_identity == lease.metadata.name


class Kind(NamedTuple):
    """A kind of heartbeats. stale_s: a watch that was silent for so long neither closes a node nor keeps one closed.
    intervals: as of `lease_age`. counts: whether a Lease is of this kind."""

    stale_s: float
    intervals: float = INTERVALS_MIN
    counts: Callable[[observed.Lease], bool] | None = None


KUBELETS = Kind(120.0)
# With three, an agent that becomes slower is not silent: its Lease holds its own interval, whatever limit the extender
# has.
AGENTS = Kind(30.0, 3.0, of_an_agent)


class Watch(Protocol):
    """The part of the Leases' reflector that is used here. last_word, list_began: monotonic seconds, None before the
    first. list_ahead_s: as of Reflector."""

    last_word: float | None
    list_began: float | None
    list_ahead_s: float | None

    @property
    def counters(self) -> Mapping[str, int]: ...


class Heartbeats:
    """A store of kube.reflector that the lease reader and the index also use. Thread-safe.

    limit_s: age of a Lease from which its node is lost. on_change(): called from any thread, outside the lock, when it
    is time to check; on_read_due(): alike, when leases_due_at() has become now; neither may block. watch(): the
    reflector, None without.
    """

    def __init__(
        self,
        limit_s: float,
        kind: Kind,
        *,
        on_change: Callable[[], None],
        on_read_due: Callable[[], None] = lambda: None,
        watch: Callable[[], Watch | None] = lambda: None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._kind = kind
        self._on_change = on_change
        self._on_read_due = on_read_due
        self._watch = watch
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._beats = LeaseAges(limit_s, kind.intervals)
        self._listed = False  # once
        self._read_at = -math.inf  # by the lease reader
        self._lost: frozenset[str] = frozenset()
        self._looked_at = -math.inf
        self._look_now = False  # a Lease has changed more than its age

    def replace(self, leases: Sequence[observed.Lease]) -> None:
        watch = self._watch()
        listed = [observed.listed_renewal(lease) for lease in leases if self._is_ours(lease)]
        with self._lock:
            self._beats.replace(
                listed,
                self._monotonic(),
                began=None if watch is None else watch.list_began,
                ahead_s=None if watch is None else watch.list_ahead_s,
                after_failures=watch is not None and any(name.startswith("errors.") for name in watch.counters),
            )
            self._look_now = self._listed = True
        self._on_change()

    def upsert(self, lease: observed.Lease) -> None:
        """Called hundreds of times a second: wakes a thread only for a node that was lost, or an age that expires
        earlier."""
        if not self._is_ours(lease):
            return
        renewal = observed.renewal(lease)
        with self._lock:
            earlier = self._beats.renewed(renewal, self._monotonic())
            if renewal.node in self._lost:
                self._look_now = True
            elif not earlier:
                return
        self._on_change()

    def remove(self, lease: observed.Lease) -> None:
        name = lease.metadata.name
        with self._lock:
            self._beats.answered(self._monotonic())
            self._beats.forget(name)
            if name not in self._lost:
                return
            self._look_now = True
        self._on_change()

    def answered(self) -> None:
        """Records an answer of the API server to another watch."""
        with self._lock:
            self._beats.answered(self._monotonic())

    # For the lease reader.

    def leases_due_at(self) -> float:
        """Returns the monotonic time at which an additional list of the Leases is needed; infinite while none is."""
        with self._lock:
            return self._beats.read_due_at()

    def read_leases(self, leases: Sequence[observed.Lease], began: float) -> None:
        """Takes an additional list. began: when it was requested, monotonic."""
        renewals = [observed.renewal(lease) for lease in leases if self._is_ours(lease)]
        with self._lock:
            self._read_at = began
            self._look_now |= self._beats.read_due_at() == -math.inf
            self._beats.read(renewals, began, self._monotonic())
            if not self._look_now:
                return
        self._on_change()

    def leases_unread(self) -> None:
        """Records that such a list failed."""
        with self._lock:
            self._beats.failed()

    def answered_since(self) -> bool:
        """Returns whether the API server has answered anything since then."""
        with self._lock:
            return not self._beats.unanswered

    # For the index.

    @property
    def awaited(self) -> bool:
        """Returns whether the first list may still come."""
        return not self._listed and self._watch() is not None

    def look(self, only_signal: Callable[[str], bool]) -> tuple[frozenset[str], float]:
        """Returns the lost nodes, as of the last check if none is due, and the monotonic time of the next check.

        only_signal(node): whether nothing else shows that the node is lost.
        """
        with self._lock:
            monotonic, watch = self._monotonic(), self._watch()
            contact = -math.inf if watch is None or watch.last_word is None else watch.last_word
            stale_at = max(contact, self._read_at) + self._kind.stale_s
            if self._look_now or monotonic >= self._due_at(stale_at):
                self._looked_at, self._look_now = monotonic, False
                fresh = monotonic <= stale_at
                self._lost = frozenset(self._beats.lost(monotonic, only_signal)) if fresh else frozenset()
            return self._lost, self._due_at(stale_at)

    def ask_if_due(self) -> None:
        """Requests a list if one is needed. Called after look(), outside the caller's lock."""
        if self.leases_due_at() == -math.inf:
            self._on_read_due()

    # For the status API.

    def seen(self) -> dict[str, float]:
        """Returns the monotonic time of the last heartbeat, by node."""
        with self._lock:
            return self._beats.seen()

    def _is_ours(self, lease: observed.Lease) -> bool:
        return self._kind.counts is None or self._kind.counts(lease)

    def _due_at(self, stale_at: float) -> float:
        due_at = self._beats.due_at()
        if self._lost:
            due_at = min(due_at, stale_at)
        return max(due_at, self._looked_at + LOOKS_APART_S)
