"""What /configz of a kube-scheduler tells of its configuration. Pure.

It is the configuration as loaded, defaults filled in: KubeSchedulerConfiguration of kubescheduler.config.k8s.io/v1
under one key (kubernetes cmd/kube-scheduler/app/server.go). Up to 1.35 its keys are Go's (URLPrefix for urlPrefix), and
it has no kind. Keys and certificates that may be in it are not kept.
"""

import re
from typing import Any

import msgspec

from cli.doctor.facts import Extender, Loaded, Profile

_UNITS_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)")


class ConfigzError(Exception):
    """It cannot be understood. One line."""


class _Managed(msgspec.Struct, frozen=True):
    name: str = ""


class _Extender(msgspec.Struct, frozen=True, rename="camel"):
    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    bind_verb: str = ""
    weight: int = 0
    http_timeout: str | None = msgspec.field(default=None, name="httpTimeout")
    ignorable: bool = False
    node_cache_capable: bool = False
    managed_resources: list[_Managed] | None = None


class _Profile(msgspec.Struct, frozen=True, rename="camel"):
    scheduler_name: str = "default-scheduler"
    percentage_of_nodes_to_score: int | None = None


class _Client(msgspec.Struct, frozen=True, rename="camel"):
    qps: float | None = None
    burst: int | None = None
    content_type: str | None = None
    kubeconfig: str | None = None


class _Configuration(msgspec.Struct, frozen=True, rename="camel"):
    kind: str = ""
    api_version: str = ""
    extenders: list[_Extender] | None = None
    profiles: list[_Profile] | None = None
    percentage_of_nodes_to_score: int | None = None
    client_connection: _Client = _Client()
    enable_profiling: bool | None = None
    enable_contention_profiling: bool | None = None


_INITIALS = re.compile(r"^[A-Z]+(?=[A-Z][a-z]|$)|^[A-Z]")


def loaded(body: bytes) -> Loaded:
    """Raises ConfigzError."""
    try:
        told_all = msgspec.convert(_as_in_files(msgspec.json.decode(body)), dict[str, _Configuration])
        found = [one for one in told_all.values() if _is_a_schedulers(one)]
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError, RecursionError) as e:
        raise ConfigzError("what it answers is no configuration: is it a kube-scheduler?") from e
    if not found:
        raise ConfigzError("it tells no KubeSchedulerConfiguration: is it a kube-scheduler?")
    told = found[0]
    return Loaded(
        extenders=tuple(_extender(one) for one in told.extenders or ()),
        profiles=tuple(Profile(one.scheduler_name, one.percentage_of_nodes_to_score) for one in told.profiles or ()),
        percentage_of_nodes_to_score=told.percentage_of_nodes_to_score,
        profiling=told.enable_profiling,
        contention_profiling=told.enable_contention_profiling,
        qps=told.client_connection.qps,
        burst=told.client_connection.burst,
        content_type=told.client_connection.content_type,
        kubeconfig=told.client_connection.kubeconfig or None,
    )


def _is_a_schedulers(told: _Configuration) -> bool:
    named = told.kind == "KubeSchedulerConfiguration"
    return named or (not told.kind and told.api_version.startswith("kubescheduler.config.k8s.io/"))


def _as_in_files(told: Any) -> Any:  # noqa: ANN401
    """Keys as a file has them."""
    if isinstance(told, dict):
        return {_INITIALS.sub(lambda found: found[0].lower(), key): _as_in_files(each) for key, each in told.items()}
    return [_as_in_files(each) for each in told] if isinstance(told, list) else told


def _extender(told: _Extender) -> Extender:
    return Extender(
        url_prefix=told.url_prefix,
        filter_verb=told.filter_verb,
        preempt_verb=told.preempt_verb,
        prioritize_verb=told.prioritize_verb,
        bind_verb=told.bind_verb,
        weight=told.weight,
        timeout_s=seconds(told.http_timeout),
        ignorable=told.ignorable,
        node_cache_capable=told.node_cache_capable,
        managed_resources=tuple(one.name for one in told.managed_resources or ()),
    )


def seconds(duration: str | None) -> float | None:
    """Of Go's text for a duration, "1m30s"; None for none, zero or what is not one."""
    if not duration or _PART.sub("", duration):
        return None
    return sum(float(number) * _UNITS_S[unit] for number, unit in _PART.findall(duration)) or None
