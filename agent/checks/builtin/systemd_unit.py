"""The check `systemdUnit`: are units of systemd active, and do they not restart again and again?

Each unit of `units` is asked for its state, over the system bus. A unit fails that

- has failed (`ActiveState` failed), with systemd's result: `exit-code`, `oom-kill`, `watchdog`, `start-limit-hit`;
- waits to be restarted after a crash (`auto-restart`);
- has been starting for longer than `startSeconds`;
- is inactive. With `need: notFailed` an inactive unit passes: choose that for a unit that an operator may stop, or that
  runs now and then;
- was restarted by systemd more than `maxRestarts` times within `restartSeconds` (`NRestarts`; null: not looked at).
  A restart by an operator, as `systemctl restart`, does not count, nor does what happened before the agent started.

A unit warns while it starts, stops or is under maintenance. A unit that the node does not have, or that is masked, is
not applicable, so one configuration is good for all nodes; with `absent: fail` it fails. The check is unknown where the
bus or systemd gives no answer: that is no fault of the units. The way back is the next run that finds the unit active,
and of restarts the first run that has fewer in its window. Nothing is remembered when the agent restarts.

```yaml
checks:
- name: fabric-manager
  systemdUnit: {units: [nvidia-fabricmanager.service, nvidia-persistenced.service], maxRestarts: 3}
- name: time-service
  systemdUnit: {units: [chronyd.service], need: notFailed}
  severity: warn
```

False alarms of other detectors that do not occur here, each with a test: node-problem-detector#1258 and NVSentinel#1382
(a restart by hand is no crash), NVSentinel#1380 (a unit that the node does not have; a count that is set back),
node-problem-detector#444 (a unit that is starting), node-problem-detector#704 (no answer of systemd), and
SUSE/ha-sap-terraform-deployments#791 (a unit that was stopped for maintenance, with `need: notFailed`).

In a pod, `socket` is below `/host`, as `/host/run/dbus/system_bus_socket`. Whoever may write to that socket as root can
start and stop units: let the agent run as another user there (`runAsUser`), for whom the bus allows reading alone. Do
not name the kubelet's unit for a gate: the extender watches the kubelet's Lease, which also shows one that hangs.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

from agent.checks.dbus_messages import Value
from agent.checks.rights import Rights
from agent.checks.state import CheckState, Finding
from agent.checks.system_bus import BusError, Property, SystemBus
from agent.wire.setting_types import NonEmpty
from component.settings import Section

DOC = "the units of systemd are active, and are not restarted again and again"
RIGHTS = Rights(reads=("socket",))
TIMEOUT_S = 5  # a second is short for a bus under load
PATIENCE = 0.8  # of the timeout: what gives no answer is named before the run itself is late
_UNIT = r"^[A-Za-z0-9:_.\\@-]+\.(service|socket|mount|automount|swap|timer|path|target|slice|scope)\Z"
_Unit = Annotated[str, Meta(pattern=_UNIT, max_length=255, description="a unit with its type, as chronyd.service")]
_Seconds = Annotated[int, Meta(ge=1, le=86_400, description="whole seconds, 1 to 86400")]
OF_UNITS = ("LoadState", "ActiveState", "SubState", "InactiveExitTimestampMonotonic")
OF_SERVICES = ("Result", "NRestarts")
RESTARTING = ("auto-restart", "auto-restart-queued")


class Settings(Section, frozen=True):
    """`socket`: of the system bus. `absent`: what a unit is that the node does not have. `max_restarts` None: restarts
    are not looked at."""

    units: Annotated[tuple[_Unit, ...], Meta(min_length=1, max_length=32, description="a list of 1 to 32 units")]
    need: Literal["active", "notFailed"] = "active"
    absent: Literal["notApplicable", "fail"] = "notApplicable"
    start_seconds: _Seconds = 90
    max_restarts: Annotated[int, Meta(ge=0, le=1000, description="a whole number, 0 to 1000")] | None = 5
    restart_seconds: _Seconds = 600
    socket: NonEmpty = "/run/dbus/system_bus_socket"


@dataclass(frozen=True, slots=True)
class Unit:
    """What systemd says of a unit. `restarts` None: it does not count them. `began_s`: when it last left the state
    inactive, on the monotonic clock."""

    load: str = "loaded"
    active: str = "active"
    sub: str = ""
    result: str = ""
    restarts: int | None = None
    began_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Restarts:
    """`count`: systemd's own, of the last run. `times_s`: when restarts were seen, with how many."""

    count: int
    times_s: tuple[tuple[float, int], ...] = ()

    @property
    def seen(self) -> int:
        return sum(many for _, many in self.times_s)


