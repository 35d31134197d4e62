"""Wires everything behind the verbs: caches, index, decider, kick, outlets, and the feed to the status API.

Built before anything runs. start() is called in the process that answers, because threads do not survive a fork.
"""

import gc
import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from component import lifecycle
from component.lifecycle import Service
from extender.cluster.decider import Decider
from extender.cluster.devices import Devices
from extender.cluster.health_pods import GatePods, PodList
from extender.cluster.heartbeats import AGENTS, KUBELETS, Heartbeats
from extender.cluster.index import Index
from extender.cluster.observed import Wanted
from extender.cluster.placement_inputs import PlacementInputs
from extender.cluster.pod_starts import PodStarts
from extender.cluster.volumes import Volumes
from extender.cluster.watches import Cache, Watches
from extender.config.gates import Gate as GateSettings
from extender.config.gates import HealthPods
from extender.config.settings import Settings
from extender.feed.server import FeedServer
from extender.feed.status import CacheStatus, Outlet, Status
from extender.outlets.kick import Kicker
from extender.outlets.writers import Writers
from extender.policy import exempt
from extender.policy.decide import Rules
from extender.policy.decision import GateState
from extender.policy.gates import Gate, caps_of, classes_of, gates_of, start_rule_of, storm_of
from extender.policy.orders import Orders
from extender.policy.snapshot import Board
from extender.verbs.counts import Counts, Lately
from extender.verbs.source import Sync
from extender.why.attempts import Attempts
from extender.why.journal import Journal
from extender.why.recorder import Recorder
from kube import contract
from kube.auth import Connection, TokenFile
from kube.client import Client

STOP_LIMIT_S = 1.0
# The initial lists create a hundred thousand objects in a second, and none is garbage: eighty collections would take a
# twentieth of a start.
STARTING_OBJECTS = 200_000
COLLECTED_AT = gc.get_threshold()


