"""Mode `node`: puts the rooms together. A service on the host looks at the node beside the kubelet and speaks for it.

Checks and our own opinion on the health pods -> the health of the node -> /readyz, and the condition of those health
pods that ask the agent on the node to speak for them. Who we are: the kubelet's certificate, to read and to ask for
tokens; everything written is written with a token that is bound to the health pod. What containers do the container
runtime says where its socket is named, else the API server.
"""

import logging
import os
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from agent.checks.catalogue import check_spec
from agent.checks.engine import CheckEngine
from agent.checks.health import NodeHealth, status_line
from agent.checks.last_failures import Said
from agent.cri.base import CriError, Trouble
from agent.cri.events import RuntimeEvents
from agent.cri.socket_errors import trouble_with
from agent.identity.token import BoundToken
from agent.kubelet.prober.manager import ProberManager
from agent.kubelet.prober.prober import Prober
from agent.kubelet.prober.results import Results
from agent.modes import pod as pod_mode
from agent.modes.pod_network import Around, beside_pods, families_of
from agent.modes.systemd_notify import notifiers
from agent.opinion.checks_per_pod import ChecksPerPod, Entry, counting_of
from agent.opinion.condition_writers import ConditionWriter, ConditionWriters
from agent.opinion.containers import DEADLINE_S, ContainerStates, executed
from agent.opinion.judge import Facts, Judge
from agent.opinion.kubelet import KubeletWatch, NodeTable, pleg_finding
from agent.opinion.kubelet_pods import KubeletPods
from agent.opinion.pods import HealthPodSource
from agent.opinion.selection import HealthPods
from agent.opinion.settings import NodeSection
from agent.opinion.verdict import FINDINGS, Finding, closing, readyz
from agent.podsapi.base import PodsApi, PodsApiError
from agent.probe.exec import Execute
from agent.processes.command import Completed, RuntimeUnavailable
from agent.report.condition import ConditionPublisher
from agent.report.heartbeat import Heartbeat, Writer
from agent.report.metrics import Family, metrics_page, process_families
from agent.report.server import HealthServer, Page, livez_page
from agent.settings import Settings
from agent.wire.condition import SPEAKER_NODE
from agent.wire.model import Pod
from agent.wire.node import NodeSaid
from agent.wire.semantics import Semantics
from component.command import product_version
from component.lifecycle import Service, StartFailed
from kube import paths
from kube.auth import Connection, by_certificate, by_credentials
from kube.client import Client
from kube.errors import CredentialsInvalid
from kube.reflector import ListerWatcher, Reflector

log = logging.getLogger(__name__)

WRITE_DEADLINE_S = 5.0
ANSWER_LIMIT_BYTES = 16 * 2**20  # of the API server: the health pods of one node


def build(settings: Settings) -> list[Service]:
    """The services of this mode, in the order of their start. No thread or socket is made here.

    Raises kube.errors.CredentialsInvalid, StartFailed. `settings` are of mode node.
    """
    node = section(settings)
    client = kubelet_client(node)
    states, asked, execute = containers(node, lambda: [one.pod for one in judge.judged()], lambda: wake())
    around = beside_pods(node, lambda: first_of(judge), lambda pod: client_as(node, client, pod))
    specs = [check_spec(check, state_file=settings.state_file, around=around) for check in settings.checks]
    kept = pod_mode.kept(settings.state_file, specs)
    not_before = time.monotonic() + (pause_s := pod_mode.first_pause_s(kept))
    engine = CheckEngine(specs, lambda _health: wake(), **kept)
    semantics = Semantics()
    readiness = Results(lambda _update: wake())
    chosen = [entry.pods for entry in entries_of(node)]
    source = HealthPodSource(client, node.name, chosen, lambda: wake(), first_pause_s=pause_s)
    pods = KubeletPods(source, node.name, chosen, lambda: wake(), asking_the_kubelet(node.pods_socket))
    prober = ProberManager(
        get_pod_status=lambda uid: judge.pod_status(uid),
        probe=Prober(execute).probe,
        readiness=readiness,
        liveness=Results(),
        startup=Results(),
        semantics=semantics,
    )
    said_by_kubelet = NodeTable(lambda: wake())
    watch = KubeletWatch(
        client.branch(),
        node.name,
        health_url=node.kubelet_healthz,
        lease_limit_s=float(node.lease_limit_seconds),
        not_before=not_before,
        on_change=lambda: wake(),
    )
    namespaces = [one.namespace for one in chosen]
    speakers = (
        ConditionWriters(lambda pod: speaker(node, client, pod, not_before), namespaces) if node.publish else None
    )
    counts = Counts(settings, lambda: wake(), lambda entries: follow(entries, source, pods, speakers))
    judge = Judge(
        pods,
        prober,
        Facts(
            result=readiness.get,
            checks=engine.counted,
            counting=lambda: counts.now,
            node=lambda: [f for f in on_the_node(watch, said_by_kubelet, states) if f is not None],
            runtime=lambda pod: None if states is None else states.pod(pod),
            kubelet_known=watch.known,
        ),
        speakers,
        semantics=semantics,
        disagreement_s=float(node.disagreement_seconds),
        with_exec=node.exec_probes,
    )

    def wake() -> None:
        judge.wake()

    said, services = Said(), list[Service]()
    pages = {
        "/readyz": lambda: readyz_page(engine, judge, time.time()),
        "/livez": lambda: livez_page(services, time.monotonic()),
        "/metrics": lambda: metrics_page([*families(engine, judge, speakers, said), *families_of(around.board)]),
        "/checks": lambda: pod_mode.checks_page(engine),
    }
    # The server first: a taken port ends the start before anything runs.
    services += [HealthServer(settings.listen.address, settings.listen.port, pages)]
    writing = speaking(node, speakers, lambda: said_by_kubelet.uid, pause_s)
    services += [*writing, *asked, prober, counts, judge, engine, Around(around)]
    services += [source, pods, own_node(client, node.name, said_by_kubelet, pause_s), watch, CloseClient(client)]
    services += notifiers(os.environ, services, lambda: status(engine, judge))
    return services


