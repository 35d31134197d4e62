"""The check `link`: are network ports up, fast enough, steady, and without errors?

Looks at the network interfaces of devices and at the ports of InfiniBand and RoCE, as sysfs shows them. A port has the
name of its interface (`eth0`, also of a bond: `bond0`), or of its device and number (`mlx5_0/1`).

Ports that `ports` names are needed. Of a pattern, as in a shell (`mlx5_*/1`), there must be one at least: name each
port where none may be missing. A needed port fails that

- is not there, is set down, or has no link;
- is slower than `minGbps` (null: not looked at);
- went down more than `maxFlaps` times within `flapSeconds`;
- has `failErrorsPerSecond` or more (null, the default: errors only warn).

It warns from `warnErrorsPerSecond` on, while an interface waits (802.1X), and while an InfiniBand port waits for the
subnet manager, which is away for all nodes. A needed port whose state or speed cannot be read is unknown, not failed.

Every other port closes nothing. It warns if it went down since the agent started, was not set down, and `exclude` does
not name it; or if it flaps or has errors. A port that the agent has never seen up is not spoken of: machines have ports
without a cable, and clouds have ports that they do not use. Virtual functions are left out unless they are named.

Errors are `rx_errors` and `tx_errors`, or `symbol_error`, `port_rcv_errors` and `local_link_integrity_errors`. A count
that was set back, as by a driver that was loaded again, begins anew. The way back is the next run: a link that is up,
fewer flaps in the window, fewer errors a second. Nothing is remembered when the agent restarts.

False alarms of other detectors that do not occur here, each with a test: NVSentinel#1361 and gpud#295 (ports that are
not used), NVSentinel#1488 (a file that cannot be read is no device that is gone), NVSentinel#1229 (virtual functions),
eks-node-monitoring-agent#155 (interfaces to be left out), node_exporter#966, #1511 and #2769 (drivers without counters,
machines without InfiniBand), gpud#1164 and node_exporter#3434 (devices that log an error when they are asked).

```yaml
checks:
- name: uplink
  link: {ports: [bond0], minGbps: 25}
- name: fabric
  link: {ports: ['mlx5_*/1'], minGbps: 400, maxFlaps: 1}
```

`minGbps` makes the check read the speed of the named ports; some devices that a fabric manager keeps for itself log an
error for that: do not name those. All of it is read by a child process: where a driver hangs, the check says hung.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from agent.checks.ports import ports_in
from agent.checks.rights import Rights
from agent.checks.state import CheckState, Finding
from agent.checks.subprocess_reader import Elsewhere, NoAnswerError
from agent.wire.setting_types import NonEmpty
from component.settings import Section

DOC = "network ports have a link, are fast enough, do not flap, and have few errors; in the host's network namespace"
RIGHTS = Rights(host_network=True)
TIMEOUT_S = 5  # a second is short for a child process under load
PATIENCE = 0.8  # of the timeout: what hangs is named before the run itself is late
LEAST_S = 0.5  # between two runs whose errors are compared
IFF_UP = 1
WAITING = ("dormant", "testing", "INIT", "ARMED")
UP = ("up", "unknown", "ACTIVE")  # unknown: the driver does not say
_Names = Annotated[tuple[NonEmpty, ...], Meta(max_length=64, description="a list of at most 64 names or patterns")]
_Rate = Annotated[float, Meta(gt=0, le=1e9, description="a number above 0")]


class Settings(Section, frozen=True):
    """`ports`: those that are needed. `exclude`: of the others, those that are not spoken of."""

    ports: _Names = ()
    exclude: _Names = ()
    min_gbps: _Rate | None = None
    max_flaps: Annotated[int, Meta(ge=0, le=1000, description="a whole number, 0 to 1000")] = 3
    flap_seconds: Annotated[int, Meta(ge=1, le=86_400, description="whole seconds, 1 to 86400")] = 600
    warn_errors_per_second: _Rate = 10.0
    fail_errors_per_second: _Rate | None = None
    sys: NonEmpty = "/sys"


@dataclass(frozen=True, slots=True)
class Port:
    """As it is now. `state` None: it cannot be read."""

    name: str
    state: str | None
    is_set_up: bool = True  # by the operator
    downs: int | None = None  # how often its link went down; None: not counted
    gbps: float | None = None  # None: not shown
    errors: int | None = None  # None: not counted

    @property
    def is_up(self) -> bool:
        return self.state in UP and self.is_set_up


@dataclass(frozen=True, slots=True)
class History:
    """What is remembered of a port after a run."""

    was_up: bool
    ever_up: bool
    downs: int | None
    flaps: tuple[tuple[float, int], ...]  # when they were seen, and how many
    errors: int | None
    at_s: float
    rate: float | None = None  # errors a second

    @property
    def flapped(self) -> int:
        return sum(many for _, many in self.flaps)


class Check:
    def __init__(self, settings: Settings, timeout_s: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._within_s = PATIENCE * timeout_s
        self._monotonic = monotonic
        with_speed = settings.min_gbps is not None
        where = f"{settings.sys}/class/net"
        self._look = Elsewhere(ports_in, settings.sys, list(settings.ports), with_speed, where=where)
        self._histories: Mapping[str, History] = {}

    def __call__(self) -> Finding:
        """PASSED, WARNED, FAILED with the ports, HUNG, NOT_APPLICABLE without ports, UNKNOWN where it cannot look."""
        try:
            ports = [port_of(raw) for raw in self._look(self._within_s)]
        except OSError as e:
            return Finding(CheckState.UNKNOWN, f"cannot look at {e.filename}: {e.strerror}")
        except NoAnswerError as e:
            return e.finding
        monotonic, before = self._monotonic(), self._histories
        self._histories = {
            port.name: after(before.get(port.name), port, monotonic, self._settings.flap_seconds) for port in ports
        }
        return judged(ports, self._histories, self._settings, _names_here())


def port_of(raw: Sequence[Any]) -> Port:
    """Of what the child has read: `agent.checks.ports`."""
    name, state, flags, downs, speed, errors = raw
    counted = [number for text in errors if (number := _whole(text)) is not None]
    total = sum(counted) if counted else None
    if "/" in name:
        word = None if state is None else state.partition(": ")[2]
        gbps = None if speed is None else _number(speed.partition(" ")[0])
        return Port(name, word, "Disabled" not in (flags or ""), _whole(downs), gbps, total)
    mbps = _whole(speed)
    gbps = None if mbps is None or mbps <= 0 else mbps / 1000
    bits = _whole(flags, 16)
    return Port(name, state, bits is None or bool(bits & IFF_UP), _whole(downs), gbps, total)


def after(known: History | None, port: Port, monotonic: float, flap_s: float) -> History:
    """With one more look at a port."""
    if known is None:
        return History(port.is_up, port.is_up, port.downs, (), port.errors, monotonic)
    if port.downs is not None and known.downs is not None:
        new = port.downs - known.downs if port.downs >= known.downs else port.downs
    else:
        new = int(known.was_up and not port.is_up and port.state is not None)
    flaps = (*known.flaps, *([(monotonic, new)] if new else []))
    errors, at_s, rate = port.errors, monotonic, None
    if port.errors is not None and known.errors is not None and port.errors >= known.errors:
        if monotonic - known.at_s < LEAST_S:
            errors, at_s, rate = known.errors, known.at_s, known.rate
        else:
            rate = (port.errors - known.errors) / (monotonic - known.at_s)
    recent = tuple((seen_s, many) for seen_s, many in flaps if monotonic - seen_s < flap_s)
    return History(port.is_up, known.ever_up or port.is_up, port.downs, recent, errors, at_s, rate)


def judged(
    ports: Sequence[Port], histories: Mapping[str, History], settings: Settings, here: Collection[str] = ()
) -> Finding:
    """A failure counts more than what cannot be known, and that more than a warning. `here`: the interfaces of the
    agent's network namespace; sysfs may be of another one."""
    words = dict[CheckState, list[str]]()
    for port in ports:
        needed = any(fnmatchcase(port.name, name) for name in settings.ports)
        if not needed and any(fnmatchcase(port.name, name) for name in settings.exclude):
            continue
        of_port = _needed if needed else _other
        for state, text in of_port(port, histories[port.name], settings):
            words.setdefault(state, []).append(f"{port.name} {text}")
    missing = [name for name in settings.ports if not any(fnmatchcase(port.name, name) for port in ports)]
    unseen = [name for name in missing if name in here]
    if unseen:
        text = f"not in sysfs: {', '.join(unseen)}: needs the sysfs of the host's network namespace"
        words.setdefault(CheckState.UNKNOWN, []).append(text)
    elif missing and ports:
        words.setdefault(CheckState.FAILED, []).append(f"not there: {', '.join(missing)}")
    elif missing:
        text = f"no port of the host is seen, so neither are {', '.join(missing)}: needs the host's network"
        words.setdefault(CheckState.UNKNOWN, []).append(text)
    for state in (CheckState.FAILED, CheckState.UNKNOWN, CheckState.WARNED, CheckState.PASSED):
        if state in words:
            return Finding(state, "; ".join(words[state]))
    return (
        Finding(CheckState.PASSED, f"{len(ports)} ports") if ports else Finding(CheckState.NOT_APPLICABLE, "no ports")
    )


