"""The check `kernelLog`: from the name in a kernel line to the mounts on that device, as people have reported them."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.checks.state import CheckState
from tests.agent.checks.builtin.block_host import IO, LVM, NO_PATH, POD, WELL, Host, io_error
from tools.fakes.kmsg import line
from tools.kit.cases import cases


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    made = Host(tmp_path)
    yield made
    os.close(made.writer)


# Paths of native NVMe multipath


def nvme(host: Host) -> None:
    host.add("nvme0n1", "259:0")
    host.add("nvme0n1p2", "259:2", disk="nvme0n1")
    host.mounts(("259:2", "/", "/dev/nvme0n1p2"))


def nvme_with_lvm(host: Host) -> None:
    host.add("nvme0n1", "259:0")
    host.add("dm-0", "253:0", "nvme0n1", **LVM)
    host.mounts(("253:0", "/", "/dev/mapper/vg-root"))


def nvme_of_a_pod(host: Host) -> None:
    host.add("vda", "254:0")
    host.add("nvme0n1", "259:0")
    host.mounts(("254:0", "/", "/dev/vda"), ("259:0", POD, "/dev/nvme0n1"))


def nvme_unused(host: Host) -> None:
    host.add("vda", "254:0")
    host.add("nvme0n1", "259:0")
    host.mounts(("254:0", "/", "/dev/vda"))


@cases(
    "make, path, state, below",
    ("siderolabs/talos#8924: the root's partition", nvme, "nvme0c0n1", "failed", "/"),
    ("openebs-archive/node-disk-manager#669: below LVM", nvme_with_lvm, "nvme0c3n1", "failed", "/"),
    ("earlephilhower/ezfio#32: a controller with a long number", nvme, "nvme0c323n1", "failed", "/"),
    ("axboe/fio#525: the disk of a pod, by NVMe-oF", nvme_of_a_pod, "nvme0c1n1", "warned", POD),
    ("a disk that nothing is mounted from", nvme_unused, "nvme0c0n1", "passed", ""),
    ("a path of another disk", nvme, "nvme1c0n1", "passed", ""),
)
def test_errors_on_a_path_are_errors_of_its_namespace(host: Host, make, path: str, state: str, below: str) -> None:
    make(host)
    host.say(IO.format(path))
    assert (io_error(state, "nvme0n1", below) if below else WELL) == host.check()()


def test_errors_on_two_paths_are_added(host: Host) -> None:
    """linux-blktests/blktests#214: what one path fails with is seen there, and counted for what is above both."""
    nvme(host)
    host.say(IO.format("nvme0c0n1"), IO.format("nvme0c1n1"), times=3)
    assert io_error("failed", "nvme0n1", "/", lines=6) == host.check()()


def test_a_namespace_without_a_path_fails_its_mounts(host: Host) -> None:
    """The kernel says no more than this: nvme_ns_head_submit_bio."""
    nvme(host)
    host.say(NO_PATH.format("nvme0n1"))
    assert io_error("failed", "nvme0n1", "/") == host.check()()


def test_a_path_is_called_over_by_its_own_name_too(host: Host) -> None:
    nvme(host)
    check = host.check()
    host.say(IO.format("nvme0c0n1"))
    assert CheckState.FAILED is check().state
    os.write(host.writer, line(host.sequence, host.now_s, "readygate: over ioError nvme0c0n1", facility=1).encode())
    assert WELL == check()


# Redundancy


def mirror(host: Host) -> None:
    host.add("sda", "8:0")
    host.add("sda3", "8:3", disk="sda")
    host.add("sdb", "8:16")
    host.add("sdb3", "8:19", disk="sdb")
    host.add("md1", "9:1", "sda3", "sdb3", **{"md/level": "raid1"})
    host.mounts(("9:1", "/", "/dev/md1"))


