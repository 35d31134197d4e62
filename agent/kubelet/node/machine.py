"""What a Node reports of the machine it is: read once, at the start.

Mirrors MachineInfo and VersionInfo of cadvisor, which a kubelet reports. It does not heed the limits of `cgroups`.
"""

import math
import os
import platform
import re
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from agent.kubelet.node.cgroups import count_of, limits

NO_LIMITS = "CPU hardcapping unsupported"
UNKNOWN_SYSTEM, NAMELESS_SYSTEM = "Unknown", "Linux"
# In the order in which cadvisor looks for them.
MACHINE_IDS = ("etc/machine-id", "var/lib/dbus/machine-id")
SYSTEM_UUIDS = (
    "sys/class/dmi/id/product_uuid",
    "proc/device-tree/system-id",
    "proc/device-tree/vm,uuid",
    "etc/machine-id",
)
OS_RELEASES = ("etc/os-release", "usr/lib/os-release")
_HUGE_PAGES = re.compile(r"hugepages-([0-9]{1,12})kB")
_UNITS = ("Ki", "Mi", "Gi", "Ti", "Pi")


@dataclass(frozen=True, slots=True)
class Machine:
    """`soft_requirements`: what a kubelet would warn of; "": nothing."""

    architecture: str
    kernel: str
    os_image: str
    machine_id: str
    boot_id: str
    swap_bytes: int = 0
    soft_requirements: str = ""
    system_uuid: str = ""


def machine(root: Path = Path("/")) -> Machine:
    """Reads the machine; what cannot be read is empty."""
    names = {"x86_64": "amd64", "aarch64": "arm64"}
    return Machine(
        architecture=names.get(platform.machine(), platform.machine()),
        kernel=platform.release(),
        os_image=_os_image(_first(root, OS_RELEASES)),
        machine_id=_first(root, MACHINE_IDS) or "",
        boot_id=_text(root / "proc/sys/kernel/random/boot_id").strip(),
        swap_bytes=_meminfo_bytes(_text(root / "proc/meminfo"), "SwapTotal"),
        soft_requirements=_soft_requirements(_text(root / "proc/self/mounts"), root),
        system_uuid=_first(root, SYSTEM_UUIDS) or "",
    )


def resources(volumes: Path, root: Path = Path("/"), *, own_processes: bool = True) -> dict[str, str]:
    """The machine's capacity: processors that are online, memory, the file system of the folder `volumes`, and huge
    pages. `own_processes`: containers are children of the agent, so the limits of its control group are theirs. What
    cannot be read is left out: the Node is not Ready without it."""
    found = dict[str, str]()
    most = limits(root, own=own_processes)
    if processors := _processors(root):
        found["cpu"] = quantity(min(Fraction(processors), most.processors or Fraction(processors)))
    if memory := _meminfo_bytes(_text(root / "proc/meminfo"), "MemTotal"):
        found["memory"] = str(min(memory, most.memory_bytes or memory))
    try:
        system = os.statvfs(next(folder for folder in (volumes, *volumes.parents) if folder.exists()))
        found["ephemeral-storage"] = str(system.f_blocks * system.f_frsize)
        for folder in sorted((root / "sys/kernel/mm/hugepages").iterdir()):
            if match := _HUGE_PAGES.fullmatch(folder.name):
                found.update([huge_pages(int(match[1]), int(_text(folder / "nr_hugepages") or 0))])
    except (OSError, ValueError):
        return found
    return found


def quantity(amount: Fraction) -> str:
    """As Kubernetes writes it: whole, else in thousandths, of which a part counts as one."""
    return str(amount) if amount.denominator == 1 else f"{math.ceil(amount * 1000)}m"


def huge_pages(size_kib: int, pages: int) -> tuple[str, str]:
    """Name and quantity, as CapacityFromMachineInfo has them."""
    size, unit = size_kib, 0
    while size % 2**10 == 0 and size and unit + 1 < len(_UNITS):
        size, unit = size // 2**10, unit + 1
    return f"hugepages-{size}{_UNITS[unit]}", str(size_kib * pages * 2**10)


def _soft_requirements(mounts: str, root: Path) -> str:
    """As validateSystemRequirements: control groups of old may lack limits of processor time."""
    for line in mounts.splitlines():
        _, place, kind, options, *_ = [*line.split(" "), "", "", ""]
        if kind == "cgroup" and "cpu" in options.split(","):
            limits = [root / place.lstrip("/") / f"cpu.cfs_{name}_us" for name in ("period", "quota")]
            return "" if all(limit.exists() for limit in limits) else NO_LIMITS
    return ""


def _processors(root: Path) -> int:
    """Those that are online; where the kernel lists none it cannot take any offline."""
    folder = root / "sys/devices/system/cpu"
    return count_of(_text(folder / "online")) or len([*folder.glob("cpu[0-9]*")])


def _meminfo_bytes(meminfo: str, field: str) -> int:
    for line in meminfo.splitlines():
        name, _, amount = line.partition(":")
        if name == field and (words := amount.split()) and words[0].isdecimal():
            return int(words[0]) * 2**10
    return 0


def _os_image(os_release: str | None) -> str:
    if os_release is None:
        return UNKNOWN_SYSTEM
    for line in os_release.splitlines():
        key, _, value = line.partition("=")
        if key == "PRETTY_NAME":
            return value.strip('"')
    return NAMELESS_SYSTEM


def _first(root: Path, names: tuple[str, ...]) -> str | None:
    """The text of the first file that can be read."""
    for name in names:
        try:
            return (root / name).read_text(errors="replace").rstrip("\0").strip()
        except OSError:
            continue
    return None


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
