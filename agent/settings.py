"""The configuration file of the agent: YAML -> frozen settings, or one line that names the key and what it may be."""

import ipaddress
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import yaml
from msgspec import Meta

from agent import explain
from agent.checks.catalogue import KINDS, CheckSection, check_section, given_kinds
from agent.keys import NonEmpty, Port
from component.settings import Section, SettingsError

Seconds = Annotated[int, Meta(ge=1, le=86_400 * 366)]
Quantity = Annotated[str, Meta(pattern=r"^[0-9]+(\.[0-9]+)?([numkMGTPE]|[KMGTPE]i)?$")]
NAME = re.compile(r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
MAX_PODS = 110  # of a kubelet
REFERENCE = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")


class Listen(Section, frozen=True):
    address: NonEmpty = "0.0.0.0"
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


class Kubelet(Section, frozen=True):
    """Mode `kubelet`: the node that the agent is."""

    node_name: NonEmpty
    pod_cidr: NonEmpty = msgspec.field(name="podCIDR")
    root_dir: NonEmpty
    capacity: dict[str, Quantity] = msgspec.field(default_factory=lambda: {"cpu": "4", "memory": "8Gi", "pods": "110"})
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    lease_duration_seconds: Seconds = 40
    node_status_update_seconds: Seconds = 10
    max_pods: Annotated[int, Meta(ge=1, le=65_000)] | None = None

    @property
    def most_pods(self) -> int:
        """`maxPods`, else `capacity.pods`, else 110: what the Node reports and what is admitted are one number."""
        if self.max_pods is not None:
            return self.max_pods
        pods = self.capacity.get("pods", "")
        return int(pods) if pods.isdigit() else MAX_PODS


class Settings(Section, frozen=True):
    mode: Literal["pod", "kubelet"]
    listen: Listen = Listen()
    log: Log = Log()
    kubernetes: Kubernetes = Kubernetes()
    checks: tuple[Check, ...] = ()
    condition: ConditionSettings = ConditionSettings()
    kubelet: Kubelet | None = None


def load(path: str, environ: Mapping[str, str] = os.environ) -> Settings:
    """Reads and validates a file. Raises SettingsError: one line with the file, the key's path and what is allowed."""
    try:
        text = Path(path).read_bytes()
    except OSError as e:
        raise SettingsError(f"{path}: cannot be read: {e.strerror}; give an existing file with --config") from e
    try:
        return parse(text, environ)
    except SettingsError as e:
        raise SettingsError(f"{path}: {e}") from e


def parse(text: bytes, environ: Mapping[str, str] = os.environ) -> Settings:
    """Validates the bytes of a file. Raises SettingsError."""
    try:
        raw = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as e:
        raise SettingsError(f"not valid YAML: {' '.join(str(e).split())[:200]}") from e
    if not isinstance(raw, dict):
        raise SettingsError("expected a mapping with the key mode (pod or kubelet)")
    try:
        settings = msgspec.convert(_with_text_quantities(raw), Settings)
    except msgspec.ValidationError as e:
        raise SettingsError(explain.error_line(str(e), Settings)) from e
    except (RecursionError, TypeError) as e:
        raise SettingsError("the file is nested too deeply or holds keys that are not text") from e
    return _check(_expand(settings, environ))


def _with_text_quantities(raw: dict[str, Any]) -> dict[str, Any]:
    """`cpu: 4` is what people write: whole numbers in capacity are taken as the text they look like."""
    kubelet = raw.get("kubelet")
    capacity = kubelet.get("capacity") if isinstance(kubelet, dict) else None
    if not isinstance(kubelet, dict) or not isinstance(capacity, dict):
        return raw
    texts = {k: str(v) if isinstance(v, int) and not isinstance(v, bool) else v for k, v in capacity.items()}
    return {**raw, "kubelet": {**kubelet, "capacity": texts}}


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
        if not environ.get(name):
            raise SettingsError(f"{key}: the environment variable {name} is not set; set it or write the value here")
    return REFERENCE.sub(lambda match: environ[match.group(1)], text)


def _check(settings: Settings) -> Settings:
    """The rules that go across keys."""
    if settings.mode == "kubelet":
        if settings.kubelet is None:
            raise SettingsError("kubelet: missing; mode kubelet needs nodeName, podCIDR and rootDir there")
        if settings.checks or settings.condition.publish:
            key = "checks" if settings.checks else "condition.publish"
            raise SettingsError(f"{key}: only for mode pod; remove it or set mode: pod")
        _check_kubelet(settings.kubelet)
        return settings
    if settings.kubelet is not None:
        raise SettingsError("kubelet: only for mode kubelet; remove it or set mode: kubelet")
    if not settings.checks:
        raise SettingsError("checks: missing; mode pod needs at least one check, e.g. {name: cni, cni: {}}")
    seen: set[str] = set()
    for index, check in enumerate(settings.checks):
        if check.name in seen:
            raise SettingsError(f"checks[{index}].name: {check.name} is used twice; give each check its own name")
        seen.add(check.name)
        _check_kind(check, f"checks[{index}]")
    return settings


def _check_kind(check: Check, key: str) -> None:
    given = given_kinds(check)
    if not given:
        raise SettingsError(f"{key}: must specify a handler type: one of {', '.join(KINDS)}")
    if len(given) > 1:
        raise SettingsError(
            f"{key}.{given[1]}: may not specify more than 1 handler type; keep one of {', '.join(given)}"
        )


def _check_kubelet(kubelet: Kubelet) -> None:
    if not NAME.match(kubelet.node_name) or len(kubelet.node_name) > 253:
        raise SettingsError("kubelet.nodeName: not a DNS name; allowed: lower case letters, digits, - and .")
    try:
        network = ipaddress.ip_network(kubelet.pod_cidr)
    except ValueError as e:
        raise SettingsError(f"kubelet.podCIDR: {e}; write it like 127.20.1.0/24") from e
    if network.version != 4 or network.prefixlen > 30:
        raise SettingsError("kubelet.podCIDR: must be an IPv4 network of at most /30, like 127.20.1.0/24")
