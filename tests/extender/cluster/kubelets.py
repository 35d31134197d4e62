"""A cluster by a fake clock: kubelets that renew their Leases as client-go does, an API server that goes away, the
extender's own rooms from the Lease to the snapshot, and whose node is closed when."""

import heapq
import itertools
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec

from extender.cluster import observed
from extender.cluster.decider import Decider
from extender.cluster.lease_reader import LeaseReader
from extender.policy.decide import Rules
from extender.policy.gates import Gate
from extender.policy.reasons import OPEN
from extender.policy.snapshot import Board
from kube.errors import Unreachable
from kube.listing import Page
from kube.times import format_micro_time, format_time
from tests.extender.builders import lease, node, pod
from tests.extender.world import LeaseWatchOf, OneList
from tests.extender.world import kubelets as leases_of
from tools.kit.clock import Clock

EPOCH = 1_767_225_600.0  # 2026-01-01, the builders' time
INTERVAL_S, JITTER = 10.0, 0.04
TRIES, TIMEOUT_S, BACKOFF_S, BACKOFF_MAX_S = 5, 10.0, 0.2, 7.0  # client-go's lease controller
BOOKMARK_S = 60.0
RELIST_S = 1.0  # the reflectors are back so long after their API server


@dataclass(frozen=True)
class Away:
    """The API server from `start` to `end`. hangs: it takes connections and does not answer. of: for these nodes only,
    who then cannot reach it; empty: for all and for the extender."""

    start: float
    end: float
    hangs: bool = False
    of: frozenset[str] = frozenset()

    def at(self, time: float) -> bool:
        return self.start <= time < self.end


@dataclass
class Kubelet:
    """phase: of its first renewal. dies_at: it renews no more from then on. skew_s: of its clock."""

    name: str
    phase: float
    dies_at: float = float("inf")
    skew_s: float = 0.0
    lease: observed.Lease | None = None
    written: float = float("-inf")


