"""When a node is under pressure. Pure: what was measured and the time are arguments.

Mirrors pkg/kubelet/eviction (helpers.go, synchronize) of v1.36.3 up to the node's conditions: nobody is evicted here,
and nothing is reclaimed. A signal below its threshold makes its condition true at once, with a soft threshold too; one
that was below for its grace period keeps it until the minimum reclaim is back as well, and after the last time a
condition stays for the transition period.
"""

import math
import re
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from agent.kubelet.node.facts import CONDITION_DISK_PRESSURE, CONDITION_MEMORY_PRESSURE, CONDITION_PID_PRESSURE, amount

MEMORY = "memory.available"
NODEFS, NODEFS_INODES = "nodefs.available", "nodefs.inodesFree"
IMAGEFS, IMAGEFS_INODES = "imagefs.available", "imagefs.inodesFree"
CONTAINERFS, CONTAINERFS_INODES = "containerfs.available", "containerfs.inodesFree"
PIDS = "pid.available"
CONDITIONS = {
    MEMORY: CONDITION_MEMORY_PRESSURE,
    NODEFS: CONDITION_DISK_PRESSURE,
    NODEFS_INODES: CONDITION_DISK_PRESSURE,
    IMAGEFS: CONDITION_DISK_PRESSURE,
    IMAGEFS_INODES: CONDITION_DISK_PRESSURE,
    CONTAINERFS: CONDITION_DISK_PRESSURE,
    CONTAINERFS_INODES: CONDITION_DISK_PRESSURE,
    PIDS: CONDITION_PID_PRESSURE,
}
NODE_SIGNALS, IMAGE_SIGNALS = (NODEFS, NODEFS_INODES), (IMAGEFS, IMAGEFS_INODES)
CONTAINER_SIGNALS = (CONTAINERFS, CONTAINERFS_INODES)
OF_RUNTIME = IMAGE_SIGNALS + CONTAINER_SIGNALS
"""What is measured only where a container runtime says where it has its images and containers."""

