"""The configuration file: one YAML document, every key optional. An unknown key or a wrong value stops the start.

Errors are one line: the file, the path of the key, what is wrong, and what is allowed there. Pure but for reading the
file; `cli` imports it too.
"""

import types
import typing
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import yaml
from msgspec import Meta

from kube import contract

DnsLabel = Annotated[str, Meta(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$", description="a DNS label")]
DnsName = Annotated[str, Meta(pattern=r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$", description="a DNS name")]
Port = Annotated[int, Meta(ge=0, le=65535, description="a port, 0 = any free one")]
Seconds = Annotated[float, Meta(ge=0, le=86400, description="seconds, 0 to 86400")]
Text = Annotated[str, Meta(min_length=1, description="text")]

HEARTBEAT_LIMIT_MIN_S = 5.0  # kubelets renew every 10 s by default; below this only their jitter would be measured


class SettingsError(Exception):
    """The configuration cannot be used. One line: file, key, what is wrong, what is allowed."""


class _Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A mapping of the file; its fields are the keys, in camel case."""


class Listen(_Section, frozen=True):
    """Where kube-scheduler finds us. Loopback, as there is no authentication: it runs beside the scheduler."""

    address: Text = "127.0.0.1"
    port: Port = 9376


class Kubernetes(_Section, frozen=True):
    """kubeconfig: path of a file, null = the pod's service account. server: overrides the address found there."""

    kubeconfig: Text | None = None
    server: Text | None = None


class HealthPods(_Section, frozen=True):
    """Which pods speak for their nodes. daemon_set: null = any owner, the label selector alone decides."""

    namespace: DnsLabel = contract.NAMESPACE
    label_selector: str = f"{contract.LABEL_NAME}={contract.NAME_AGENT}"
    daemon_set: DnsName | None = contract.NAME_AGENT


class Exempt(_Section, frozen=True):
    """Pods that are never held back, beside our own and those of system-critical priority.

    label: key of the label by which a pod opts out (any value but "false"), null = there is none.
    """

    daemon_set_pods: bool = True
    namespaces: tuple[DnsLabel, ...] = ("kube-system",)
    label: Text | None = contract.LABEL_EXEMPT


class Heartbeat(_Section, frozen=True):
    """limit_seconds: age of a kubelet's Lease beyond which its node counts as lost, 0 = do not look at Leases.

    A kubelet renews every 10 s and a little; at 20 s one missed renewal would close a healthy node for a moment. With
    24 s and the clock's second a dead kubelet closes its node within 25 s.
    """

    limit_seconds: Seconds = 24


class Gate(_Section, frozen=True):
    """missing_grace_seconds: how long a node keeps its last verdict when its health pod is gone (a roll-out).

    stale_limit_seconds: age of the last word from the API server beyond which no verdict is given any more.
    """

    health_pods: HealthPods = HealthPods()
    exempt: Exempt = Exempt()
    heartbeat: Heartbeat = Heartbeat()
    missing_grace_seconds: Seconds = 30
    stale_limit_seconds: Annotated[float, Meta(ge=75, le=86400, description="seconds, 75 to 86400")] = 120


class Kick(_Section, frozen=True):
    """The Node write after a release. repeat_after_seconds: once more, for other replicas; 0 = not."""

    enabled: bool = True
    repeat_after_seconds: Seconds = 2


class Log(_Section, frozen=True):
    level: Literal["debug", "info", "warning", "error"] = "info"


class Settings(_Section, frozen=True):
    listen: Listen = Listen()
    kubernetes: Kubernetes = Kubernetes()
    gate: Gate = Gate()
    kick: Kick = Kick()
    log: Log = Log()


def load(path: Path) -> Settings:
    """The settings in the file. Raises SettingsError."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as e:
        raise SettingsError(f"{path}: cannot be read: {e.strerror}") from e
    except UnicodeDecodeError as e:
        raise SettingsError(f"{path}: is not UTF-8 text (byte {e.start})") from e
    try:
        return parse(text)
    except SettingsError as e:
        raise SettingsError(f"{path}: {e}") from e


def parse(text: str) -> Settings:
    """The settings in a YAML text; an empty one gives the defaults. Raises SettingsError."""
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as e:
        mark = getattr(e, "problem_mark", None)
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        problem = getattr(e, "problem", None) or "a character that YAML does not allow"
        raise SettingsError(f"{where}not YAML: {problem}") from e
    except (RecursionError, ValueError) as e:
        raise SettingsError("not YAML that can be read") from e
    if document is None:
        document = {}
    _refuse_unknown_keys(document, Settings, "")
    try:
        settings = msgspec.convert(document, Settings)
    except msgspec.ValidationError as e:
        raise SettingsError(_explain(str(e))) from e
    limit_s = settings.gate.heartbeat.limit_seconds
    if 0 < limit_s < HEARTBEAT_LIMIT_MIN_S:
        raise SettingsError(
            f"gate.heartbeat.limitSeconds: {limit_s:g} is too short, "
            f"allowed: 0 (off) or {HEARTBEAT_LIMIT_MIN_S:g} and more"
        )
    return settings


def _refuse_unknown_keys(value: object, section: type[_Section], path: str) -> None:
    """msgspec names the section but not what it may hold, and stops before it has looked into the others."""
    if not isinstance(value, dict):
        raise SettingsError(f"{path or 'the document'}: must be a mapping, allowed keys: {_keys(section)}")
    fields = {field.encode_name: field for field in msgspec.structs.fields(section)}
    for key, inner in value.items():
        here = f"{path}.{key}" if path else str(key)
        if key not in fields:
            raise SettingsError(f"{here}: unknown key, allowed here: {_keys(section)}")
        kind = fields[key].type
        if isinstance(kind, type) and issubclass(kind, _Section):
            _refuse_unknown_keys(inner, kind, here)


def _keys(section: type[_Section]) -> str:
    return ", ".join(field.encode_name for field in msgspec.structs.fields(section))


def _explain(error: str) -> str:
    """msgspec's "<problem> - at `$.a.b`" turned round: "a.b: <problem>, allowed: <what>"."""
    problem, _, at = error.rpartition(" - at `$")
    path = at.rstrip("`").lstrip(".")
    problem = (
        problem.replace("`", "").replace("Invalid enum value", "not an allowed value").replace("Expected", "expected")
    )
    return f"{path}: {problem}, allowed: {_allowed(path)}"


def _allowed(path: str) -> str:
    kind: Any = Settings
    for part in path.replace("[...]", "").partition("[")[0].split("."):
        kind = next(field.type for field in msgspec.structs.fields(kind) if field.encode_name == part)
    return _describe(kind)


def _describe(kind: Any) -> str:  # noqa: ANN401
    """What a value of this type may be, in words."""
    origin = typing.get_origin(kind)
    if origin is Annotated:
        return next(
            (meta.description for meta in kind.__metadata__ if meta.description), _describe(typing.get_args(kind)[0])
        )
    if origin is Literal:
        return ", ".join(str(choice) for choice in typing.get_args(kind))
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_describe(choice) for choice in typing.get_args(kind))
    if origin is tuple:
        return f"a list, each {_describe(typing.get_args(kind)[0])}"
    if kind is type(None):
        return "null"
    return {bool: "true or false", str: "text", int: "a whole number", float: "a number"}.get(kind, "a mapping")