@dataclass
class Cluster:
    """run() until a time; `closings` and `openings` are (time, node)."""

    kubelets: Sequence[Kubelet]
    away: Sequence[Away] = ()
    suspended: Sequence[tuple[float, float]] = ()  # the extender: stopped, and what comes waits to be read
    watch_broken: tuple[float, float, float] | None = None  # from, to, and a list each so many seconds instead
    seed: int = 1
    date_skew_s: float = 0.0  # of the clock of the HTTP answers, a proxy's say, to the one that writes managedFields
    controller: bool = True  # the node lifecycle controller
    heartbeat_limit_s: float = 24.0
    closings: list[tuple[float, str]] = field(default_factory=list)
    openings: list[tuple[float, str]] = field(default_factory=list)
    reads: int = 0

    def __post_init__(self) -> None:
        self.clock = Clock(0.0)
        self.random = random.Random(self.seed)
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._turn_at = float("inf")
        self.start_extender()
        for kubelet in self.kubelets:
            self.at(kubelet.phase, lambda one=kubelet: self._sync(one))
        for away in self.away:
            if not away.of:
                self.at(away.end + RELIST_S * self.random.random(), self._lists)
        if self.watch_broken is not None:
            start, end, each = self.watch_broken
            for k in range(int((end - start) / each) + 1):
                self.at(start + k * each, self._lists)
        self.at(BOOKMARK_S, self._bookmark)
        if self.controller:
            self.at(5.0, self._control)

    # The extender.

    def start_extender(self, *, after_failures: bool = False) -> None:
        """A new one, which has listed everything."""
        self.watch = LeaseWatchOf()
        if after_failures:
            self.watch.counters["errors.ConnectionRefused"] = 1
        self.leases = leases_of(
            self.heartbeat_limit_s,
            clock=self.clock,
            on_change=lambda: self._wake(self.clock.time),
            on_read_due=lambda: self.at(self._awake(self.clock.time), self.lease_reader.turn),
            watch=lambda: self.watch,
        )
        self.index = OneList(
            daemon_set=None,
            on_change=lambda: self._wake(self.clock.time),
            kubelets=self.leases,
            monotonic=self.clock,
            wall=lambda: EPOCH + self.clock.time,
        )
        self.board = Board(lambda _: None)
        self.decider = Decider(
            self.index,
            Rules((Gate("health", missing_grace_s=30.0),)),
            self.board,
            on_release=lambda _: None,
            monotonic=self.clock,
            sleep=lambda _: None,
        )
        self._reasons: dict[str, str] = {}
        self.lease_reader = LeaseReader(self, self.leases, monotonic=self.clock, random=self.random.random)
        self._generation = object()
        self._ready: dict[str, str] = {}
        self.index.replace_nodes([node(one.name, Ready="True") for one in self.kubelets])
        self.index.replace_pods([pod(one.name) for one in self.kubelets])
        self.list_leases()
        self._read(self._generation)

    def list_leases(self) -> None:
        self.watch.last_word = self.watch.list_began = self.clock.time
        self.watch.list_ahead_s = math.floor(EPOCH + self.clock.time + self.date_skew_s) - self.clock.time
        self.leases.replace(self._leases())

    def page(self, *, limit: int | None, more: str = "") -> Page[observed.Lease]:
        """What the LeaseReader reads. Its pages come at one time, so they are of one version, as the API server's."""
        self.reads += 1
        if self._is_away():
            raise Unreachable(path="/leases", message="away")
        leases, start = self._leases(), int(more or 0)
        end = len(leases) if limit is None else min(start + limit, len(leases))
        return Page(leases[start:end], "1", str(end) if end < len(leases) else "", 0, "Lease")

    def close(self) -> None:
        pass

    # Time.

    def at(self, time: float, event: Callable[[], None]) -> None:
        heapq.heappush(self._events, (time, next(self._order), event))

    def run(self, until: float) -> "Cluster":
        while min(self._events[0][0] if self._events else until, self._turn_at) < until:
            if self._turn_at <= (self._events[0][0] if self._events else until):
                self.clock.time = max(self.clock.time, self._turn_at)
                self._turn()
            else:
                time, _, event = heapq.heappop(self._events)
                self.clock.time = max(self.clock.time, time)
                event()
        self.clock.time = until
        return self

    def _wake(self, time: float) -> None:
        self._turn_at = min(self._turn_at, self._awake(time))

    def _awake(self, time: float) -> float:
        """When the extender can do what is due at this time."""
        return next((end for start, end in self.suspended if start <= time < end), time)

    def _turn(self) -> None:
        self._turn_at = float("inf")
        self._wake(self.clock.time + self.decider.turn())
        reasons = self.board.snapshot.reasons
        if reasons is not self._reasons:
            for name in reasons:
                was_open, is_open = self._reasons.get(name, OPEN) == OPEN, reasons[name] == OPEN
                if was_open and not is_open:
                    self.closings.append((self.clock.time, name))
                elif is_open and not was_open:
                    self.openings.append((self.clock.time, name))
            self._reasons = dict(reasons)

    def _read(self, generation: object) -> None:
        if generation is self._generation:
            self.at(self._awake(self.clock.time + self.lease_reader.turn()), lambda: self._read(generation))

    # The API server.

    def _is_away(self, of: str = "") -> bool:
        time = self.clock.time
        return any(away.at(time) and (not away.of or of in away.of) for away in self.away)

    def _leases(self) -> list[observed.Lease]:
        return [one.lease for one in self.kubelets if one.lease is not None]

    def _lists(self) -> None:
        if not self._is_away():
            self.at(self._awake(self.clock.time), self.list_leases)

    def _write(self, kubelet: Kubelet) -> None:
        time = self.clock.time
        kubelet.written = time
        kubelet.lease = line = renewed(kubelet, time)
        if self.watch_broken is not None and self.watch_broken[0] <= time < self.watch_broken[1]:
            return
        awake = self._awake(time)
        if awake > time:
            self.at(awake, lambda: self._line(line))
        else:
            self._line(line)

    def _line(self, lease: observed.Lease) -> None:
        self.watch.last_word = self.clock.time
        self.leases.upsert(lease)

    def _bookmark(self) -> None:
        self.at(self.clock.time + BOOKMARK_S, self._bookmark)
        if not self._is_away():
            self.watch.last_word = self.clock.time

    def _control(self) -> None:
        """What the node lifecycle controller does each 5 s."""
        self.at(self.clock.time + 5.0, self._control)
        if self._is_away():
            return
        for one in self.kubelets:
            ready = "Unknown" if self.clock.time - max(one.written, 0.0) > 50.0 else "True"
            if self._ready.get(one.name, "True") != ready:
                self._ready[one.name] = ready
                self.index.upsert_node(node(one.name, Ready=ready))

    # A kubelet.

    def _sync(self, kubelet: Kubelet) -> None:
        """One turn of the lease controller."""
        self._try(kubelet, tries=TRIES, sleep_s=BACKOFF_S)

    def _try(self, kubelet: Kubelet, *, tries: int, sleep_s: float) -> None:
        time = self.clock.time
        if time >= kubelet.dies_at:
            return
        away = next((one for one in self.away if one.at(time) and (not one.of or kubelet.name in one.of)), None)
        if away is None:
            self._write(kubelet)
            self.at(time + INTERVAL_S * (1 + JITTER * self.random.random()), lambda: self._sync(kubelet))
        elif away.hangs:
            again = min(away.end, time + TIMEOUT_S)
            self.at(again, lambda: self._try(kubelet, tries=tries - 1, sleep_s=sleep_s))
        else:
            self.at(
                time + sleep_s,
                lambda: self._try(kubelet, tries=0, sleep_s=min(2 * sleep_s, BACKOFF_MAX_S)),
            )


def kubelets(count: int, *, dies: dict[int, float] | None = None, seed: int = 1) -> list[Kubelet]:
    """n0, n1, ...: each with a phase of its own. dies: at what time, by number."""
    chance = random.Random(seed)
    return [Kubelet(f"n{i}", chance.uniform(0.0, INTERVAL_S), (dies or {}).get(i, float("inf"))) for i in range(count)]


def renewed(kubelet: Kubelet, time: float) -> observed.Lease:
    """Its Lease at this time. Decoded once, for there are thousands."""
    replace = msgspec.structs.replace
    before = kubelet.lease or lease(kubelet.name, "", written="")
    [fields] = before.metadata.managed_fields or ()
    fields = replace(fields, time=format_time(EPOCH + time))
    return replace(
        before,
        metadata=replace(before.metadata, managed_fields=[fields]),
        spec=replace(before.spec, renew_time=format_micro_time(EPOCH + time + kubelet.skew_s)),
    )
