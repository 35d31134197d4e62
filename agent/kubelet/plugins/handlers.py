"""Who takes a plugin of a type: the rules by which the kubelet's CSI, device and DRA managers validate one.

What is registered is remembered and not called: nothing here attaches volumes or hands out devices.
"""

import re
import threading
from collections.abc import Mapping, Sequence
from typing import Protocol

from agent.kubelet.plugins.base import CSI_PLUGIN, DEVICE_PLUGIN, DRA_PLUGIN

DEVICE_VERSION = "v1beta1"
DRA_SERVICES = ("v1.DRAPlugin", "v1beta1.DRAPlugin")
_VERSION = re.compile(r"[\t\n\f\r ]*v?([0-9]+(?:\.[0-9]+)+).*")
_MOST = 2**64  # of one of a version's numbers: Go holds none as high
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")


class Handler(Protocol):
    """Each may be called from any thread, and does not wait."""

    def validate(self, name: str, versions: Sequence[str]) -> str:
        """Why it is not taken; "" if it is."""
        ...

    def register(self, name: str, versions: Sequence[str]) -> str:
        """The same, and then it is registered."""
        ...

    def deregister(self, name: str) -> None: ...


class CsiHandler:
    """Drivers of volumes: version 1.x, and of two with one name the one with the higher version."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._versions: dict[str, tuple[int, ...]] = {}

    def validate(self, name: str, versions: Sequence[str]) -> str:
        with self._lock:
            return self._why_not(name, versions)

    def register(self, name: str, versions: Sequence[str]) -> str:
        with self._lock:
            why = self._why_not(name, versions)
            if not why:
                self._versions[name] = highest_version(versions) or ()
            return why

    def deregister(self, name: str) -> None:
        with self._lock:
            self._versions.pop(name, None)

    def _why_not(self, name: str, versions: Sequence[str]) -> str:
        if not versions:
            return f"validation failed for CSI Driver {name}: it names no supported versions"
        highest = highest_version(versions)
        if highest is None:
            return f"validation failed for CSI Driver {name}: none of its versions {list(versions)} is 1.x"
        before = self._versions.get(name)
        if before is not None and not _less(before, highest):
            said = ".".join(map(str, before))
            return f"validation failed for CSI Driver {name}: one of this name is registered, with version {said}"
        return ""


class DeviceHandler:
    """Drivers of devices: of the one version there is, named as an extended resource."""

    def validate(self, name: str, versions: Sequence[str]) -> str:
        if DEVICE_VERSION not in versions:
            return f"manager version, {DEVICE_VERSION}, is not among plugin supported versions {list(versions)}"
        return "" if is_extended_resource(name) else f'the ResourceName "{name}" is invalid'

    register = validate

    def deregister(self, name: str) -> None:
        """Nothing is remembered of it."""


class DraHandler:
    """Drivers of resource claims: of a service that a kubelet of 1.36 knows."""

    def validate(self, name: str, versions: Sequence[str]) -> str:
        if any(service in DRA_SERVICES for service in versions):
            return ""
        return f"DRA driver {name}: none of its services {list(versions)} is one of {list(DRA_SERVICES)}"

    register = validate

    def deregister(self, name: str) -> None:
        """Nothing is remembered of it."""


def handlers() -> Mapping[str, Handler]:
    """By the type of plugins that each takes."""
    return {CSI_PLUGIN: CsiHandler(), DEVICE_PLUGIN: DeviceHandler(), DRA_PLUGIN: DraHandler()}


def highest_version(versions: Sequence[str]) -> tuple[int, ...] | None:
    """Of those up to 1.x; None where that is no 1.x."""
    known = [parsed for version in versions if (parsed := _parsed(version)) is not None and parsed[0] <= 1]
    highest: tuple[int, ...] | None = None
    for one in reversed(known):  # of equal ones the last
        if highest is None or _less(highest, one):
            highest = one
    return highest if highest is not None and highest[0] == 1 else None


def is_extended_resource(name: str) -> bool:
    """As IsExtendedResourceName of pkg/apis/core/v1/helper."""
    if "/" not in name or "kubernetes.io/" in name or name.startswith("requests."):
        return False
    prefix, _, rest = f"requests.{name}".partition("/")
    return bool(_SUBDOMAIN.fullmatch(prefix) and len(prefix) <= 253 and _NAME.fullmatch(rest) and len(rest) <= 63)


def _parsed(version: str) -> tuple[int, ...] | None:
    """As ParseGeneric of k8s.io/apimachinery/pkg/util/version."""
    match = _VERSION.fullmatch(version) if len(version) <= 100 else None
    if match is None:
        return None
    first, *rest = match[1].split(".")
    numbers = tuple(map(int, (first, *rest)))
    return numbers if str(numbers[0]) == first and max(numbers) < _MOST else None


def _less(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """What a version leaves out counts as 0."""
    longest = max(len(one), len(other))
    return one + (0,) * (longest - len(one)) < other + (0,) * (longest - len(other))