def lvm_mirror(host: Host, metadata: str = "_rmeta_") -> None:
    host.add("sda", "8:0")
    host.add("sdb", "8:16")
    parts = []
    for n, disk in enumerate(("sda", "sdb")):
        for m, part in enumerate((metadata, "_rimage_") if metadata else ("_rimage_",)):
            name = f"dm-{2 * n + m}"
            host.add(name, f"253:{2 * n + m}", disk, **{"dm/name": f"vg-root{part}{n}", "dm/uuid": "LVM-a"})
            parts.append(name)
    host.add("dm-9", "253:9", *parts, **LVM)
    host.mounts(("253:9", "/", "/dev/mapper/vg-root"))


def lvm_stripes(host: Host) -> None:
    lvm_mirror(host, metadata="")


def paths(host: Host) -> None:
    host.add("sdb", "8:16")
    host.add("sdc", "8:32")
    host.add("dm-4", "253:4", "sdb", "sdc", **{"dm/name": "DATA01", "dm/uuid": "mpath-3600"})
    host.add("dm-8", "253:8", "dm-4", **LVM)
    host.mounts(("253:8", "/", "/dev/mapper/vg-root"))


def btrfs_raid(host: Host, level: str = "raid1") -> None:
    host.add("vdb", "254:16")
    host.add("sda", "8:0")
    host.btrfs("5f1b-77", "vdb", "sda", data=level, metadata="raid1", system="raid1")
    host.mounts(("0:37", "/", "/dev/vdb"), kind="btrfs")


def btrfs_single(host: Host) -> None:
    btrfs_raid(host, "single")


def crypt(host: Host) -> None:
    host.add("sda", "8:0")
    host.add("sda3", "8:3", disk="sda")
    host.add("md0", "9:0", "sda3", **{"md/level": "raid0"})
    host.add("dm-0", "253:0", "md0", **{"dm/name": "vg-crypt", "dm/uuid": "LVM-c"})
    host.add("dm-1", "253:1", "dm-0", **{"dm/name": "luks", "dm/uuid": "CRYPT-LUKS2-1"})
    host.mounts(("253:1", "/", "/dev/mapper/luks"))


@cases(
    "make, device, state",
    ("kiwix/operations#514: one disk of a mirror", mirror, "sda", "warned"),
    ("kubernetes/kubernetes#73224: the array itself", mirror, "md1", "failed"),
    ("lvmteam/lvm2#120: one disk of a volume that LVM mirrors", lvm_mirror, "sda", "warned"),
    ("its part of that volume", lvm_mirror, "dm-1", "warned"),
    ("the volume itself", lvm_mirror, "dm-9", "failed"),
    ("one disk of a volume that LVM stripes", lvm_stripes, "sda", "failed"),
    ("opensvc/multipath-tools#6: one path of several", paths, "sdb", "warned"),
    ("opensvc/multipath-tools#6: the volume on it", paths, "dm-8", "failed"),
    ("the disk that all paths lead to", paths, "dm-4", "failed"),
    ("kubernetes/kubernetes#38337: btrfs on two disks, which needs both", btrfs_single, "sda", "failed"),
    ("btrfs that has all on two disks", btrfs_raid, "sda", "warned"),
    ("axboe/fio#526: a file system on LUKS, LVM, md and a partition", crypt, "sda", "failed"),
)
def test_a_node_is_closed_for_what_it_cannot_do_without(host: Host, make, device: str, state: str) -> None:
    make(host)
    host.say(IO.format(device))
    assert io_error(state, device, "/") == host.check()()


def test_a_device_whose_name_has_a_folder(host: Host) -> None:
    """AoE and old controllers: etherd/e0.0 for the kernel, etherd!e0.0 in sysfs."""
    host.add("etherd!e0.0", "152:0")
    host.mounts(("152:0", "/", "/dev/etherd/e0.0"))
    host.say(IO.format("etherd/e0.0"))
    assert io_error("failed", "etherd!e0.0", "/") == host.check()()
