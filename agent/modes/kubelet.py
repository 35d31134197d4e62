"""Mode `kubelet`: puts the rooms together. The agent is the kubelet of a node that has none.

It registers the Node, renews its Lease, runs the pods bound to it, probes them and owns their whole status. Local
processes it ends when it stops, and says so in the statuses; see `runtime.process` for what a crash leaves. Those of
a container runtime (`cri.runtime`) go on.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from agent.cri.base import CriError
from agent.cri.events import RuntimeEvents
from agent.kubelet.events.event import Record, of_container
from agent.kubelet.events.recorder import Recorder
from agent.kubelet.node.facts import in_order, other_causes
from agent.kubelet.node.lease import LeaseKeeper
from agent.kubelet.node.measure import Folders, PressureWatch
from agent.kubelet.node.observed import Observed
from agent.kubelet.node.oom_watcher import OomWatcher
from agent.kubelet.node.registration import NodeReporter
from agent.kubelet.pleg.cache import Cache
from agent.kubelet.pleg.cached_runtime import CachedRuntime, EndingRuntime
from agent.kubelet.pleg.generator import EventGenerator
from agent.kubelet.plugins.handlers import handlers
from agent.kubelet.plugins.manager import PluginManager, plugin_counts
from agent.kubelet.pods.hooks import Hooks
from agent.kubelet.pods.probe_updates import ProbeUpdates
from agent.kubelet.pods.source import PodSource, PodTable
from agent.kubelet.pods.sync import PodLoop
from agent.kubelet.pods.work_queue import WorkQueue
from agent.kubelet.prober.decide import NOTHING_KEPT
from agent.kubelet.prober.manager import ProberManager
from agent.kubelet.prober.prober import Prober
from agent.kubelet.prober.results import Results
from agent.kubelet.runtime.connect import connect_runtime
from agent.kubelet.runtime.kubelet_lock import KubeletLock
from agent.kubelet.runtime.process import ProcessRuntime
from agent.kubelet.runtime.readiness import Readiness
from agent.kubelet.status.generate import Host
from agent.kubelet.status.manager import StatusManager
from agent.modes.node_facts import node_facts, pressure_watch
from agent.modes.pod_sources import PodSources
from agent.probe.exec import timeouts_are_no_failures
from agent.report.metrics import Family, metrics_page, process_families
from agent.report.server import HealthServer, Page, livez_page
from agent.settings import Cri, Kubelet, Settings
from agent.store.granted_resources import GrantedResources
from agent.store.results import ResultsFile
from agent.wire.containers import ContainerEvent
from agent.wire.semantics import Semantics, chosen
from component.command import product_version
from component.lifecycle import Service, StartFailed
from kube.auth import Connection
from kube.client import ATTEMPTS, Client
from kube.connect import connect

USER_AGENT = f"readygate-agent/{product_version()}"
ANSWER_LIMIT_BYTES = 64 * 2**20  # of the API server: all pods of one node


def build(settings: Settings) -> list[Service]:
    """The services of this mode, in the order of their start. No thread or socket is made here.

    Raises kube.errors.CredentialsInvalid, StartFailed where gRPC is needed and not installed.
    """
    return assemble(settings, connect(settings.kubernetes.kubeconfig, server=settings.kubernetes.server))


def assemble(settings: Settings, connection: Connection, contain: "Contain | None" = None) -> list[Service]:
    """As `build`, with a given connection. `contain`: makes what runs the containers, instead of the settings' way."""
    node = settings.kubelet
    if node is None:
        raise ValueError("settings without the section kubelet")
    client = Client(connection, user_agent=USER_AGENT, answer_limit_bytes=ANSWER_LIMIT_BYTES)
    semantics, inbox = semantics_of(node), WorkQueue()
    table = PodTable(inbox.put, semantics, lambda: sources.wake())
    ran = (contain or contained)(node, inbox, semantics)
    runtime, events = ran.runtime, ran.events
    sources = PodSources(node, client, table, lambda: (loop, reporter))

    statuses = StatusManager(client, table, lambda uid: loop.could_run(uid), semantics)
    recorder = Recorder(client.branch(), node.node_name)
    updates = ProbeUpdates(statuses, inbox.put, semantics)
    readiness, liveness, startup = map(Results, (updates.readiness, updates.liveness, updates.startup))
    kept = None if node.cri is None else ResultsFile(Path(node.root_dir, "probe_results.json"), lambda: prober.kept())
    prober = ProberManager(
        get_pod_status=statuses.pod_status,
        probe=prober_of(runtime, recorder, semantics).probe,
        readiness=readiness,
        liveness=liveness,
        startup=startup,
        semantics=semantics,
        restored=NOTHING_KEPT if kept is None else kept.restored,
    )
    pressure = pressure_watch(node, ran.folders)
    heartbeats = client.branch(attempts=ATTEMPTS)
    reporter = node_reporter(
        heartbeats, node, ran, semantics, lambda: causes(ran, loop, time.monotonic()), pressure, recorder.record
    )
    loop: PodLoop = PodLoop(
        inbox,
        table,
        CachedRuntime(runtime, events, wake=inbox.put),
        statuses,
        prober,
        Hooks(runtime.exec, inbox.put, recorder.record),
        liveness=liveness.get,
        startup=startup.get,
        source_synced=lambda: sources.synced,
        host=Host(ip=runtime.host_ip),
        nodes=reporter,
        semantics=semantics,
        outlive=node.cri is not None,
        record=recorder.record,
        grants=GrantedResources(Path(node.root_dir, "granted_resources.json")),
        abandon=ran.abandon,
        network=lambda: "".join(ran.readiness(time.monotonic()).network_errors()),
    )
    plugins = PluginManager(Path(node.root_dir, "plugins_registry"), handlers())
    services: list[Service] = []
    pages = {
        "/livez": lambda: livez_page(services, time.monotonic()),
        "/readyz": lambda: readyz_page(reporter, sources.api),
        "/metrics": lambda: metrics_page([*families(prober, statuses, events, plugins), *sources.families()]),
    }
    # The server first: a taken port ends the start before anything runs. What is stopped last is started first.
    server = HealthServer(settings.listen.address, settings.listen.port, pages)
    services += [server, recorder, CloseClient("pod connections", client), statuses, runtime, *ran.told, events]
    services += [
        *([pressure] if pressure.thresholds else []),
        prober,
        *([] if kept is None else [kept]),
        loop,
        *sources.services,
        *(plugins, reporter, OomWatcher(node.node_name, recorder.record)),
        LeaseKeeper(heartbeats, node.node_name, duration_s=node.lease_duration_seconds),
        CloseClient("node connections", heartbeats),
    ]
    return services