def section(settings: Settings) -> NodeSection:
    if settings.node is None:
        raise ValueError("settings without the section node")
    return settings.node


def entries_of(node: NodeSection) -> list[Entry]:
    return [
        Entry(HealthPods(one.namespace, one.label_selector, one.daemon_set or ""), frozenset(one.checks or ()))
        for one in node.health_pods
    ]


def follow(
    entries: Sequence[HealthPods], source: HealthPodSource, pods: KubeletPods, speakers: ConditionWriters | None
) -> None:
    """Raises StartFailed: all is as it was."""
    source.follow(entries)  # first: it may fail
    pods.follow(entries)
    if speakers is not None:
        speakers.follow([one.namespace for one in entries])


class Counts:
    """A Service that follows the file: which pods are health pods, and which checks count for them. `follow` takes the
    former, or raises StartFailed."""

    name = "what counts"

    def __init__(
        self, settings: Settings, on_change: Callable[[], None], follow: Callable[[Sequence[HealthPods]], None]
    ) -> None:
        self._on_change = on_change
        self._follow = follow
        self.now = self._read(settings, None)

    def reloaded(self, settings: Settings) -> None:
        """Raises StartFailed: all is as it was."""
        now = self._read(settings, self.now)
        self._follow([entry.pods for entry in now.entries])
        self.now = now
        self._on_change()

    def start(self) -> None:
        """It has no thread."""

    def stop(self) -> None:
        """It holds nothing."""

    def healthy(self, monotonic: float) -> bool:  # noqa: ARG002 - the Service protocol
        return True

    def _read(self, settings: Settings, before: ChecksPerPod | None) -> ChecksPerPod:
        found = counting_of(entries_of(section(settings)), [check.name for check in settings.checks], before)
        if lost := ", ".join(found.for_nobody()):
            log.warning(
                "checks count for no health pod, as each of node.healthPods names others", extra={"checks": lost}
            )
        return found


def containers(
    node: NodeSection, pods: Callable[[], Collection[Pod]], wake: Callable[[], None]
) -> tuple[ContainerStates | None, list[Service], Execute]:
    """What the runtime says of the health pods, None where the section names no socket, with the services behind it;
    and what runs commands in containers. Raises StartFailed where gRPC is not installed."""
    if node.cri_socket is None:
        return None, [], no_exec
    from agent.cri.connect import connect  # late: gRPC is large

    try:
        runtime = connect(node.cri_socket, deadline_s=DEADLINE_S, may_exec=node.exec_probes)
    except CriError as e:
        raise StartFailed(f"node.criSocket: {e}") from None
    events = RuntimeEvents(runtime, lambda event: states.take(event))
    states = ContainerStates(runtime, pods, wake, events_come=events.come)
    return states, [states, events], executed(runtime) if node.exec_probes else no_exec


def asking_the_kubelet(socket: str | None) -> Callable[[], PodsApi] | None:
    """None where no socket is named."""
    if socket is None:
        return None

    def connect() -> PodsApi:
        trouble = trouble_with(socket)
        if trouble is not None:
            raise PodsApiError(socket, trouble)
        try:
            from agent.podsapi.client import Client as PodsClient  # late: gRPC is large
        except ImportError as e:
            raise PodsApiError(socket, Trouble.NO_PACKAGES, e) from None
        return PodsClient(socket)

    return connect


def own_node(client: Client, name: str, table: NodeTable, first_pause_s: float) -> Reflector[NodeSaid]:
    lister = ListerWatcher(client, paths.nodes(), NodeSaid, field_selector=f"metadata.name={name}")
    return Reflector(lister, table, name="own-node", first_pause_s=first_pause_s)


def on_the_node(watch: KubeletWatch, table: NodeTable, states: ContainerStates | None) -> list[Finding | None]:
    """What is found of the kubelet and of the container runtime."""
    return [watch.silent(), pleg_finding(table.ready), None if states is None else states.silent()]


