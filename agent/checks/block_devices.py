"""Which mounts lie on the block device that a line of the kernel's log names. Pure.

Between the two there may be partitions, LVM, dm-crypt, md, multipath and btrfs. sysfs shows the tree of what is there.
A device that is gone is not in sysfs any more, although what is mounted from it still is. It is placed by

- the tree as it was while the device was there,
- the names below a volume: its links to devices that are gone remain,
- the source of a mount, from which the name of the disk follows by the kernel's rule for partitions,
- elimination: nothing that is there carries the volume or the mount, and the device is of no other known use.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

REDUNDANT_LEVELS = ("raid1", "raid4", "raid5", "raid6", "raid10", "raid1c3", "raid1c4")
GONE_DEVICES = 256  # remembered at most, the newest
# A path of native NVMe multipath, which has no number and no holders: the kernel names it nvme{subsystem}c{controller}
# n{namespace}, and the device above it nvme{subsystem}n{namespace} (nvme_mpath_set_disk_name).
_NVME_PATH = re.compile(r"(nvme\d+)c\d+(n\d+(?:p\d+)?)")
_PARTITION = re.compile(r"(.*\d)p\d+|(\D+)\d+")
# Parts of a volume that LVM mirrors; a volume that it only stripes has images without metadata.
_MIRRORED = re.compile(r".*_(?:rmeta|mimage)_\d+")


BTRFS = "btrfs/"  # begins the name of what stands on the devices of one btrfs


class Device(msgspec.Struct, frozen=True):
    """A block device, or the devices of one btrfs together."""

    number: str = ""  # major and minor, as in mountinfo
    mapped: str = ""  # the name in /dev/mapper
    below: tuple[str, ...] = ()  # what it stands on: the disk of a partition, the parts of a volume
    redundant: bool = False  # goes on without one of those below it; what it cannot do without them, it says itself
    stacked: bool = False  # made by device mapper or md, so that there is something below it


class Devices(msgspec.Struct, frozen=True):
    """What sysfs shows, and how that was of devices that are gone."""

    present: dict[str, Device] = {}
    gone: dict[str, Device] = {}


@dataclass(frozen=True, slots=True)
class Mount:
    """A line of mountinfo: proc_pid_mountinfo(5)."""

    number: str
    point: str
    kind: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Places:
    """Where file systems are: the mount points on a device, and which of the gate paths lie on it. `gone`: devices that
    sysfs does not show any more. `unclear`: gate paths whose device is unknown."""

    mounts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    gated: Mapping[str, Sequence[str]] = field(default_factory=dict)
    gone: Collection[str] = ()
    unclear: Sequence[str] = ()


def disk_name(name: str) -> str:
    """A device by the name that sysfs has for it, a path of an NVMe namespace by that of the namespace."""
    path = _NVME_PATH.fullmatch(name)
    return path[1] + path[2] if path else name.replace("/", "!")


def is_gone(name: str, devices: Devices) -> bool:
    """Where sysfs shows no device at all, that is unknown."""
    return bool(devices.present) and name not in devices.present


def with_present(known: Devices, present: Mapping[str, Device]) -> Devices:
    """After one more look at sysfs. A volume that shows nothing below it any more stands on what it stood on."""
    lost = {name: it for name, it in known.present.items() if name not in present}
    gone = {name: it for name, it in known.gone.items() if name not in present and name not in lost} | lost
    kept = {name: _with_below(it, known.present.get(name, it)) for name, it in present.items()}
    return Devices(kept, dict(list(gone.items())[-GONE_DEVICES:]))


def _with_below(device: Device, before: Device) -> Device:
    orphaned = device.stacked and not device.below and device.number == before.number
    return msgspec.structs.replace(device, below=before.below) if orphaned else device


def mounts_of(mountinfo: str) -> list[Mount]:
    return [_mount(line.split(" ")) for line in mountinfo.splitlines()]


def _mount(words: Sequence[str]) -> Mount:
    kind, source, *_ = [*words[words.index("-") + 1 :], "", ""] if "-" in words else ("", "")
    return Mount(words[2], words[4], kind, source) if len(words) > 4 else Mount("", "")


def places_of(named: Iterable[str], devices: Devices, mounts: Sequence[Mount], gate_paths: Iterable[str]) -> Places:
    """Of each of these devices the mounts on it, and the gate paths that fail with it."""
    world = _World(devices)
    holders = {path: _holder(mounts, path) for path in gate_paths}
    mounted, gated, gone = dict[str, Sequence[str]](), dict[str, Sequence[str]](), list[str]()
    for name in named:
        mounted[name] = [mount.point for mount in mounts if world.stands_on(mount, name)]
        gated[name] = [path for path, mount in holders.items() if mount and world.stands_on(mount, name, alone=True)]
        gone += [name] if is_gone(name, devices) else []
    return Places(mounted, gated, gone, [path for path, mount in holders.items() if mount and world.is_unclear(mount)])


def _holder(mounts: Sequence[Mount], path: str) -> Mount | None:
    """The mount that a path lies in: the longest point, and of those the one that was mounted last."""
    inside = [m for m in mounts if m.point == path or path.startswith(m.point.rstrip("/") + "/")]
    return max(reversed(inside), key=lambda mount: len(mount.point), default=None)


class _World:
    """All devices, those that are gone too, and what lies below a mount."""

    def __init__(self, devices: Devices) -> None:
        self._present = devices.present
        self._all = {**devices.gone, **devices.present}
        self._by_number = {it.number: name for name, it in self._all.items() if it.number}  # what is there comes last
        self._by_mapped = {f"mapper/{it.mapped}": name for name, it in self._all.items() if it.mapped}
        self._groups = {part: name for name, it in self._all.items() if name.startswith(BTRFS) for part in it.below}
        self._below: dict[tuple[str, str, str, bool], tuple[Collection[str], bool]] = {}

    def stands_on(self, mount: Mount, name: str, *, alone: bool = False) -> bool:
        """`alone`: and cannot go on without it."""
        key = (mount.number, mount.kind, mount.source, alone)
        if key not in self._below:
            self._below[key] = self._chain(mount, alone=alone)
        names, lost = self._below[key]
        return name in names or (lost and bool(self._present) and name not in self._all)

    def is_unclear(self, mount: Mount) -> bool:
        """sysfs shows nothing, and the mount names no device by which it could be found."""
        return not self._present and self._top(mount)[1]

    def _chain(self, mount: Mount, *, alone: bool) -> tuple[Collection[str], bool]:
        """The devices below a mount, and whether those at the bottom are gone without a name."""
        top, lost = self._top(mount)
        found, coming = set[str](), [top] if top else []
        while coming:
            name = coming.pop()
            if name in found:
                continue
            found.add(name)
            device = self._all.get(name)
            if device is None:
                coming += [disk for disk in (_disk_of(name),) if disk]
                continue
            lost |= device.stacked and not device.below
            coming += () if alone and self._is_redundant(device) else device.below
        return found, lost

    def _top(self, mount: Mount) -> tuple[str, bool]:
        """The device of a mount, by its number if it is known. btrfs has a number of its own, and names a device."""
        if name := self._by_number.get(mount.number):
            return name, False
        source = mount.source.removeprefix("/dev/")
        if source == mount.source:
            return "", False
        name = self._by_mapped.get(source) or source.replace("/", "!")
        if mount.kind == "btrfs":
            name = self._groups.get(name, name)
        unnamed = name not in self._all and ("/" in source or source == "root")
        return name, unnamed and not mount.number.startswith("0:")

    def _is_redundant(self, device: Device) -> bool:
        parts = (self._all[part].mapped for part in device.below if part in self._all)
        return device.redundant or any(_MIRRORED.fullmatch(part) for part in parts)


def _disk_of(partition: str) -> str:
    """By the kernel's rule: the disk's name and a number, with a p between them where the disk's name ends in one."""
    named = _PARTITION.fullmatch(partition)
    return (named[1] or named[2]) if named else ""