class Runtime(EndingRuntime, Service, Protocol):
    """What runs containers, and the thread in it. `host_ip`: the address of the node."""

    @property
    def host_ip(self) -> str: ...


def semantics_of(node: Kubelet) -> Semantics:
    restart_period_s = node.max_container_restart_period_seconds
    return chosen(node.compat, node.feature_gates.items(), max_container_restart_period_s=restart_period_s)


def prober_of(runtime: Runtime, recorder: Recorder, semantics: Semantics) -> Prober:
    execute = runtime.exec if semantics.exec_timeout_fails else timeouts_are_no_failures(runtime.exec)
    return Prober(execute, lambda *facts: recorder.record(of_container(*facts)))


@dataclass(frozen=True, slots=True)
class Containers:
    """What runs them, and what tells the sync loop of them. `readiness`: what the node says of it. `refusal`: why
    nothing may be run, "" for nothing. `folders`: where a container runtime has images and containers. `found`: what
    the Node says of it; nothing is attached to ours. `told`: what reads what the runtime tells by itself, started
    before `events`, which ask whether it does. `events_full`: the error of their channel's health. `abandon`: gives up
    what is being made for a pod. `use_pod_cidr`: the Node has this block of pod addresses; processes go by that of the
    settings."""

    runtime: Runtime
    events: EventGenerator
    readiness: Callable[[float], Readiness]
    refusal: Callable[[], str] = lambda: ""
    found: Callable[[], Observed] = lambda: Observed(volumes_in_use=())
    folders: Callable[[], Folders] | None = None
    told: tuple[Service, ...] = ()
    events_full: Callable[[], str] = lambda: ""
    abandon: Callable[[str], None] = lambda _uid: None
    use_pod_cidr: Callable[[str], None] = lambda _cidr: None