class Services:
    """The source of the verbs, and everything that fills it. Wiring and lifecycle only.

    caches, by name: pods, nodes, and leases if heartbeats count. The feed publishes status(), beats(), why_not() and
    others, so this class is also a View. start() begins all threads. stop() ends them within two seconds; it may be
    called twice, also without start().
    """

    def __init__(
        self, settings: Settings, client: Client | None, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        """client: None leaves out everything that talks to the API server (tests fill the index and caches)."""
        self.settings = settings
        gates = gates_of(settings)
        self.monotonic = monotonic
        self.stopping = False
        self.token_file: TokenFile | None = None
        self.counts = Counts()
        self.calls = Lately()  # a sampler of the counts, for the status API
        self.exemptions = exempt.rules_of(settings)
        by_driver = any(gate.pods_for.csi_drivers for gate in settings.gates)
        self.volumes = Volumes(on_listed=self._wake) if by_driver else None
        by_device = any(gate.pods_for.by_device for gate in settings.gates)
        self.devices = Devices(on_listed=self._wake) if by_device else None
        self.classes = classes_of(settings, self.volumes, self.devices)
        self.caches: dict[str, Cache] = {}
        self.board = Board(self._kick)
        self.attempts = Attempts(monotonic)
        self.writers: Writers | None = None
        if client is not None:
            self.writers = Writers(
                settings.outlets, client, gates=self._gates, namespace=settings.namespace, monotonic=monotonic
            )
        self.recorder = Recorder(
            self.attempts,
            self.board,
            Journal(),
            orders=lambda: self.placement_inputs.surroundings.orders,
            on_refused_everywhere=(lambda _: None) if self.writers is None else self.writers.refused_everywhere,
            monotonic=monotonic,
        )
        self.kicker: Kicker | None = None
        if client is not None and settings.kick.enabled:
            repeat_s = settings.kick.repeat_after_seconds
            self.kicker = Kicker(client.branch(), self.board, repeat_after_s=repeat_s, monotonic=monotonic)
        self.watches: Watches | None = None
        self.placement_inputs = PlacementInputs(
            daemon_sets=daemon_sets_of(settings), config_map=settings.orders.config_map, on_change=self._wake
        )
        self.kubelets = self._kubelets_heard()
        self.agents = self._agents_heard()
        self.starts = self._starts_looked_at()
        self.index = Index(
            speakers=speakers_of(settings),
            wanted=wanted_of(gates),
            on_change=self._wake,
            kubelets=self.kubelets,
            agents=self.agents,
            starts=self.starts,
            awaited=lambda: self.watches is not None and self.watches.awaited(self._unread()),
            monotonic=monotonic,
        )
        self.decider = Decider(
            self.index,
            Rules(gates, caps_of(settings), storm_of(settings)),
            self.board,
            on_release=self._kick,
            surroundings=lambda: self.placement_inputs.surroundings,
            unread=self._unread,
            on_decided=lambda before, decided, monotonic: self.recorder.on_decided(before, decided.snapshot, monotonic),
            monotonic=monotonic,
        )
        self._stale_limit_s = settings.stale_limit_seconds
        self._fresh_until = -math.inf
        self._required: tuple[str, ...] = ()
        self._required_caches: tuple[Cache, ...] = ()
        if client is not None:
            self._watch(client)
        socket = settings.feed.socket
        self.feed = None if socket is None else FeedServer(Path(socket), self, monotonic=monotonic)

    def start(self) -> None:
        # Everything loaded until here stays for ever, so the garbage collector must not walk it again. No collection
        # comes first: it would find almost nothing and copy all pages that are shared with the master.
        gc.freeze()
        gc.set_threshold(STARTING_OBJECTS)
        lifecycle.start_all(self._threads())

    def settle(self) -> None:
        """Called with the first snapshot: everything read until here stays, too."""
        gc.freeze()
        gc.set_threshold(*COLLECTED_AT)

    def begin_to_stop(self) -> None:
        """Stops the outlets while the last answers are sent, because releasing the Lease may take most of a second. An
        answer may still cause a kick. Does not wait."""
        self.stopping = True
        for service in self._written():
            threading.Thread(target=service.stop, daemon=True).start()

    def stop(self) -> None:
        self.stopping = True
        gc.set_threshold(*COLLECTED_AT)
        # Each may wait a second for its thread: in parallel they need one second in all.
        threads = [threading.Thread(target=service.stop) for service in self._threads()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(2 * STOP_LIMIT_S)

    def wait_synced(self, timeout_s: float, *, give_up: Callable[[], bool] = lambda: False) -> bool:
        """Returns whether the first snapshot was there within the time. give_up: ends the wait early."""
        deadline = self.monotonic() + timeout_s
        pause = threading.Event()
        while not self.synced and self.monotonic() < deadline and not give_up():
            pause.wait(0.02)
        return self.synced

    @property
    def synced(self) -> bool:
        return self.board.filled

    def sync(self) -> Sync:
        """Returns whether verdicts may be given. Called for every request."""
        if not self.board.filled:
            return Sync.NOT_SYNCED
        monotonic = self.monotonic()
        if monotonic < self._fresh_until:  # until then the last answer holds
            return Sync.OK
        age_s = max((cache.age_s(monotonic) for cache in self._required_caches), default=0.0)
        if age_s > self._stale_limit_s:
            return Sync.STALE
        self._fresh_until = monotonic + self._stale_limit_s - age_s
        return Sync.OK

    @property
    def journal(self) -> Journal:
        """The recorded history."""
        return self.recorder.journal

    @property
    def orders(self) -> Orders:
        return self.placement_inputs.surroundings.orders

    connected = True

    def why_not(self) -> str:
        return "stopping" if self.stopping else self.sync().value

    def status(self) -> Status:
        monotonic = self.monotonic()
        return Status(
            at_monotonic=monotonic,
            sync=self.sync().name,
            stopping=self.stopping,
            stuck=self.unhealthy(),
            caches={
                name: CacheStatus(cache.synced, cache.age_s(monotonic), dict(cache.counters), cache.lag_s)
                for name, cache in self.caches.items()
            },
            required=list(self._required),
            counts=self.counts,
            kicks={} if self.kicker is None else dict(self.kicker.counters),
            outlets={name: Outlet(*counts) for name, counts in self._outlet_counts().items()},
            leads=None if self.writers is None else self.writers.leads,
            credentials_issued=None if self.token_file is None else self.token_file.issued,
            credentials_expire=None if self.token_file is None else self.token_file.expiry,
        )

    def beats(self) -> Mapping[str, float]:
        """By node: when its kubelet was last known to live, in monotonic seconds."""
        return {} if self.kubelets is None else self.kubelets.seen()

    def unhealthy(self) -> list[str]:
        """Returns the names of threads that have died or are stuck. An unreachable API server is no reason.

        Feed, recorder and outlets are left out: a restart would cost kube-scheduler the caches for their sake. The
        status API reports them.
        """
        for_people = (self.feed, self.recorder, *self._written())
        return lifecycle.unhealthy([one for one in self._threads() if one not in for_people], self.monotonic())

    def watch_with(self, caches: dict[str, Cache], required: Sequence[str]) -> None:
        """Uses these caches. No verdict is given while one of the required ones is stale."""
        self.caches = caches
        self._required = tuple(required)
        self._required_caches = tuple(caches[name] for name in required)
        self._fresh_until = -math.inf

    def _watch(self, client: Client) -> None:
        self.watches = Watches(client, monotonic=self.monotonic)
        self.watches.nodes(self.index, None if self.writers is None else self.writers.marks)
        if self.kubelets is not None:
            self.watches.heartbeats(self.kubelets)
        if self.agents is not None:
            self.watches.heartbeats_of_agents(self.agents, self.settings.namespace)
        self.watches.placement_inputs(self.placement_inputs, self.settings.namespace)
        if self.volumes is not None:
            self.watches.volumes(self.volumes)
        if self.devices is not None:
            self.watches.devices(self.devices)
        if self.starts is not None:
            self.watches.pod_starts(self.starts)
        self.watch_with(self.watches.caches, self.watches.required)

    def _threads(self) -> list[Service]:
        """All services with threads, in the order of their start."""
        readers = () if self.watches is None else (self.watches.lease_reader, self.watches.agent_reader)
        optional = [one for one in (*readers, self.kicker, self.feed) if one is not None]
        return [*self.caches.values(), self.recorder, *self._written(), *optional, self.decider]

    def _written(self) -> Sequence[Service]:
        return () if self.writers is None else self.writers.services

    def _outlet_counts(self) -> Mapping[str, tuple[dict[str, int], int]]:
        return {} if self.writers is None else self.writers.counts()

    def _gates(self) -> Mapping[str, GateState] | None:
        """The decisions for the outlets; None while no verdict is given."""
        return self.board.snapshot.gates if self.sync() is Sync.OK else None

    def _kick(self, nodes: Sequence[str]) -> None:
        if self.kicker is not None:
            self.kicker.request(nodes)

    def _wake(self) -> None:
        self.decider.wake()

    def _unread(self) -> frozenset[str]:
        """The optional inputs that were not read yet."""
        optional = [one.missing for one in (self.volumes, self.devices) if one is not None]
        return self.placement_inputs.missing.union(*optional)

    def _kubelets_heard(self) -> Heartbeats | None:
        """The heartbeats of the kubelets, None if the settings disable them."""
        limit_s = self.settings.heartbeat.limit_s
        if limit_s == math.inf:
            return None
        return Heartbeats(
            limit_s,
            KUBELETS,
            on_change=self._wake,
            on_read_due=self._read_leases,
            watch=lambda: None if self.watches is None else self.watches.leases,
            monotonic=self.monotonic,
        )

    def _agents_heard(self) -> Heartbeats | None:
        """The heartbeats of the agents, None if the settings have none."""
        agents = self.settings.heartbeat.agents
        if agents is None:
            return None
        return Heartbeats(
            float(agents.limit_seconds),
            AGENTS,
            on_change=self._wake,
            on_read_due=self._read_agents,
            watch=lambda: None if self.watches is None else self.watches.agents,
            monotonic=self.monotonic,
        )

    def _starts_looked_at(self) -> PodStarts | None:
        """The starts of pods, None if no gate uses them."""
        rule = start_rule_of(self.settings)
        if rule is None:
            return None
        return PodStarts(
            rule,
            asked=lambda pod: self.journal.left_node(pod.namespace, pod.pod, pod.uid, pod.node),
            on_change=self._wake,
            reported=lambda: -math.inf if self.watches is None else self.watches.answered_at(),
            ahead_s=lambda: None if self.watches is None else self.watches.starts_ahead_s(),
            monotonic=self.monotonic,
        )

    def _read_agents(self) -> None:
        if self.watches is not None and self.watches.agent_reader is not None:
            self.watches.agent_reader.wake()

    def _read_leases(self) -> None:
        if self.watches is not None and self.watches.lease_reader is not None:
            self.watches.lease_reader.wake()


def speakers_of(settings: Settings) -> list[GatePods]:
    """Returns the health pods of each gate that uses them."""
    return [
        GatePods(gate.name, PodList(pods.namespace, pods.label_selector), pods.daemon_set)
        for gate in settings.gates
        if (pods := _health_pods(gate)) is not None
    ]


def daemon_sets_of(settings: Settings) -> dict[str, tuple[str, str]]:
    """By gate: namespace and name of the DaemonSet of its health pods, if the settings name it."""
    return {
        gate.name: (pods.namespace, pods.daemon_set)
        for gate in settings.gates
        if (pods := _health_pods(gate)) is not None and pods.daemon_set is not None
    }


def wanted_of(gates: Iterable[Gate]) -> Wanted:
    rules = [gate.conditions for gate in gates if gate.conditions is not None]
    return Wanted(
        pod=frozenset().union(*(one.pod_types for one in rules)),
        node=frozenset().union(*(one.node_types for one in rules)),
        aging=frozenset().union(*(one.aging_types for one in rules)),
    )


def _health_pods(gate: GateSettings) -> HealthPods | None:
    """Returns None if the gate uses only conditions of the Node, or starts of pods."""
    if gate.pod_starts is not None:
        return None
    return gate.health_pods if gate.conditions is None or gate.conditions.of_pods else None


def build(settings: Settings, connection: Connection) -> Services:
    """Returns the services for a connection to the API server. Starts and sends nothing."""
    services = Services(settings, Client(connection, user_agent=contract.NAME_EXTENDER))
    if isinstance(connection.credentials, TokenFile):
        services.token_file = connection.credentials
    return services
