"""Parses the /configz of a kube-scheduler: the configuration that it has loaded. Pure.

/configz returns a KubeSchedulerConfiguration of kubescheduler.config.k8s.io/v1 with defaults filled in, under one key
(kubernetes cmd/kube-scheduler/app/server.go). Up to 1.35 its keys are Go's (URLPrefix for urlPrefix), and it has no
kind. Private keys and certificates in it are dropped.
"""

import re
from typing import Any

import msgspec

from cli.doctor.facts import Extender, Loaded, Profile

_UNITS_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)")


class ConfigzError(Exception):
    """The answer is not the configuration of a kube-scheduler. One line."""


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
    """Parses the answer. Raises ConfigzError."""
    try:
        documents = msgspec.convert(_as_in_files(msgspec.json.decode(body)), dict[str, _Configuration])
        found = [one for one in documents.values() if _is_scheduler(one)]
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError, RecursionError) as e:
        raise ConfigzError("its answer is no configuration; check that it is a kube-scheduler") from e
    if not found:
        raise ConfigzError("its answer holds no KubeSchedulerConfiguration; check that it is a kube-scheduler")
    document = found[0]
    return Loaded(
        extenders=tuple(_extender(one) for one in document.extenders or ()),
        profiles=tuple(
            Profile(one.scheduler_name, one.percentage_of_nodes_to_score) for one in document.profiles or ()
        ),
        percentage_of_nodes_to_score=document.percentage_of_nodes_to_score,
        profiling=document.enable_profiling,
        contention_profiling=document.enable_contention_profiling,
        qps=document.client_connection.qps,
        burst=document.client_connection.burst,
        content_type=document.client_connection.content_type,
        kubeconfig=document.client_connection.kubeconfig or None,
    )


def _is_scheduler(document: _Configuration) -> bool:
    named = document.kind == "KubeSchedulerConfiguration"
    return named or (not document.kind and document.api_version.startswith("kubescheduler.config.k8s.io/"))


def _as_in_files(document: Any) -> Any:  # noqa: ANN401
    """Rewrites Go's keys to those of a configuration file."""
    if isinstance(document, dict):
        return {
            _INITIALS.sub(lambda found: found[0].lower(), key): _as_in_files(each) for key, each in document.items()
        }
    return [_as_in_files(each) for each in document] if isinstance(document, list) else document


def _extender(document: _Extender) -> Extender:
    return Extender(
        url_prefix=document.url_prefix,
        filter_verb=document.filter_verb,
        preempt_verb=document.preempt_verb,
        prioritize_verb=document.prioritize_verb,
        bind_verb=document.bind_verb,
        weight=document.weight,
        timeout_s=seconds(document.http_timeout),
        ignorable=document.ignorable,
        node_cache_capable=document.node_cache_capable,
        managed_resources=tuple(one.name for one in document.managed_resources or ()),
    )


def seconds(duration: str | None) -> float | None:
    """Parses a duration of Go, as "1m30s". None for no duration, zero or another text."""
    if not duration or _PART.sub("", duration):
        return None
    return sum(float(number) * _UNITS_S[unit] for number, unit in _PART.findall(duration)) or None
