"""What is behind the routes, put together: caches, index, clock, publisher. The bundle in app.extensions["readygate"].

Built before anything runs; start() belongs into the process that answers (threads do not survive a fork).
"""

import gc
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from flask import current_app

from extender.cluster import observed
from extender.cluster.index import NodeIndex
from extender.metrics import Metrics, Reading
from extender.outlets.kick import Publisher
from extender.policy import exempt
from extender.policy.verdict import OPEN, REASONS
from extender.settings import Settings
from kube import contract, paths
from kube.auth import Connection
from kube.client import Client
from kube.reflector import ListerWatcher, Reflector

log = logging.getLogger(__name__)

TICK_S = 1.0
TICK_LIMIT_S = 30.0  # a clock that has not ticked for so long is stuck
STOP_LIMIT_S = 1.0

NOT_SYNCED = "readygate: cache not synced: nodes and health pods have not been read from the API server yet"
STALE = "readygate: cache stale: nothing heard from the API server for longer than the limit"

T = TypeVar("T", contravariant=True)


class Cache(Protocol):
    """What is asked of a reflector here."""

    @property
    def synced(self) -> bool: ...
    @property
    def counters(self) -> Any: ...  # noqa: ANN401 - a mapping of counts
    def age_s(self, now: float) -> float: ...
    def healthy(self, now: float) -> bool: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...


class _Store:
    """Three functions of the index as the store of one reflector."""

    def __init__(
        self,
        replace: Callable[[Sequence[Any]], None],
        upsert: Callable[[Any], None],
        remove: Callable[[Any], None],
    ) -> None:
        self.replace = replace
        self.upsert = upsert
        self.remove = remove


class Clock:
    """Calls tick() once a second from start() to stop()."""

    def __init__(self, tick: Callable[[], None], *, now: Callable[[], float] = time.monotonic) -> None:
        self._tick = tick
        self._now = now
        self._stop = threading.Event()
        self._ticked_at = now()
        self._thread = threading.Thread(target=self._run, name="clock", daemon=True)

    def start(self) -> None:
        self._ticked_at = self._now()
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(STOP_LIMIT_S)

    def healthy(self, now: float) -> bool:
        return self._thread.is_alive() and now - self._ticked_at <= TICK_LIMIT_S

    def _run(self) -> None:
        while not self._stop.wait(TICK_S):
            try:
                self._tick()
            except Exception:
                log.exception("tick failed")
            else:
                self._ticked_at = self._now()


