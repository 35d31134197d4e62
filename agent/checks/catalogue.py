"""The kinds of checks: one row each. From the rows follow the keys of a check in the settings, and what is run.

A new check is a file in `builtin` and a row in KINDS.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Annotated, Any, Generic, Literal, TypeVar, cast

import msgspec
from msgspec import Meta

from agent.checks.builtin import (
    certificates,
    cni,
    connection_tables,
    dns,
    exec,  # noqa: A004 - named as in the settings
    filesystem,
    gpu,
    http_get,
    kernel_log,
    kubelet_plugins,
    link,
    pod_addresses,
    pod_network,
    pressure,
    reader,
    runtime,
    service_path,
    systemd_unit,
    tcp_socket,
    time_sync,
)
from agent.checks.rights import NO_RIGHTS, Rights
from agent.checks.state import Finding, Severity, Thresholds
from agent.checks.surroundings import Surroundings
from agent.wire.model import PROBE_DEFAULTS
from component.settings import Section

UNKNOWN_LIMIT_S = 3600
OWN_FILES = ("position_file", "copy_file")

Run = Callable[[], Finding]
"""Makes one run of a check."""

S = TypeVar("S", bound=Section)
_Name = Annotated[
    str,
    Meta(
        pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z",
        max_length=63,
        description="lower case letters, digits and - inside, at most 63",
    ),
]
_ProbeInt = Annotated[int, Meta(ge=0, le=2**31 - 1, description="a whole number, 0 or more; 0: the default")]


@dataclass(frozen=True, slots=True)
class Kind(Generic[S]):
    """One kind of check. `make(settings, timeout_s)` gives the check itself; it does nothing yet. `doc`: what it
    looks at, one line of docs/configuration.md. `rights`: what it takes beyond a container as any other. `about`: its
    page in docs/checks.md. `timeout_s`: of a check that gives none, if its period is not shorter. `calls`: how many of
    those one run may take, where each of its calls has one for itself."""

    settings: type[S]
    make: Callable[[S, float], Run]
    doc: str
    rights: Rights = NO_RIGHTS
    about: str = ""
    timeout_s: int = PROBE_DEFAULTS.timeout_s
    calls: int = 1


def _row(module: Any) -> Kind[Any]:  # noqa: ANN401 - a module of builtin
    timeout_s = getattr(module, "TIMEOUT_S", PROBE_DEFAULTS.timeout_s)
    about, calls = module.__doc__ or "", getattr(module, "CALLS", 1)
    return Kind(module.Settings, module.Check, module.DOC, module.RIGHTS, about, timeout_s, calls)


KINDS: dict[str, Kind[Any]] = {
    "certificates": _row(certificates),
    "cni": _row(cni),
    "connectionTables": _row(connection_tables),
    "dns": _row(dns),
    "exec": _row(exec),
    "filesystem": _row(filesystem),
    "gpu": _row(gpu),
    "httpGet": _row(http_get),
    "kernelLog": _row(kernel_log),
    "kubeletPlugins": _row(kubelet_plugins),
    "link": _row(link),
    "podAddresses": _row(pod_addresses),
    "podNetwork": _row(pod_network),
    "pressure": _row(pressure),
    "reader": _row(reader),
    "runtime": _row(runtime),
    "servicePath": _row(service_path),
    "systemdUnit": _row(systemd_unit),
    "tcpSocket": _row(tcp_socket),
    "timeSync": _row(time_sync),
}


class CheckSection(Section, frozen=True):
    """One check of the settings, with the Probe fields of Kubernetes. A zero means the default, as the API server
    defaults it, of `timeout_seconds` the kind's or the period.

    `unknown`: what becomes of a node when a check that passed before can no longer be run, and `unknown_limit_seconds`
    for how long it is kept open then.
    """

    name: _Name
    initial_delay_seconds: _ProbeInt = PROBE_DEFAULTS.initial_delay_s
    period_seconds: _ProbeInt = PROBE_DEFAULTS.period_s
    timeout_seconds: _ProbeInt = 0
    success_threshold: _ProbeInt = PROBE_DEFAULTS.success_threshold
    failure_threshold: _ProbeInt = PROBE_DEFAULTS.failure_threshold
    severity: Literal["gate", "warn"] = "gate"
    unknown: Literal["keep", "close"] = "keep"
    unknown_limit_seconds: _ProbeInt = UNKNOWN_LIMIT_S


def check_section(kinds: Mapping[str, Kind[Any]] = KINDS) -> type[CheckSection]:
    """CheckSection with one optional key a kind, which holds the settings of that kind."""
    fields = [(kind, row.settings | None, None) for kind, row in kinds.items()]
    return cast("type[CheckSection]", msgspec.defstruct("Check", fields, bases=(CheckSection,), frozen=True))


def given_kinds(check: CheckSection, kinds: Mapping[str, Kind[Any]] = KINDS) -> list[str]:
    """The kinds that a check of the settings names; a valid one names one."""
    return [kind for kind in kinds if getattr(check, kind) is not None]


@dataclass(frozen=True, slots=True)
class CheckSpec:
    """A check ready to run. `run` makes one run and should be back by `limit_s`; times in seconds. `key` changes with
    the settings. `descriptor`: of a check that the kernel tells when to run; open after a run, or None again. `doubts`:
    then, one that has failed runs at its own times alone. `close`: called after the last run."""

    name: str
    run: Run
    kind: str = ""
    severity: Severity = Severity.GATE
    initial_delay_s: float = PROBE_DEFAULTS.initial_delay_s
    period_s: float = PROBE_DEFAULTS.period_s
    timeout_s: float = PROBE_DEFAULTS.timeout_s
    thresholds: Thresholds = Thresholds()  # noqa: RUF009 - frozen, so one is enough for all
    key: str = ""
    descriptor: Callable[[], int | None] | None = None
    doubts: bool = False
    close: Callable[[], None] = lambda: None
    calls: int = 1

    @property
    def limit_s(self) -> float:
        """Of a run: of all its calls, where each has `timeout_s`."""
        return self.calls * self.timeout_s


def check_spec(
    check: CheckSection,
    kinds: Mapping[str, Kind[Any]] = KINDS,
    *,
    state_file: str | None = None,
    around: Surroundings | None = None,
) -> CheckSpec:
    """Of a check that names one kind. Its first run makes the check itself: one that cannot be made is unknown, as one
    that cannot be run, and is made again by the next run. `state_file`: beside it is kept what a kind has a file of its
    own for, if its settings name no other. `around`: for a kind that examines more than its node."""
    (kind,) = given_kinds(check, kinds)
    period_s = float(check.period_seconds or PROBE_DEFAULTS.period_s)
    # Where it is run often a fault shall be found soon, so the time that a kind asks for is not longer than the period.
    timeout_s = float(check.timeout_seconds or min(kinds[kind].timeout_s, period_s))
    make = kinds[kind].make
    given = getattr(check, kind)
    for key in OWN_FILES:
        if state_file and getattr(given, key, None) == "":
            given = msgspec.structs.replace(given, **{key: f"{state_file}.{check.name}"})
    if around is not None and hasattr(make, "placed"):
        made = cache(lambda: cast("Any", make(given, timeout_s)).placed(around))
    else:
        made = cache(partial(make, given, timeout_s))

    def close() -> None:
        if hasattr(make, "close") and made.cache_info().currsize:
            cast("Any", made()).close()

    return CheckSpec(
        name=check.name,
        run=lambda: made()(),
        kind=kind,
        severity=Severity(check.severity),
        initial_delay_s=float(check.initial_delay_seconds),
        period_s=period_s,
        timeout_s=timeout_s,
        thresholds=Thresholds(
            check.success_threshold or PROBE_DEFAULTS.success_threshold,
            check.failure_threshold or PROBE_DEFAULTS.failure_threshold,
            keep_runs=_keep_runs(check),
        ),
        key=msgspec.json.encode(check, order="sorted").decode(),
        descriptor=(lambda: cast("Any", made()).descriptor()) if hasattr(make, "descriptor") else None,
        doubts=getattr(make, "DOUBTS", False),
        close=close,
        calls=kinds[kind].calls,
    )


def rights_of(check: CheckSection, kinds: Mapping[str, Kind[Any]] = KINDS) -> Rights:
    """What this check takes, with the paths of its own settings."""
    (kind,) = given_kinds(check, kinds)
    keys = {field.encode_name: field.name for field in msgspec.structs.fields(kinds[kind].settings)}
    given = getattr(check, kind)
    return kinds[kind].rights.resolved(lambda key: getattr(given, keys[key]))


def _keep_runs(check: CheckSection) -> int:
    """Through how many runs that could not be made a node is kept open."""
    if check.unknown == "close":
        return 0
    limit_s = check.unknown_limit_seconds or UNKNOWN_LIMIT_S
    return max(1, limit_s // (check.period_seconds or PROBE_DEFAULTS.period_s))