Contain = Callable[[Kubelet, WorkQueue, Semantics], Containers]


def contained(node: Kubelet, inbox: WorkQueue, semantics: Semantics) -> Containers:
    """By the settings: over the CRI, or as processes."""
    return processes(node, inbox, semantics) if node.cri is None else in_runtime(node, node.cri, inbox, semantics)


def processes(node: Kubelet, inbox: WorkQueue, semantics: Semantics) -> Containers:
    """They tell by themselves; where that fails there are lists."""
    block = node.pod_cidr or ""  # the settings see to it
    runtime = ProcessRuntime(Path(node.root_dir), block, on_event=lambda event: events.take(event))
    cache = Cache(newest_wins=True)
    events = EventGenerator(runtime, cache, inbox.deliver, events_come=runtime.healthy, semantics=semantics)

    def readiness(monotonic: float) -> Readiness:
        """There are no answers to wait for: it is there or not."""
        return Readiness(monotonic if runtime.healthy(monotonic) else -math.inf, network="")

    return Containers(runtime, events, readiness)


def in_runtime(node: Kubelet, cri: Cri, inbox: WorkQueue, semantics: Semantics) -> Containers:
    """Listed every second, as by a kubelet; with the gate EventedPLEG every five minutes, while it tells by itself."""
    try:
        runtime = connect_runtime(
            cri.socket,
            owner=node.node_name,
            host_ip=cri.address,
            logs=Path(node.root_dir) / "pods",
            guard=KubeletLock(cri.kubelet_healthz),
            deadline_s=float(cri.request_timeout_seconds),
        )
    except CriError as e:
        raise StartFailed(str(e)) from e
    cache = Cache(newest_wins=True)  # the workers write, too

    def take(event: ContainerEvent) -> None:
        if event.uid in cache.uids():  # else it is somebody else's: what we make ourselves is there at once
            events.take(event)

    told = (RuntimeEvents(runtime.reader, take),) if semantics.evented_pleg else ()
    come = told[0].come if told else None
    events = EventGenerator(runtime, cache, inbox.deliver, events_come=come, semantics=semantics)

    def found() -> Observed:
        status = runtime.status
        return Observed(
            runtime.images, status.handlers, (), frozenset(), runtime.version, status.supplemental_groups_policy
        )

    return Containers(
        runtime,
        events,
        lambda _: runtime.readiness,
        runtime.refusal,
        found,
        runtime.folders,
        told,
        inbox.events_full if semantics.evented_pleg else lambda: "",
        abandon=runtime.abandon,
        use_pod_cidr=runtime.use_pod_cidr,
    )


def causes(ran: Containers, loop: PodLoop, monotonic: float) -> list[str]:
    """Why the node is not ready. Nothing here mounts volumes, and no shutdown of the machine is waited for, so of
    storage and shutdown there is nothing to say."""
    others = other_causes(
        events_unhealthy=ran.events.unhealthy(monotonic),
        events_full=ran.events_full(),
        pods_healthy=loop.healthy(monotonic),
    )
    refusal, readiness = ran.refusal(), ran.readiness(monotonic)
    if refusal:  # what the runtime does is not ours to say
        return in_order(runtime=[refusal, *others])
    return in_order(runtime=readiness.runtime_errors(monotonic, others), network=readiness.network_errors())


def node_reporter(
    client: Client,
    node: Kubelet,
    ran: Containers,
    semantics: Semantics,
    not_ready: Callable[[], list[str]],
    pressure: PressureWatch,
    record: Record,
) -> NodeReporter:
    return NodeReporter(
        client,
        node_facts(node, ran.runtime.host_ip, semantics),
        not_ready,
        update_s=float(node.node_status_update_seconds),
        found=lambda: replace(ran.found(), pressures=pressure.conditions),
        record=record,
        use_pod_cidr=ran.use_pod_cidr,
        get_on_exists_only=semantics.kubelet_registration_get_on_exists_only,
    )


