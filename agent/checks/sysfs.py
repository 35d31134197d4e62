"""The block devices that sysfs shows, and what each stands on."""

from collections.abc import Iterable
from pathlib import Path

from agent.checks.block_devices import BTRFS, REDUNDANT_LEVELS, Device


def block_names(sys: str) -> list[str]:
    """Disks, partitions and volumes. Empty where sysfs does not show them."""
    return _names(Path(sys, "class/block"))


def devices_in(sys: str) -> dict[str, Device]:
    """Those that have a number, so no path of an NVMe namespace, and those of each btrfs together."""
    blocks, groups = Path(sys, "class/block"), Path(sys, "fs/btrfs")
    names = block_names(sys)
    below: dict[str, list[str]] = {name: _names(blocks / name / "slaves") for name in names}
    for name in names:
        for holder in _names(blocks / name / "holders"):
            below.setdefault(holder, []).append(name)
        if (blocks / name / "partition").exists():
            below[name].append((blocks / name).resolve().parent.name)
    found = {name: _device(blocks / name, below[name]) for name in names}
    # The number is read last: a device without one may have gone while the rest was read.
    found = {name: device for name, device in found.items() if device.number}
    parts = {name: _names(groups / name / "devices") for name in _names(groups)}
    return found | {f"{BTRFS}{name}": _btrfs(groups / name, parts[name]) for name in parts if parts[name]}


def _device(folder: Path, below: Iterable[str]) -> Device:
    level, uuid = _line_of(folder / "md/level"), _line_of(folder / "dm/uuid")
    return Device(
        mapped=_line_of(folder / "dm/name"),
        below=tuple(sorted(set(below))),
        redundant=level in REDUNDANT_LEVELS or uuid.startswith("mpath-"),
        stacked=(folder / "dm").is_dir() or (folder / "md").is_dir(),
        number=_line_of(folder / "dev"),
    )


def _btrfs(folder: Path, parts: Iterable[str]) -> Device:
    """It goes on without one device where all that it has written is on two."""
    uses = [folder / "allocation" / use for use in ("data", "metadata", "system")]
    levels = [level for use in uses for level in _names(use) if (use / level).is_dir()]
    return Device(below=tuple(parts), redundant=bool(levels) and all(level in REDUNDANT_LEVELS for level in levels))


def _names(folder: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in folder.iterdir())
    except OSError:
        return []


def _line_of(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
