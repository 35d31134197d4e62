"""The configuration file of the agent: YAML -> frozen settings, or one line that names the key and what it may be."""

import ipaddress
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from agent.checks.catalogue import KINDS, CheckSection, check_section, given_kinds
from agent.checks.profiles import PROFILES, checks_of, joined
from agent.cri.base import CONTAINERD_SOCKET
from agent.opinion.settings import NodeSection
from agent.opinion.settings import check as check_node
from agent.wire.semantics import GATES, MAX_CONTAINER_RESTART_PERIOD_S, chosen
from agent.wire.setting_types import NonEmpty, Port
from agent.wire.yaml_lines import line_of
from component import settings as reader
from component.settings import Section, SettingsError
from component.text import REFERENCE, expand
from kube.selector import Operator, SelectorError, requirement

Seconds = Annotated[int, Meta(ge=1, le=86_400 * 366, description="whole seconds, 1 to 31622400")]
Quantity = Annotated[
    str,
    Meta(pattern=r"^[0-9]+(\.[0-9]+)?([numkMGTPE]|[KMGTPE]i)?\Z", description="a quantity, as 4, 500m or 8Gi"),
]
NodeName = Annotated[
    str,
    Meta(
        pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?\Z",
        max_length=253,
        description="a DNS name: lower case letters, digits, - and . inside, at most 253",
    ),
]
RestartPeriod = Annotated[int, Meta(ge=1, le=MAX_CONTAINER_RESTART_PERIOD_S, description="whole seconds, 1 to 300")]
Count = Annotated[int, Meta(ge=1, le=2**31 - 1, description="a whole number, 1 or more")]
POD_CIDR = "an IPv4 network of at most /30, as 127.20.1.0/24"
MAX_PODS = 110  # of a kubelet
OF_RESOURCES = ("capacity", "systemReserved", "kubeReserved")


class Listen(Section, frozen=True):
    address: NonEmpty = "::"  # every address, of both families
    port: Port = 9375


class Log(Section, frozen=True):
    level: Literal["debug", "info", "warning", "error"] = "info"


class Kubernetes(Section, frozen=True):
    """`kubeconfig` None: the service account of the pod. `server` overrides the address of either."""

    kubeconfig: NonEmpty | None = None
    server: NonEmpty | None = None


if TYPE_CHECKING:
    Check = CheckSection
else:
    Check = check_section()


class ConditionSettings(Section, frozen=True):
    publish: bool = False
    pod_name: str = "$(POD_NAME)"
    pod_namespace: str = "$(POD_NAMESPACE)"
    pod_uid: str = msgspec.field(name="podUID", default="$(POD_UID)")


class Cri(Section, frozen=True):
    """Mode `kubelet`: containers of a container runtime. `address`: the node's, that pods and people reach it by."""

    address: NonEmpty
    socket: NonEmpty = CONTAINERD_SOCKET
    kubelet_healthz: NonEmpty | None = "http://127.0.0.1:10248/healthz"
    request_timeout_seconds: Annotated[int, Meta(ge=1, le=3600, description="whole seconds, 1 to 3600")] = 120


class TaintSection(Section, frozen=True):
    key: NonEmpty
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
    value: str = ""


class Kubelet(Section, frozen=True):
    """Mode `kubelet`: the node that the agent is. `cri` None: containers are processes, with addresses of podCIDR.
    `capacity`: overrides what is read of the machine. `system_reserved`, `kube_reserved`: what pods may not have of it.
    `register_with_taints`: of a Node that the agent creates."""

    node_name: NodeName
    root_dir: NonEmpty
    pod_cidr: NonEmpty | None = msgspec.field(name="podCIDR", default=None)
    cri: Cri | None = None
    capacity: dict[str, Quantity] = msgspec.field(default_factory=dict)
    system_reserved: dict[str, Quantity] = msgspec.field(default_factory=dict)
    kube_reserved: dict[str, Quantity] = msgspec.field(default_factory=dict)
    register_with_taints: tuple[TaintSection, ...] = ()
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    lease_duration_seconds: Seconds = 40
    node_status_update_seconds: Seconds = 10
    compat: Literal["current", "v1.16"] = "current"
    feature_gates: dict[str, bool] = msgspec.field(default_factory=dict)
    max_container_restart_period_seconds: RestartPeriod = MAX_CONTAINER_RESTART_PERIOD_S
    eviction_hard: dict[str, str] = msgspec.field(default_factory=dict)
    eviction_soft: dict[str, str] = msgspec.field(default_factory=dict)
    eviction_soft_grace_period: dict[str, str] = msgspec.field(default_factory=dict)
    eviction_minimum_reclaim: dict[str, str] = msgspec.field(default_factory=dict)
    eviction_pressure_transition_period: str = "5m"
    max_pods: Annotated[int, Meta(ge=1, le=65_000, description="a whole number, 1 to 65000")] | None = None
    static_pod_path: Annotated[str, Meta(pattern=r"^/", description="an absolute path")] | None = None

    @property
    def most_pods(self) -> int:
        """`maxPods`, else `capacity.pods`, else 110: what the Node reports and what is admitted are one number."""
        if self.max_pods is not None:
            return self.max_pods
        pods = self.capacity.get("pods", "")
        return int(pods) if pods.isdigit() else MAX_PODS