class CloseClient:
    """A Service that cuts the calls in flight when it is stopped: else threads wait for the deadlines of theirs."""

    def __init__(self, name: str, client: Client) -> None:
        self.name = name
        self._client = client

    def start(self) -> None:
        """Connections are made when they are needed."""

    def stop(self) -> None:
        self._client.close()

    def healthy(self, monotonic: float) -> bool:  # noqa: ARG002 - the Service protocol
        return True


def readyz_page(reporter: NodeReporter, source: PodSource) -> Page:
    """200 once the Node is registered and its pods are known."""
    waiting = [
        *([] if reporter.registered else ["the node is not registered yet\n"]),
        *([] if source.synced else ["the pods of the node are not known yet\n"]),
    ]
    return Page(503, "".join(waiting)) if waiting else Page(200, "ok\n")


def families(
    prober: ProberManager, statuses: StatusManager, events: EventGenerator, plugins: PluginManager
) -> list[Family]:
    """What /metrics shows."""
    samples = [(labels._asdict(), float(count)) for labels, count in prober.totals().items()]
    return [
        *process_families(product_version(), "kubelet"),
        Family("prober_probe_total", "counter", "Probes by type, result and container, as the kubelet's.", samples),
        Family(
            "prober_probe_duration_seconds",
            "histogram",
            "How long probes that succeeded took, as the kubelet's.",
            histograms=[(labels._asdict(), took) for labels, took in prober.durations().items()],
        ),
        Family(
            "kubelet_pod_status_sync_duration_seconds",
            "histogram",
            "Time from a change of a pod's status to its write, as the kubelet's.",
            histograms=[({}, statuses.took())],
        ),
        Family(
            "kubelet_terminated_containers_total",
            "counter",
            "Containers that have ended, as the kubelet's.",
            [
                (
                    {"container_type": one.container_type, "exit_code": str(one.exit_code), "reason": one.reason},
                    float(n),
                )
                for one, n in statuses.ended().items()
            ],
        ),
        *pleg_families(events, time.time(), time.monotonic()),
        Family(
            "plugin_manager_total_plugins",
            "gauge",
            "Plugins that lie there, and those that are registered, as the kubelet's.",
            plugin_counts(plugins),
        ),
    ]


def pleg_families(events: EventGenerator, wall: float, monotonic: float) -> list[Family]:
    """By the kubelet's names."""
    durations, running, listed_at = events.durations(), events.running, events.listed_at
    seen_s = 0.0 if listed_at is None else wall - (monotonic - listed_at)
    timed = (
        ("relist_duration", "How long lists of the runtime's pods took, as the kubelet's.", durations.lists),
        ("relist_interval", "From list to list, as the kubelet's.", durations.intervals),
        ("pod_relist_duration", "How long lists of one pod took, as the kubelet's.", durations.looks),
    )
    states = [({"container_state": phase.value}, float(count)) for phase, count in running.containers.items()]
    return [
        *(Family(f"kubelet_pleg_{name}_seconds", "histogram", help_, histograms=[({}, h)]) for name, help_, h in timed),
        Family(
            "kubelet_pleg_last_seen_seconds",
            "gauge",
            "Seconds since the epoch at the beginning of the last list, as the kubelet's; 0: there was none.",
            [({}, float(int(seen_s)))],
        ),
        Family(
            "kubelet_pleg_discard_events",
            "counter",
            "Events of containers that there was no room for, as the kubelet's.",
            [({}, float(events.discarded))],
        ),
        Family(
            "kubelet_running_pods",
            "gauge",
            "Pods with a sandbox that is ready, as the kubelet's.",
            [({}, float(running.pods))],
        ),
        Family("kubelet_running_containers", "gauge", "Containers, by state, as the kubelet's.", states),
    ]
