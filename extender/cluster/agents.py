"""Heartbeats of the agents on the nodes: their Leases in our own namespace, beside those of the kubelets.

An agent writes its Lease every few seconds, a kubelet every ten; so a node that dies closes within ten seconds, not 25.
Ages count by the same rules (`heartbeat`): by our own clock, only while all was read that there was to read, and of
many that fall silent together none closes its node by that alone: its kubelet's Lease, or its Node, says the rest. All
silent at once is more likely our own blindness, or a namespace in which nobody may write.

A node without such a Lease is not judged by it, so agents may come and go one by one.
"""

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from extender.cluster import observed
from extender.cluster.heartbeat import Heartbeats, Renewal

LOOKS_APART_S = 0.5
WATCH_STALE_S = 30.0  # a watch that has been silent for so long closes no node, nor keeps one closed


class Watch(Protocol):
    """What is asked of the reflector of these Leases; monotonic seconds, None before the first."""

    last_word: float | None
    list_began: float | None

    @property
    def counters(self) -> Mapping[str, int]: ...


class AgentBeats:
    """A store of kube.reflector, and what the reader beside it asks. Thread-safe; `on_change` is called outside of its
    lock. limit_s: age of a Lease beyond which its agent is silent. watch(): what fills us, None without."""

    def __init__(
        self,
        limit_s: float,
        *,
        on_change: Callable[[], None],
        on_read_due: Callable[[], None] = lambda: None,
        watch: Callable[[], Watch | None] = lambda: None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._on_change = on_change
        self._on_read_due = on_read_due
        self._watch = watch
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._beats = Heartbeats(limit_s)
        self._read_at = -math.inf  # beside the watch
        self._silent: frozenset[str] = frozenset()
        self._looked_at = -math.inf
        self._look_now = False
        self.listed = False  # once

    def replace(self, leases: Sequence[observed.Lease]) -> None:
        watch = self._watch()
        listed = [observed.listed_renewal(lease) for lease in leases if _of_an_agent(lease)]
        with self._lock:
            self._beats.replace(
                listed,
                self._monotonic(),
                began=None if watch is None else watch.list_began,
                after_failures=watch is not None and any(name.startswith("errors.") for name in watch.counters),
            )
            self._look_now = self.listed = True
        self._on_change()

    def upsert(self, lease: observed.Lease) -> None:
        """Wakes nobody but for a node whose agent was silent, or an age that is due earlier."""
        if not _of_an_agent(lease):
            return
        renewal: Renewal = observed.renewal(lease)
        with self._lock:
            earlier = self._beats.renewed(renewal, self._monotonic())
            if renewal.node in self._silent:
                self._look_now = True
            elif not earlier:
                return
        self._on_change()

    def remove(self, lease: observed.Lease) -> None:
        name = lease.metadata.name
        with self._lock:
            self._beats.heard(self._monotonic())
            self._beats.forget(name)
            if name not in self._silent:
                return
            self._look_now = True
        self._on_change()

    # The reader of Leases beside their watch.

    def leases_due_at(self) -> float:
        with self._lock:
            return self._beats.read_due_at()

    def read_leases(self, leases: Sequence[observed.Lease], began: float) -> None:
        renewals = [observed.renewal(lease) for lease in leases if _of_an_agent(lease)]
        with self._lock:
            self._read_at = began
            self._look_now |= self._beats.read_due_at() == -math.inf
            self._beats.read(renewals, began, self._monotonic())
            if not self._look_now:
                return
        self._on_change()

    def leases_unread(self) -> None:
        with self._lock:
            self._beats.failed()

    def heard_since(self) -> bool:
        with self._lock:
            return not self._beats.unheard

    # The index.

    def look(self, only_signal: Callable[[str], bool]) -> tuple[frozenset[str], float]:
        """Nodes whose agent is silent, and monotonic seconds when to look again.

        only_signal(node): whether nothing else says that the node is lost.
        """
        with self._lock:
            monotonic, watch = self._monotonic(), self._watch()
            contact = -math.inf if watch is None or watch.last_word is None else watch.last_word
            stale_at = max(contact, self._read_at) + WATCH_STALE_S
            if self._look_now or monotonic >= self._due_at(stale_at):
                self._looked_at, self._look_now = monotonic, False
                fresh = monotonic <= stale_at
                self._silent = frozenset(self._beats.lost(monotonic, only_signal)) if fresh else frozenset()
            found, due_at = self._silent, self._due_at(stale_at)
            read_due = self._beats.read_due_at() == -math.inf
        if read_due:
            self._on_read_due()
        return found, due_at

    def _due_at(self, stale_at: float) -> float:
        due_at = self._beats.due_at()
        if self._silent:
            due_at = min(due_at, stale_at)
        return max(due_at, self._looked_at + LOOKS_APART_S)


def _of_an_agent(lease: observed.Lease) -> bool:
    """Its holder is the node that it is named after; the Lease of the extenders themselves is held by one of them."""
    return lease.spec.holder_identity == lease.metadata.name