class ProfileSection(Section, frozen=True):
    """A ready-made list of checks. `leave_out`: names of its checks. `host_root`: where the agent sees the host's
    files. `period_seconds`, `failure_threshold`: of its checks."""

    name: Literal["minimal", "default", "gpu", "storage"]
    leave_out: tuple[str, ...] = ()
    host_root: Annotated[str, Meta(pattern=r"^/", description="an absolute path")] = "/host"
    period_seconds: Count | None = None
    failure_threshold: Count | None = None


class Settings(Section, frozen=True):
    mode: Literal["pod", "node", "kubelet"]
    listen: Listen = Listen()
    log: Log = Log()
    kubernetes: Kubernetes = Kubernetes()
    profile: ProfileSection | None = None
    checks: tuple[Check, ...] = ()
    state_file: NonEmpty | None = None
    condition: ConditionSettings = ConditionSettings()
    kubelet: Kubelet | None = None
    node: NodeSection | None = None


def load(path: str, environ: Mapping[str, str] = os.environ) -> Settings:
    """The settings in the file. Raises SettingsError: one line with file, line of the file, key and what is allowed."""
    return reader.read(path, lambda text: _located(text, environ))


def _located(text: bytes, environ: Mapping[str, str]) -> Settings:
    document = reader.document(text)
    try:
        return _parsed(document, environ)
    except SettingsError as e:
        line = line_of(text, str(e).partition(": ")[0])
        raise e if line is None else SettingsError(f"line {line}: {e}") from e


def parse(text: bytes, environ: Mapping[str, str] = os.environ) -> Settings:
    """The settings in the bytes of a file. Raises SettingsError."""
    return _parsed(reader.document(text), environ)


def _parsed(document: object, environ: Mapping[str, str]) -> Settings:
    filled = _with_profile(_with_text_quantities(document))
    return _check(_expand(reader.convert(filled, Settings), environ))


def _with_text_quantities(document: object) -> object:
    """`cpu: 4` is what people write: whole numbers of resources are taken as the text they look like."""
    match document:
        case {"kubelet": dict(kubelet), **others}:
            texts = {key: _with_texts(kubelet[key]) for key in OF_RESOURCES if key in kubelet}
            return {**others, "kubelet": {**kubelet, **texts}}
    return document


def _with_texts(given: object) -> object:
    if not isinstance(given, dict):
        return given
    return {k: str(v) if type(v) is int and v.bit_length() < 64 else v for k, v in given.items()}


def _with_profile(document: Any) -> Any:  # noqa: ANN401 - what YAML gives
    """`profile: default` is what people write. Its checks come behind those of the file, so that an error names the
    place in the file. What is wrong with a section is said by those who read it."""
    if not isinstance(document, dict) or document.get("profile") is None:
        return document
    section = {"name": document["profile"]} if isinstance(document["profile"], str) else document["profile"]
    document = {**document, "profile": section}
    own = document.get("checks", [])
    profile = reader.convert({"profile": section}, _ProfileOnly).profile
    if profile is None or document.get("mode") not in ("pod", "node") or not isinstance(own, list):
        return document
    if not all(isinstance(check, dict) for check in own):
        return document
    figures = {"periodSeconds": profile.period_seconds, "failureThreshold": profile.failure_threshold}
    given = {key: value for key, value in figures.items() if value is not None}
    ready_made = [{**given, **check} for check in checks_of(profile.name, document["mode"], profile.host_root)]
    names = [check["name"] for check in ready_made]
    for name in profile.leave_out:
        if name not in PROFILES[profile.name]:
            raise SettingsError(f"profile.leaveOut: {name[:64]} is not in {profile.name}, allowed: {', '.join(names)}")
    return {**document, "checks": joined(own, ready_made, profile.leave_out, list(KINDS))}