def speaking(
    node: NodeSection, speakers: ConditionWriters | None, node_uid: Callable[[], str], first_pause_s: float
) -> list[Service]:
    """Who writes: nobody where nothing is published, and no heartbeat where none is configured."""
    if speakers is None:
        return []
    if node.heartbeat is None:
        return [speakers]
    period_s = float(node.heartbeat.period_seconds)
    return [speakers, Heartbeat(node.name, speakers.writer, node_uid, period_s=period_s, first_pause_s=first_pause_s)]


def kubelet_client(node: NodeSection) -> Client:
    """With the kubelet's certificate. It reads and asks for tokens; what else it may do is never asked of it.

    Raises CredentialsInvalid.
    """
    connection = by_certificate(
        node.server,
        authority=Path(node.certificate_authority),
        certificate=Path(node.certificate),
        key=Path(node.key),
    )
    return _client(connection)


def _client(connection: Connection) -> Client:
    name, limit = user_agent(), ANSWER_LIMIT_BYTES
    return Client(connection, user_agent=name, deadline_s=WRITE_DEADLINE_S, answer_limit_bytes=limit)


def speaker(node: NodeSection, client: Client, pod: Pod, not_before: float) -> ConditionWriter:
    """Who writes the condition of one health pod, by a token that is bound to it. Raises CredentialsInvalid."""
    if pod.static:
        raise CredentialsInvalid(
            "a static pod has no service account, so no token is bound to it: remove the annotation "
            "readygate.dev/speaker and the readiness gate from its manifest"
        )
    requests, writes = client_as(node, client, pod)
    publisher = ConditionPublisher(
        writes,
        namespace=pod.namespace,
        pod_name=pod.name,
        pod_uid=pod.uid,
        speaker=SPEAKER_NODE,
        farewell=False,
        not_before=not_before,
    )

    def close() -> None:
        requests.close()
        writes.close()

    return ConditionWriter(publisher, Writer(pod.namespace, writes), close)


def client_as(node: NodeSection, client: Client, pod: Pod) -> tuple[Client, Client]:
    """What asks for tokens, and what uses them: with the identity of a health pod. Raises CredentialsInvalid."""
    requests = client.branch()
    token = BoundToken(
        requests, namespace=pod.namespace, account=pod.service_account, pod_name=pod.name, pod_uid=pod.uid
    )
    connection = by_credentials(node.server, authority=Path(node.certificate_authority), credentials=token)
    return requests, _client(connection)


def first_of(judge: Judge) -> Pod | None:
    """The health pod in whose network checks look. None while there is none."""
    return next((one.pod for one in judge.judged()), None)


def no_exec(container_id: str, command: Sequence[str], timeout_s: float) -> Completed:  # noqa: ARG001 - of Execute
    """Commands in containers are the runtime's to run; without it no such probe is made."""
    raise RuntimeUnavailable("commands are not run from outside of the container")


def user_agent() -> str:
    return f"readygate-agent/{product_version()}"


class CloseClient:
    """A Service that cuts the calls in flight when it is stopped: else threads wait for the deadlines of theirs."""

    name = "connections of the kubelet's identity"

    def __init__(self, client: Client) -> None:
        self._client = client

    def start(self) -> None:
        """Connections are made when they are needed."""

    def stop(self) -> None:
        self._client.close()

    def healthy(self, monotonic: float) -> bool:  # noqa: ARG002 - the Service protocol
        return True


def readyz_page(engine: CheckEngine, judge: Judge, wall: float) -> Page:
    healthy, text = readyz(health_of(engine), judge.findings(), wall)
    return Page(200 if healthy else 503, text)


def status(engine: CheckEngine, judge: Judge) -> str:
    """For systemd: begins with `healthy`, `starting` or `not healthy`, as in mode pod."""
    closes = closing(judge.findings())
    if closes:
        return f"not healthy: {closes[0].reason}: {closes[0].text}"
    health = health_of(engine)
    return "healthy: no check is configured" if health is None else status_line(health)


def health_of(engine: CheckEngine) -> NodeHealth | None:
    """None without checks; a reload may bring some."""
    health = engine.node_health()
    return health if health.checks else None


def families(engine: CheckEngine, judge: Judge, speakers: ConditionWriters | None, said: Said) -> list[Family]:
    """What /metrics shows."""
    found = {finding.reason for finding in judge.findings()}
    shown = [
        *process_families(product_version(), "node"),
        *(pod_mode.check_families(engine, said) if engine.statuses() else []),
        Family(
            "readygate_health_pods",
            "gauge",
            "Health pods of this node that are looked at.",
            [({}, float(len(judge.judged())))],
        ),
        Family(
            "readygate_finding",
            "gauge",
            "1 while it is found of the kubelet or a health pod.",
            [({"finding": reason}, float(reason in found)) for reason in FINDINGS],
        ),
    ]
    if speakers is not None:
        shown += pod_mode.condition_families(speakers.writes, speakers.errors)
    return shown