class Services:
    """index, exemptions, caches by name (pods, nodes, and leases if heartbeats count), metrics.

    start() begins all threads, stop() ends them within two seconds and may be called twice, also without start().
    """

    def __init__(self, settings: Settings, client: Client | None, *, now: Callable[[], float] = time.monotonic) -> None:
        """client: None leaves out everything that speaks with the API server (tests fill the index and caches)."""
        gate = settings.gate
        self.settings = settings
        self.now = now
        self.stopping = False
        self.exemptions = exempt.Rules(
            health_namespace=gate.health_pods.namespace,
            health_daemon_set=gate.health_pods.daemon_set,
            daemon_set_pods=gate.exempt.daemon_set_pods,
            namespaces=frozenset(gate.exempt.namespaces),
            label=gate.exempt.label or "",
        )
        self.caches: dict[str, Cache] = {}
        self.publisher: Publisher | None = None
        if client is not None and settings.kick.enabled:
            self.publisher = Publisher(client, repeat_after_s=settings.kick.repeat_after_seconds, now=now)
        self.index = NodeIndex(
            daemon_set=gate.health_pods.daemon_set,
            missing_grace_s=gate.missing_grace_seconds,
            heartbeat_limit_s=gate.heartbeat.limit_seconds,
            on_release=self._released,
            lease_contact=self._lease_contact,
            now=now,
        )
        self._leases: Reflector[observed.Lease] | None = None
        self._required: tuple[Cache, ...] = ()
        if client is not None:
            self._watch(client)
        self._clock = Clock(self.index.tick, now=now)
        self.metrics = Metrics(self._reading)

    def start(self) -> None:
        # What was loaded until here stays for ever: keep the collector from walking it again and again.
        gc.collect()
        gc.freeze()
        for cache in self.caches.values():
            cache.start()
        if self.publisher is not None:
            self.publisher.start()
        self._clock.start()

    def stop(self) -> None:
        self.stopping = True
        stops = [cache.stop for cache in self.caches.values()]
        stops.append(self._clock.stop)
        if self.publisher is not None:
            stops.append(self.publisher.stop)
        # Each may wait a second for its thread: side by side they need one in all.
        threads = [threading.Thread(target=stop) for stop in stops]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(2 * STOP_LIMIT_S)

    def wait_synced(self, timeout_s: float, *, give_up: Callable[[], bool] = lambda: False) -> bool:
        """Whether the caches were filled within the time. give_up: ends the waiting early."""
        deadline = self.now() + timeout_s
        pause = threading.Event()
        while not self.synced and self.now() < deadline and not give_up():
            pause.wait(0.02)
        return self.synced

    @property
    def synced(self) -> bool:
        return self.index.built

    def blind(self) -> str:
        """ "" if verdicts may be given, else the text that says why not. Called for every request."""
        if not self.index.built:
            return NOT_SYNCED
        limit_s = self.settings.gate.stale_limit_seconds
        now = self.now()
        for cache in self._required:
            if cache.age_s(now) > limit_s:
                return STALE
        return ""

    def unhealthy(self) -> list[str]:
        """Names of our own threads that have died or are stuck. An API server that is away is no reason."""
        now = self.now()
        parts: dict[str, Cache | Publisher | Clock] = {**self.caches, "clock": self._clock}
        if self.publisher is not None:
            parts["publisher"] = self.publisher
        return [name for name, part in parts.items() if not part.healthy(now)]

    def watch_with(self, caches: dict[str, Cache], required: Sequence[str]) -> None:
        """Take these caches; a verdict is refused when one of the required is stale."""
        self.caches = caches
        self._required = tuple(caches[name] for name in required)

    def _watch(self, client: Client) -> None:
        gate, index = self.settings.gate, self.index
        caches: dict[str, Cache] = {
            "pods": Reflector(
                ListerWatcher(
                    client,
                    paths.pods(gate.health_pods.namespace),
                    observed.Pod,
                    label_selector=gate.health_pods.label_selector,
                ),
                _Store(index.replace_pods, index.upsert_pod, index.remove_pod),
                name="pods",
            ),
            "nodes": Reflector(
                ListerWatcher(client, paths.nodes(), observed.Node),
                _Store(index.replace_nodes, index.upsert_node, index.remove_node),
                name="nodes",
            ),
        }
        if gate.heartbeat.limit_seconds > 0:
            self._leases = Reflector(
                ListerWatcher(client, paths.leases(contract.NAMESPACE_NODE_LEASE), observed.Lease),
                _Store(index.replace_leases, index.upsert_lease, index.remove_lease),
                name="leases",
            )
            caches["leases"] = self._leases
        self.watch_with(caches, required=("pods", "nodes"))

    def _released(self, node: str) -> None:
        if self.publisher is not None:
            self.publisher.ring(node)

    def _lease_contact(self) -> float | None:
        return None if self._leases is None else self._leases.last_contact

    def _reading(self) -> Reading:
        now = self.now()
        tally = Counter(self.index.reasons.copy().values())
        nodes = {"open": tally.get(OPEN, 0), **{reason: tally.get(reason, 0) for reason in REASONS}}
        caches = {name: (c.synced, c.age_s(now), c.counters) for name, c in self.caches.items()}
        return Reading(caches, nodes, {} if self.publisher is None else self.publisher.counters)


def build(settings: Settings, connection: Connection) -> Services:
    """The services for a connection to the API server; nothing is started or sent."""
    return Services(settings, Client(connection, user_agent=contract.NAME_EXTENDER))


def services() -> Services:
    """The bundle that create_app put into the application which answers now."""
    bundle: Services = current_app.extensions["readygate"]
    return bundle