class _ProfileOnly(Section, frozen=True):
    profile: ProfileSection | None = None


def _expand(settings: Settings, environ: Mapping[str, str]) -> Settings:
    """Puts in $(NAME) references to the environment, where the file may hold them."""
    listen = msgspec.structs.replace(
        settings.listen, address=_expanded(settings.listen.address, "listen.address", environ)
    )
    condition = settings.condition
    if condition.publish:
        condition = msgspec.structs.replace(
            condition,
            pod_name=_expanded(condition.pod_name, "condition.podName", environ),
            pod_namespace=_expanded(condition.pod_namespace, "condition.podNamespace", environ),
            pod_uid=_expanded(condition.pod_uid, "condition.podUID", environ),
        )
    return msgspec.structs.replace(settings, listen=listen, condition=condition)


def _expanded(text: str, key: str, environ: Mapping[str, str]) -> str:
    for name in REFERENCE.findall(text):
        if name and not environ.get(name):
            allowed = "the value itself, or the name of one that is set"
            raise SettingsError(f"{key}: the environment variable {name} is not set, allowed: {allowed}")
    return expand(text, environ)


def _check(settings: Settings) -> Settings:
    """The rules that go across keys."""
    if settings.mode != "node" and settings.node is not None:
        raise SettingsError(f"node: not for mode {settings.mode}, allowed: only with mode: node")
    if settings.mode == "kubelet":
        if settings.kubelet is None:
            raise SettingsError("kubelet: missing, allowed: a mapping with nodeName, podCIDR and rootDir")
        given = {
            "profile": settings.profile is not None,
            "checks": bool(settings.checks),
            "stateFile": settings.state_file is not None,
            "condition.publish": settings.condition.publish,
        }
        if any(given.values()):
            key = next(key for key, is_given in given.items() if is_given)
            raise SettingsError(f"{key}: not for mode kubelet, allowed: only with mode: pod")
        _check_kubelet(settings.kubelet)
        return settings
    if settings.kubelet is not None:
        raise SettingsError(f"kubelet: not for mode {settings.mode}, allowed: only with mode: kubelet")
    if settings.mode == "node":
        _check_node(settings)
    elif not settings.checks:
        raise SettingsError("checks: missing, allowed: a list of at least one check, as {name: cni, cni: {}}")
    seen: set[str] = set()
    for index, check in enumerate(settings.checks):
        if check.name in seen:
            raise SettingsError(f"checks[{index}].name: {check.name} is there twice, allowed: a name for each check")
        seen.add(check.name)
        _check_kind(check, f"checks[{index}]")
    return settings


def _check_node(settings: Settings) -> None:
    if settings.node is None:
        raise SettingsError("node: missing, allowed: a mapping with name and server")
    if settings.condition.publish:
        raise SettingsError("condition.publish: not for mode node, allowed: node.publish")
    left_out = () if settings.profile is None else settings.profile.leave_out
    check_node(settings.node, [check.name for check in settings.checks], left_out)


def _check_kind(check: Check, key: str) -> None:
    given = given_kinds(check)
    if len(given) != 1:
        problem = f"has {' and '.join(given)}" if given else "has no kind"
        raise SettingsError(f"{key}: {problem}, allowed: one of {', '.join(KINDS)}")


