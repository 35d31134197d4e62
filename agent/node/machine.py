"""What a Node reports of the machine it is: read once, at the start."""

import platform
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Machine:
    architecture: str
    kernel: str
    os_image: str
    machine_id: str
    boot_id: str
    swap_bytes: int = 0


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
    )


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