def _needed(port: Port, history: History, settings: Settings) -> list[tuple[CheckState, str]]:
    if port.state is None:
        return [(CheckState.UNKNOWN, "does not show its state")]
    if not port.is_set_up:
        return [(CheckState.FAILED, "is set down")]
    if port.state in WAITING:
        return [(CheckState.WARNED, f"waits ({port.state})"), *_troubles(port, history, settings, needed=True)]
    if not port.is_up:
        return [(CheckState.FAILED, f"is down ({port.state})")]
    found = _troubles(port, history, settings, needed=True)
    if settings.min_gbps is not None and port.gbps is None:
        found.append((CheckState.UNKNOWN, f"does not show its speed, needs {settings.min_gbps:g} Gb/s"))
    elif settings.min_gbps is not None and port.gbps is not None and port.gbps < settings.min_gbps:
        found.append((CheckState.FAILED, f"has {port.gbps:g} Gb/s, needs {settings.min_gbps:g}"))
    return found or [(CheckState.PASSED, f"is up{f' ({port.gbps:g} Gb/s)' if port.gbps is not None else ''}")]


def _other(port: Port, history: History, settings: Settings) -> list[tuple[CheckState, str]]:
    found = _troubles(port, history, settings, needed=False)
    if history.ever_up and port.is_set_up and not port.is_up and port.state is not None and port.state not in WAITING:
        found.append((CheckState.WARNED, f"went down ({port.state})"))
    return found


def _troubles(port: Port, history: History, settings: Settings, *, needed: bool) -> list[tuple[CheckState, str]]:
    found = list[tuple[CheckState, str]]()
    if history.flapped > settings.max_flaps:
        state = CheckState.FAILED if needed else CheckState.WARNED
        text = f"went down {history.flapped} times in {settings.flap_seconds} s, at most {settings.max_flaps}"
        found.append((state, text))
    if history.rate is not None and (needed or port.is_up):
        limit = settings.fail_errors_per_second if needed else None
        if limit is not None and history.rate >= limit:
            found.append((CheckState.FAILED, f"has {history.rate:.1f} errors a second, fails from {limit:g} on"))
        elif history.rate >= settings.warn_errors_per_second:
            found.append((CheckState.WARNED, f"has {history.rate:.1f} errors a second"))
    return found


def _names_here() -> Collection[str]:
    try:
        lines = Path("/proc/self/net/dev").read_text().splitlines()
    except OSError:
        return ()
    return {line.partition(":")[0].strip() for line in lines if ":" in line}


def _whole(text: str | None, base: int = 10) -> int | None:
    """None for what is no number, as `N/A (no PMA)`."""
    try:
        return None if text is None else int(text, base)
    except ValueError:
        return None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
