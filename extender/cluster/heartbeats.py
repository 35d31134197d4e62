"""Heartbeats of one kind, by Leases: those of the kubelets in kube-node-lease, those of the agents on the nodes in our
own namespace. A store for each: how old the Lease of each node is, and whose is too old.

Ages count by the rules of `heartbeat`: by our own clock, only while all was read that there was to read, and of many
that fall silent together none is lost by that alone. All at once is more likely our own blindness, or a namespace in
which nobody may write. A node without such a Lease is not judged by it, so agents may come and go one by one.

An agent writes its Lease every few seconds, a kubelet every ten; so a node that dies closes within ten seconds, not 25.
"""

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from extender.cluster import observed
from extender.cluster.lease_age import INTERVALS_MIN, LeaseAges

LOOKS_APART_S = 0.5  # ages are looked at no more often: with thousands of Leases some are always about to be due


def of_an_agent(lease: observed.Lease) -> bool:
    """Its holder is the node that it is named after; the Lease of the extenders themselves is held by one of them."""
    return lease.spec.holder_identity == lease.metadata.name


class Kind(NamedTuple):
    """stale_s: a watch that has been silent for so long closes no node, nor keeps one closed. intervals: as of
    `heartbeat`. counts: whether a Lease is one of these."""

    stale_s: float
    intervals: float = INTERVALS_MIN
    counts: Callable[[observed.Lease], bool] | None = None


KUBELETS = Kind(120.0)
# With three, agents that become slower are none that are silent: each says so itself, whatever limit the extender has.
AGENTS = Kind(30.0, 3.0, of_an_agent)


class Watch(Protocol):
    """What is asked of the reflector of these Leases. last_word, list_began: monotonic seconds, None before the
    first. list_ahead_s: as of Reflector."""

    last_word: float | None
    list_began: float | None
    list_ahead_s: float | None

    @property
    def counters(self) -> Mapping[str, int]: ...


class Heartbeats:
    """A store of kube.reflector, what the reader beside it asks, and what the index asks. Thread-safe.

    limit_s: age of a Lease from which on its node is lost. on_change(): called from any thread, outside of our lock,
    when it is time to look; on_read_due(): alike, when leases_due_at() has become now; neither may block. watch(): what
    fills us, None without.
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
        self._read_at = -math.inf  # beside the watch
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
        """Hundreds of times a second: wakes nobody but for a node that was lost, or an age that is due earlier."""
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
            self._beats.heard(self._monotonic())
            self._beats.forget(name)
            if name not in self._lost:
                return
            self._look_now = True
        self._on_change()

    def heard(self) -> None:
        """Of the API server, by another watch."""
        with self._lock:
            self._beats.heard(self._monotonic())

    # The reader of Leases beside their watch.

    def leases_due_at(self) -> float:
        """Monotonic seconds at which a list of the Leases beside their watch is wanted; infinite while none is."""
        with self._lock:
            return self._beats.read_due_at()

    def read_leases(self, leases: Sequence[observed.Lease], began: float) -> None:
        """All Leases, asked for at `began` (monotonic)."""
        renewals = [observed.renewal(lease) for lease in leases if self._is_ours(lease)]
        with self._lock:
            self._read_at = began
            self._look_now |= self._beats.read_due_at() == -math.inf
            self._beats.read(renewals, began, self._monotonic())
            if not self._look_now:
                return
        self._on_change()

    def leases_unread(self) -> None:
        """They could not be had."""
        with self._lock:
            self._beats.failed()

    def heard_since(self) -> bool:
        """Whether the API server was heard of since then."""
        with self._lock:
            return not self._beats.unheard

    # The index.

    @property
    def awaited(self) -> bool:
        """Whether the first list may still come."""
        return not self._listed and self._watch() is not None

    def look(self, only_signal: Callable[[str], bool]) -> tuple[frozenset[str], float]:
        """Nodes that are lost, as of the last look if it is not time for one; monotonic seconds when to look again.

        only_signal(node): whether nothing else says that the node is lost.
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
        """After a look, outside of the caller's lock: that look may have found that a list is wanted."""
        if self.leases_due_at() == -math.inf:
            self._on_read_due()

    # For people.

    def seen(self) -> dict[str, float]:
        """By name of its Lease: monotonic seconds of its last beat."""
        with self._lock:
            return self._beats.seen()

    def _is_ours(self, lease: observed.Lease) -> bool:
        return self._kind.counts is None or self._kind.counts(lease)

    def _due_at(self, stale_at: float) -> float:
        due_at = self._beats.due_at()
        if self._lost:
            due_at = min(due_at, stale_at)
        return max(due_at, self._looked_at + LOOKS_APART_S)
