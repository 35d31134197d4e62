"""The configuration file: one YAML document, every key optional. An unknown key or a wrong value stops the start.

Errors are one line, see `component.settings`. No I/O but for reading the file; `cli` imports it, too.
"""

import ipaddress
import math
import re
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, field

from component import settings
from component.settings import Section
from component.text import one_line
from extender.config.gates import Caps, DnsLabel, Gate, LabelKey, Off, Orders, Seconds, Storm, Text, check_off
from extender.config.outlets import Outlets
from kube import contract

UserId = Annotated[int, Meta(ge=1, le=2**31 - 2, description="the number of a user, 1 and more")]
Port = Annotated[int, Meta(ge=0, le=65535, description="a port, 0 to 65535, 0 for any free one")]
SocketPath = Annotated[
    str, Meta(pattern=r"^(/[!-.0-~]+)+\Z", description="an absolute path of printable characters without blanks")
]
LabelNamespace = Annotated[
    str, Meta(pattern=r"^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?|\*)\Z", description='a DNS label, or "*" for all')
]

LABEL_EXEMPT = "readygate.dev/exempt"
HOST_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\Z")
GATES_MAX = 32  # each costs a walk over all nodes when all are decided
AGENT_LIMIT_MIN_S = 8.0  # two and a half periods of 3 s
HEARTBEAT_LIMIT_MIN_S = 5.0  # kubelets renew every 10 s by default; a lower limit would only measure their jitter


class Tls(Section, frozen=True):
    """TLS files, loaded again when they change. client_ca: null = client certificates are neither requested nor
    checked.

    client_names: common names or DNS names of the clients that may call a verb, empty = any that the CA has signed.
    """

    certificate: Text
    key: Text
    client_ca: Text | None = field(default=None, name="clientCA")
    client_names: tuple[Text, ...] = ()

    def __post_init__(self) -> None:
        if self.client_names and self.client_ca is None:
            raise ValueError("clientNames: is a list, allowed: none without a clientCA that vouches for the names")


class Listen(Section, frozen=True):
    """Where kube-scheduler calls the extender. Loopback: the extender runs on its host, and without tls clients are not
    authenticated.

    port: the default needs no privileges; deployments use one below 1024. hosts: other accepted Host headers, besides
    this address, localhost and loopback addresses. user: the user and group that a process started as root becomes, for
    good, once the port is bound.
    """

    address: Text = "127.0.0.1"
    port: Port = contract.PORT_UNPRIVILEGED
    user: UserId | None = None
    hosts: tuple[Text, ...] = ()
    tls: Tls | None = None

    def __post_init__(self) -> None:
        _refuse_what_is_no_host(self.hosts)


def _refuse_what_is_no_host(hosts: tuple[str, ...]) -> None:
    for place, host in enumerate(hosts):
        if not _is_host(host):
            allowed = "a DNS name or an IP address, without a port"
            raise ValueError(f'hosts[{place}]: is the text "{one_line(host, 64)}", allowed: {allowed}')


