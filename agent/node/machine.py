"""What a Node reports of the machine it is: read once, at the start."""

import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path

NO_LIMITS = "CPU hardcapping unsupported"
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


def machine(root: Path = Path("/")) -> Machine:
    """Reads the machine; what cannot be read is empty."""
    names = {"x86_64": "amd64", "aarch64": "arm64"}
    return Machine(
        architecture=names.get(platform.machine(), platform.machine()),
        kernel=platform.release(),
        os_image=_os_image(_text(root / "etc/os-release")),
        machine_id=_text(root / "etc/machine-id").strip(),
        boot_id=_text(root / "proc/sys/kernel/random/boot_id").strip(),
        swap_bytes=_swap_bytes(_text(root / "proc/meminfo")),
        soft_requirements=_soft_requirements(_text(root / "proc/self/mounts"), root),
    )


def resources(volumes: Path, root: Path = Path("/")) -> dict[str, str]:
    """What of the capacity is the machine's own: the file system of this folder, and pages set aside."""
    found = dict[str, str]()
    try:
        system = os.statvfs(next(folder for folder in (volumes, *volumes.parents) if folder.exists()))
        found["ephemeral-storage"] = str(system.f_blocks * system.f_frsize)
        for folder in sorted((root / "sys/kernel/mm/hugepages").iterdir()):
            if match := _HUGE_PAGES.fullmatch(folder.name):
                name, quantity = huge_pages(int(match[1]), int(_text(folder / "nr_hugepages") or 0))
                found[name] = quantity
    except (OSError, ValueError):
        return found
    return found


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


def _swap_bytes(meminfo: str) -> int:
    for line in meminfo.splitlines():
        name, _, amount = line.partition(":")
        if name == "SwapTotal" and (words := amount.split()) and words[0].isdigit():
            return int(words[0]) * 2**10
    return 0


def _os_image(os_release: str) -> str:
    for line in os_release.splitlines():
        key, _, value = line.partition("=")
        if key == "PRETTY_NAME":
            return value.strip('"')
    return ""


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