_DURATION = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h)")
_UNITS_S = {"ns": 1e-9, "us": 1e-6, "\u00b5s": 1e-6, "\u03bcs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_LONGEST_S = 2**63 / 1e9  # what Go holds


@dataclass(frozen=True, slots=True)
class Value:
    """An amount, or a part of the capacity."""

    amount: Fraction | None = None
    part: float = 0.0

    def of(self, capacity: int) -> Fraction:
        return Fraction(math.trunc(capacity * self.part)) if self.amount is None else self.amount


@dataclass(frozen=True, slots=True)
class Threshold:
    """`grace_s` 0: a hard one."""

    signal: str
    value: Value
    grace_s: float = 0.0
    reclaim: Value | None = None


@dataclass(frozen=True, slots=True)
class Observation:
    capacity: int
    available: int


@dataclass(frozen=True, slots=True)
class Seen:
    """One look: by signal, as far as it could be measured. `images_apart`: images, or the containers, have another file
    system than the volumes of pods. `containers_apart`: the containers have another one than the images."""

    observations: Mapping[str, Observation]
    images_apart: bool = False
    containers_apart: bool = False


@dataclass(frozen=True, slots=True)
class Pressure:
    """`thresholds`: None before the first look. `since`: when a threshold was found met that is met still. `seen`: when
    a condition was last found. `met`: for their grace periods, which their minimum reclaim ends. Times are monotonic.
    """

    thresholds: tuple[Threshold, ...] | None = None
    since: Mapping[Threshold, float] = field(default_factory=dict)
    seen: Mapping[str, float] = field(default_factory=dict)
    met: tuple[Threshold, ...] = ()
    conditions: frozenset[str] = frozenset()


def with_containers(thresholds: Iterable[Threshold], seen: Seen) -> tuple[Threshold, ...]:
    """What holds for the file system of containers is not configured: it is what holds for the images, where the two
    share one that is not the volumes', else what holds for the volumes (UpdateContainerFsThresholds)."""
    given = tuple(thresholds)
    found = list(given)
    shared = seen.images_apart and not seen.containers_apart
    for signal, example in zip(CONTAINER_SIGNALS, IMAGE_SIGNALS if shared else NODE_SIGNALS, strict=True):
        for soft in (False, True):
            alike = [t for t in given if (t.grace_s > 0) is soft]
            for ignored in [t for t in alike if t.signal == signal][-1:]:
                found.remove(ignored)
            found += [replace(t, signal=signal) for t in alike if t.signal == example][-1:]
    return tuple(found)


def looked(
    before: Pressure,
    thresholds: Iterable[Threshold],
    look: Seen,
    transition_s: float,
    monotonic: float,
) -> Pressure:
    """After one more look. A signal that was not measured is not below anything. Where images and containers are is
    found once, by the first look."""
    thresholds = with_containers(thresholds, look) if before.thresholds is None else before.thresholds
    observations = look.observations
    met = [t for t in thresholds if _is_met(t, observations.get(t.signal))]
    met += [t for t in before.met if t not in met and _is_met(t, observations.get(t.signal), reclaims=True)]
    since = {t: before.since.get(t, monotonic) for t in met}
    seen = {**before.seen, **{CONDITIONS[t.signal]: monotonic for t in met}}
    return Pressure(
        thresholds,
        since,
        seen,
        tuple(t for t, at in since.items() if monotonic - at >= t.grace_s),
        frozenset(kind for kind, at in seen.items() if monotonic - at < transition_s),
    )


def _is_met(threshold: Threshold, observed: Observation | None, *, reclaims: bool = False) -> bool:
    if observed is None:
        return False
    needed = threshold.value.of(observed.capacity)
    if reclaims and threshold.reclaim is not None:
        needed += threshold.reclaim.of(observed.capacity)
    return needed > observed.available


# --- as they are configured ---


def thresholds_of(
    hard: Mapping[str, str], soft: Mapping[str, str], grace: Mapping[str, str], reclaim: Mapping[str, str]
) -> tuple[Threshold, ...]:
    """From the kubelet's own settings: signal -> amount, percentage or duration. Raises ValueError, with the setting's
    name, what is wrong and what is allowed."""
    periods = {signal: _period("evictionSoftGracePeriod", signal, text) for signal, text in grace.items()}
    reclaims = {
        signal: _value("evictionMinimumReclaim", signal, text, zero=not text.endswith("%"))
        for signal, text in reclaim.items()
    }
    found = []
    for signal, text in hard.items():
        value = _threshold("evictionHard", signal, text)
        found += [] if value is None else [Threshold(signal, value, 0.0, reclaims.get(signal))]
    for signal, text in soft.items():
        value = _threshold("evictionSoft", signal, text)
        if value is None:
            continue
        if signal not in periods:
            raise ValueError(f"evictionSoftGracePeriod: {signal} is missing, allowed: a duration, as 1m30s")
        found.append(Threshold(signal, value, periods[signal], reclaims.get(signal)))
    return tuple(found)


def duration_s(text: str) -> float | None:
    """As Go's ParseDuration, which may be below 0; None for what is none."""
    amount_of = text[1:] if text[:1] in ("+", "-") else text
    if amount_of == "0":
        return 0.0
    parts = list(_DURATION.finditer(amount_of))
    if not parts or "".join(part.group() for part in parts) != amount_of:
        return None
    seconds = math.fsum(float(part.group(1)) * _UNITS_S[part.group(2)] for part in parts)
    if seconds >= _LONGEST_S:
        return None
    return -seconds if text[0] == "-" else seconds


def _threshold(setting: str, signal: str, text: str) -> Value | None:
    """None for one that says nothing: 0% and 100%."""
    _known(setting, signal)
    return None if text in ("0%", "100%") else _value(setting, signal, text, zero=text.endswith("%"), whole=True)


def _value(setting: str, signal: str, text: str, *, zero: bool, whole: bool = False) -> Value:
    _known(setting, signal)
    wrong = ValueError(f"{setting}.{signal}: {text[:64]} is not valid, allowed: an amount, as 100Mi, or a part, as 10%")
    if text.endswith("%"):
        try:
            part = _single(_single(float(text.rstrip("%"))) / 100)
        except (ValueError, OverflowError):
            raise wrong from None
        if not (0 <= part <= 1 if whole else 0 <= part < math.inf) or (part == 0 and not zero):
            raise wrong
        return Value(part=part)
    quantity = amount(text)
    if isinstance(quantity, str) or quantity < 0 or (quantity == 0 and not zero):
        raise wrong
    return Value(quantity)


def _period(setting: str, signal: str, text: str) -> float:
    _known(setting, signal)
    seconds = duration_s(text)
    if seconds is None or seconds < 0:
        raise ValueError(f"{setting}.{signal}: {text[:64]} is not valid, allowed: a duration, as 1m30s")
    return seconds


def _known(setting: str, signal: str) -> None:
    if signal not in CONDITIONS:
        raise ValueError(f"{setting}.{signal[:64]}: is not known, allowed: {', '.join(CONDITIONS)}")


def _single(number: float) -> float:
    """As Go keeps it: a float32."""
    rounded: float = struct.unpack("f", struct.pack("f", number))[0]
    return rounded