def _is_host(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return bool(HOST_NAME.match(text))
    return True


class Kubernetes(Section, frozen=True):
    """kubeconfig: path of a file, null = the pod's service account. server: overrides the address found there.

    token_file, ca_file: used instead of both, without a service account; read again when they are renewed.
    """

    kubeconfig: Text | None = None
    server: Text | None = None
    token_file: Text | None = None
    ca_file: Text | None = field(default=None, name="caFile")

    def __post_init__(self) -> None:
        if self.token_file is None and self.ca_file is None:
            return
        if self.kubeconfig is not None:
            raise ValueError("kubeconfig: is a text, allowed: null with tokenFile and caFile")
        if self.token_file is None or self.ca_file is None or self.server is None:
            raise ValueError("tokenFile: is not enough, allowed: server, tokenFile and caFile, all three or none")


class Exempt(Section, frozen=True):
    """Pods that are never refused a node, besides readygate's own, those of kube-system and those of system-critical
    priority.

    label: key of the label by which a pod opts out (any value but "false"), null = none. label_namespaces: where the
    label counts; anyone who may create a pod may label it, so by default nowhere.
    """

    daemon_set_pods: bool = True
    namespaces: tuple[DnsLabel, ...] = ()
    label: LabelKey | None = LABEL_EXEMPT
    label_namespaces: tuple[LabelNamespace, ...] = ()


class AgentHeartbeat(Section, frozen=True):
    """limit_seconds: age of an agent's Lease from which the agent counts as silent, or three periods of that agent if
    those are longer.

    With a period of 3 s (agent: node.heartbeat.periodSeconds) one missed heartbeat does not count.
    """

    limit_seconds: Seconds = 9

    def __post_init__(self) -> None:
        if self.limit_seconds < AGENT_LIMIT_MIN_S:
            raise ValueError(f"limitSeconds: is {self.limit_seconds:g}, allowed: {AGENT_LIMIT_MIN_S:g} and more")


class Heartbeat(Section, frozen=True):
    """limit_seconds: age of a kubelet's Lease from which its node counts as lost, 0 = Leases are not read. agents: the
    Leases of the agents on the nodes, in readygate's namespace; null = they are not read.

    A kubelet renews every 10 s and a little; at 20 s one missed renewal would close a healthy node for a moment. With
    24 s and half a second between checks a dead kubelet closes its node within 25 s.
    """

    limit_seconds: Seconds = 24
    agents: AgentHeartbeat | None = None

    def __post_init__(self) -> None:
        if 0 < self.limit_seconds < HEARTBEAT_LIMIT_MIN_S:
            allowed = f"0 (off) or {HEARTBEAT_LIMIT_MIN_S:g} and more"
            raise ValueError(f"limitSeconds: is {self.limit_seconds:g}, allowed: {allowed}")

    @property
    def limit_s(self) -> float:
        """Infinite if Leases are not read."""
        return self.limit_seconds or math.inf


class Kick(Section, frozen=True):
    """The Node write after a release. repeat_after_seconds: once more, for other replicas; 0 = not."""

    enabled: bool = True
    repeat_after_seconds: Seconds = 2


class Feed(Section, frozen=True):
    """socket: path of the unix socket over which decisions go to the process of the status API; null = none.

    Its folder is created if it is missing; only the extender's user may write to it.
    """

    socket: SocketPath | None = None


class StatusApi(Section, frozen=True):
    """Where the status API listens. It is a process of its own, readygate-status-api. It authenticates no client and
    shows names of all tenants, so by default it listens on loopback only.

    more_addresses: besides the first; `$(NAME)` is a variable of the environment. hosts: other names that a client may
    use for it. shares_port: with another process of the same user, while one deployment replaces another.
    processor_percent: how much of one processor all answers together may take in the long run.
    """

    address: Text = "127.0.0.1"
    more_addresses: tuple[Text, ...] = ()
    port: Port = 9377
    shares_port: bool = False
    hosts: tuple[Text, ...] = ()
    processor_percent: Annotated[int, Meta(ge=1, le=100, description="1 to 100")] = 3

    def __post_init__(self) -> None:
        _refuse_what_is_no_host(self.hosts)


class Metrics(Section, frozen=True):
    """A second listener of readygate-status-api, for Prometheus: it serves /metrics and nothing else.

    address: null = none; `$(NAME)` is a variable of the environment.
    """

    address: Text | None = None
    port: Port = 9379


class Log(Section, frozen=True):
    level: Literal["debug", "info", "warning", "error"] = "info"


class Settings(Section, frozen=True):
    """gates: in the order in which a node's reason is chosen. cap, storm: false = off.

    stale_limit_seconds: time without an answer of the API server after which no verdict is given any more. mode: how
    kube-scheduler treats an extender that does not answer (`ignorable`); only shown, null = not given. namespace:
    readygate's own; its pods are never refused, and it has the orders and the leader's Lease.
    """

    listen: Listen = Listen()
    kubernetes: Kubernetes = Kubernetes()
    gates: tuple[Gate, ...] = (Gate(),)
    exempt: Exempt = Exempt()
    heartbeat: Heartbeat = Heartbeat()
    stale_limit_seconds: Annotated[float, Meta(ge=75, le=86400, description="seconds, 75 to 86400")] = 120
    cap: Caps | Off = Caps()
    storm: Storm | Off = Storm()
    orders: Orders = Orders()
    kick: Kick = Kick()
    outlets: Outlets = Outlets()
    feed: Feed = Feed()
    status_api: StatusApi = StatusApi()
    metrics: Metrics = Metrics()
    log: Log = Log()
    mode: Literal["protect", "enforce"] | None = None
    namespace: DnsLabel = contract.NAMESPACE

    def __post_init__(self) -> None:
        if not self.gates:
            raise ValueError("gates: is an empty list, allowed: at least one gate")
        names = [gate.name for gate in self.gates]
        for place, name in enumerate(names):
            if name in names[:place]:
                allowed = f"a name of its own, gates[{names.index(name)}] has it"
                raise ValueError(f'gates[{place}].name: is the text "{name}", allowed: {allowed}')
        if len(names) > GATES_MAX:
            raise ValueError(f"gates: has {len(names)} entries, allowed: {GATES_MAX} at most")
        by_starts = [place for place, gate in enumerate(self.gates) if gate.pod_starts is not None]
        if len(by_starts) > 1:
            raise ValueError(f"gates[{by_starts[1]}].podStarts: is a second one, allowed: one gate with it")
        check_off(self.cap, self.storm)
        if self.metrics.address is not None and self.metrics.port == self.status_api.port != 0:
            raise ValueError(f"metrics.port: is {self.metrics.port}, allowed: a port other than statusApi.port")

    @property
    def gate(self) -> Gate:
        """The only gate."""
        return self.gates[0]


def load(path: Path) -> Settings:
    """Reads the settings from the file. Raises SettingsError."""
    return settings.read(path, parse)


def parse(text: bytes | str) -> Settings:
    """Reads the settings from a YAML text; an empty one gives the defaults. Raises SettingsError."""
    return settings.convert(settings.document(text), Settings)