def _check_pressure(kubelet: Kubelet) -> None:
    # Late: other modes have no use for it.
    from agent.kubelet.node.pressure import CONDITIONS, OF_RUNTIME, duration_s, thresholds_of

    keys = (kubelet.eviction_hard, kubelet.eviction_soft)
    try:
        thresholds = thresholds_of(*keys, kubelet.eviction_soft_grace_period, kubelet.eviction_minimum_reclaim)
    except ValueError as e:
        raise SettingsError(f"kubelet.{e}") from None
    for threshold in thresholds:
        if kubelet.cri is None and threshold.signal in OF_RUNTIME:
            key = "evictionSoft" if threshold.grace_s else "evictionHard"
            said = f"kubelet.{key}.{threshold.signal}: is not measured without kubelet.cri"
            raise SettingsError(f"{said}, allowed: {', '.join(s for s in CONDITIONS if s not in OF_RUNTIME)}")
    transition_s = duration_s(kubelet.eviction_pressure_transition_period)
    if transition_s is None or transition_s < 0:
        raise SettingsError("kubelet.evictionPressureTransitionPeriod: is no duration, allowed: one, as 5m or 1m30s")


def _check_reserved(kubelet: Kubelet) -> None:
    from agent.kubelet.node.reserved import RESERVABLE  # late: other modes have no use for it

    for key, given in (("systemReserved", kubelet.system_reserved), ("kubeReserved", kubelet.kube_reserved)):
        for name in given.keys() - set(RESERVABLE):
            raise SettingsError(f"kubelet.{key}.{name}: cannot be reserved, allowed: {', '.join(RESERVABLE)}")


def _check_taints(taints: tuple[TaintSection, ...]) -> None:
    for index, taint in enumerate(taints):
        key = f"kubelet.registerWithTaints[{index}]"
        try:
            requirement(taint.key, Operator.IN, [taint.value])
        except SelectorError as e:
            raise SettingsError(f"{key}: {e}, allowed: key and value as of a label") from e
        if any((taint.key, taint.effect) == (other.key, other.effect) for other in taints[:index]):
            raise SettingsError(f"{key}: is there twice, allowed: each key once with each effect")


def _check_kubelet(kubelet: Kubelet) -> None:
    _check_pressure(kubelet)
    _check_reserved(kubelet)
    _check_taints(kubelet.register_with_taints)
    for name in kubelet.feature_gates.keys() - GATES.keys():
        raise SettingsError(f"kubelet.featureGates.{name}: is no gate of ours, allowed: {', '.join(sorted(GATES))}")
    semantics = chosen(kubelet.compat, kubelet.feature_gates.items())
    needed = {
        "ContainerRestartRules": semantics.container_restart_rules,
        "NodeDeclaredFeatures": semantics.node_declared_features,
    }
    for name, on in needed.items():
        if semantics.restart_all_containers_on_container_exits and not on:
            key = "kubelet.featureGates.RestartAllContainersOnContainerExits"
            raise SettingsError(f"{key}: is on without {name}, allowed: both on, or this one off")
    if kubelet.cri is not None:
        _check_cri(kubelet, kubelet.cri)
        return
    if kubelet.pod_cidr is None:
        raise SettingsError(f"kubelet.podCIDR: missing, allowed: {POD_CIDR}, or kubelet.cri")
    try:
        network = ipaddress.ip_network(kubelet.pod_cidr)
    except ValueError as e:
        raise SettingsError(f"kubelet.podCIDR: {e}, allowed: {POD_CIDR}") from e
    if network.version != 4 or network.prefixlen > 30:
        raise SettingsError(f"kubelet.podCIDR: is {network}, allowed: {POD_CIDR}")


def _check_cri(kubelet: Kubelet, cri: Cri) -> None:
    if kubelet.pod_cidr is not None:
        raise SettingsError(
            "kubelet.podCIDR: not with kubelet.cri, allowed: only one of them, pods get addresses by CNI"
        )
    if not kubelet.root_dir.startswith("/"):
        raise SettingsError(f"kubelet.rootDir: is {kubelet.root_dir}, allowed: with kubelet.cri a path from / on")
    try:
        ipaddress.ip_address(cri.address)
    except ValueError as e:
        raise SettingsError(f"kubelet.cri.address: {e}, allowed: an address of the node, as 192.0.2.7") from e
    try:
        url = urlsplit(cri.kubelet_healthz or "http://127.0.0.1")
        # No name: whoever writes asks first, and must not wait for a look-up.
        known = url.scheme in ("http", "https") and bool(ipaddress.ip_address(url.hostname or "")) and url.port != 0
    except ValueError:
        known = False
    if not known:
        allowed = "http://127.0.0.1:10248/healthz or another URL with an address, or null"
        raise SettingsError(f"kubelet.cri.kubeletHealthz: is {cri.kubelet_healthz}, allowed: {allowed}")