class Check:
    def __init__(
        self,
        settings: Settings,
        timeout_s: float,
        ask: Callable[[str, Sequence[Property], float], Mapping[Property, Value]] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._within_s = PATIENCE * timeout_s
        self._ask = ask or _ask
        self._monotonic = monotonic
        self._wanted = [(unit, interface, name) for unit in settings.units for interface, name in _names(unit)]
        self._restarts: dict[str, Restarts] = {}

    def __call__(self) -> Finding:
        """PASSED, WARNED, FAILED with the units, NOT_APPLICABLE, UNKNOWN where there is no answer."""
        try:
            found = self._ask(self._settings.socket, self._wanted, self._within_s)
            units = {unit: unit_of(unit, found) for unit in self._settings.units}
        except BusError as e:
            return Finding(CheckState.UNKNOWN, f"{e}: needs the system bus, with systemd behind it")
        now = self._monotonic()
        for name, unit in units.items():
            if unit.restarts is not None:
                known = self._restarts.get(name)
                self._restarts[name] = counted(known, unit.restarts, now, self._settings.restart_seconds)
        seen = {name: restarts.seen for name, restarts in self._restarts.items()}
        return judged(units, seen, now, self._settings)


def unit_of(unit: str, found: Mapping[Property, Value]) -> Unit:
    """Raises BusError where systemd does not say how the unit is."""
    values = {name: value for (of, _, name), value in found.items() if of == unit}
    load, active, sub = (values.get(name) for name in OF_UNITS[:3])
    if not (isinstance(load, str) and isinstance(active, str) and isinstance(sub, str)):
        raise BusError(f"systemd does not say how {unit} is")
    restarts, began = values.get("NRestarts"), values.get("InactiveExitTimestampMonotonic", 0)
    return Unit(
        load,
        active,
        sub,
        str(values.get("Result", "")),
        restarts if isinstance(restarts, int) else None,
        float(began) / 1e6,
    )


def counted(known: Restarts | None, count: int, monotonic: float, window_s: float) -> Restarts:
    """With systemd's count of this run. The first is where counting begins; a count that is lower than the last was
    set back, and what it has counted since then is new."""
    if known is None:
        return Restarts(count)
    new = count - known.count if count >= known.count else count
    times = (*known.times_s, *([(monotonic, new)] if new else []))
    return Restarts(count, tuple((at_s, many) for at_s, many in times if monotonic - at_s < window_s))


def judged(units: Mapping[str, Unit], restarts: Mapping[str, int], monotonic: float, settings: Settings) -> Finding:
    """`restarts`: within the window. A failure counts more than a warning."""
    words = dict[CheckState, list[str]]()
    for name, unit in units.items():
        state, text = _of(unit, monotonic, settings)
        seen = restarts.get(name, 0)
        if (
            settings.max_restarts is not None
            and seen > settings.max_restarts
            and state is not CheckState.NOT_APPLICABLE
        ):
            text += f", {seen} restarts in {settings.restart_seconds} s, at most {settings.max_restarts}"
            state = CheckState.FAILED
        words.setdefault(state, []).append(f"{name} {text}")
    for state in (CheckState.FAILED, CheckState.WARNED):
        if state in words:
            return Finding(state, "; ".join(words[state]))
    state = CheckState.PASSED if CheckState.PASSED in words else CheckState.NOT_APPLICABLE
    return Finding(state, "; ".join(text for texts in words.values() for text in texts))


def _of(unit: Unit, monotonic: float, settings: Settings) -> tuple[CheckState, str]:
    if unit.load == "masked" or (unit.load == "not-found" and unit.active in ("inactive", "failed")):
        state = CheckState.FAILED if settings.absent == "fail" else CheckState.NOT_APPLICABLE
        return state, "is masked" if unit.load == "masked" else "is not there"
    shown = f"is {unit.active}{f' ({unit.sub})' if unit.sub and unit.sub != unit.active else ''}"
    match unit.active:
        case "active" | "reloading" | "refreshing":
            return CheckState.PASSED, shown
        case "failed":
            return CheckState.FAILED, f"has failed{f' ({unit.result})' if unit.result else ''}"
        case "activating" if unit.sub in RESTARTING:
            return CheckState.FAILED, f"has crashed ({unit.result or 'no result'}) and waits for its restart"
        case "activating" if monotonic - unit.began_s > settings.start_seconds:
            return CheckState.FAILED, f"has been starting for more than {settings.start_seconds} s"
        case "inactive":
            return CheckState.FAILED if settings.need == "active" else CheckState.PASSED, shown
        case _:  # on its way, under maintenance, or a state of a later systemd
            return CheckState.WARNED, shown


def _names(unit: str) -> list[tuple[str, str]]:
    services = [("Service", name) for name in OF_SERVICES] if unit.endswith(".service") else []
    return [*(("Unit", name) for name in OF_UNITS), *services]


def _ask(path: str, wanted: Sequence[Property], within_s: float) -> Mapping[Property, Value]:
    with SystemBus(path, within_s) as bus:
        return bus.properties(wanted)
