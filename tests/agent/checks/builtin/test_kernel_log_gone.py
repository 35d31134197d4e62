"""The check `kernelLog` where a disk has left the bus and is still mounted, as people have reported it."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.checks.state import CheckState, Finding
from tests.agent.checks.builtin.block_host import IO, LVM, NO_PATH, POD, WELL, Host, io_error
from tools.kit.cases import cases


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    made = Host(tmp_path)
    yield made
    os.close(made.writer)


def whole_disk(host: Host) -> tuple[str, ...]:
    host.add("vda", "254:0")
    host.add("nvme0n1", "259:0")
    host.mounts(("259:0", "/", "/dev/nvme0n1"))
    return ("nvme0n1",)


def partition(host: Host) -> tuple[str, ...]:
    host.add("nvme0n1", "259:0")
    host.add("nvme0n1p2", "259:2", disk="nvme0n1")
    host.mounts(("259:2", "/", "/dev/nvme0n1p2"))
    host.add("sda", "8:0")
    return "nvme0n1p2", "nvme0n1"


def kernel_root(host: Host) -> tuple[str, ...]:
    """Mounted by the kernel itself, without an initramfs."""
    gone = partition(host)
    host.mounts(("259:2", "/", "/dev/root"))
    return gone


def volume(host: Host) -> tuple[str, ...]:
    host.add("sda", "8:0")
    host.add("nvme0n1", "259:0")
    host.add("nvme0n1p3", "259:3", disk="nvme0n1")
    host.add("dm-0", "253:0", "nvme0n1p3", **LVM)
    host.mounts(("253:0", "/", "/dev/mapper/vg-root"))
    return "nvme0n1p3", "nvme0n1"


def encrypted(host: Host) -> tuple[str, ...]:
    gone = volume(host)
    host.add("dm-1", "253:1", "dm-0", **{"dm/name": "luks", "dm/uuid": "CRYPT-LUKS2-1"})
    host.mounts(("253:1", "/", "/dev/mapper/luks"))
    return gone


GONE = [
    ("commaai/openpilot#21928: a file system on the whole disk", whole_disk, IO),
    ("billimek/k8s-gitops#5931: on a partition", partition, IO),
    ("tyriis/home-ops#7472: with the words of multipath", partition, NO_PATH),
    ("a root that the kernel has mounted", kernel_root, IO),
    ("dell/csi-baremetal#489: a volume of LVM", volume, IO),
    ("LUKS on such a volume", encrypted, IO),
]
GONE_ROOT = Finding(CheckState.FAILED, "ioError nvme0n1 (device gone): 5 lines, the last 0 s ago, below /")


@cases("make, text", *GONE)
def test_a_disk_that_leaves_the_bus_closes_the_node(host: Host, make, text: str) -> None:
    gone, check = make(host), host.check()
    assert WELL == check()
    host.remove(*gone)
    host.say(text.format("nvme0n1"))
    assert GONE_ROOT == check()


@cases("make, text", *GONE)
def test_a_disk_that_left_before_the_agent_started_closes_the_node(host: Host, make, text: str) -> None:
    host.remove(*make(host))
    host.say(text.format("nvme0n1"))
    assert GONE_ROOT == host.check()()


@cases("has_links", ("its links below the volume remain", True), ("nothing remains", False))
def test_an_agent_that_starts_again_remembers_the_disks(host: Host, has_links: bool) -> None:
    gone, check = volume(host), host.check()
    assert WELL == check()
    host.remove(*gone)
    if not has_links:
        shutil.rmtree(host.root / "sys/devices/dm-0/slaves")
    host.say(IO.format("nvme0n1"), IO.format("sdz"))
    assert GONE_ROOT == host.check()()


def test_a_disk_that_is_gone_stays_in_trouble_until_nothing_is_mounted_from_it(host: Host) -> None:
    """kubernetes/kubernetes#101655: no more lines come, and nothing can be written."""
    gone, check = volume(host), host.check()
    host.say(IO.format("nvme0n1"))
    host.remove(*gone)
    assert GONE_ROOT == check()
    host.now_s += 10_000
    assert "ioError nvme0n1 (device gone): 5 lines, the last 10000 s ago, below /" == check().output
    host.mounts(("8:0", "/", "/dev/sda"))
    assert WELL == check()
    host.mounts(("253:0", "/", "/dev/mapper/vg-root"))
    assert WELL == check()


def test_one_line_is_enough_where_the_disk_is_gone(host: Host) -> None:
    """commaai/openpilot#21928: the kernel may say no more."""
    gone, check = whole_disk(host), host.check()
    check()
    host.say(IO.format("nvme0n1"), times=1)
    assert WELL == check()
    host.remove(*gone)
    assert Finding(CheckState.FAILED, GONE_ROOT.output.replace("5 lines", "1 lines")) == check()


def test_a_disk_that_comes_back_is_well_after_its_time(host: Host) -> None:
    whole_disk(host)
    check = host.check()
    check()
    host.remove("nvme0n1")
    host.say(IO.format("nvme0n1"))
    assert GONE_ROOT == check()
    host.add("nvme0n1", "259:0")
    host.now_s += 299
    assert CheckState.FAILED is check().state
    host.now_s += 1
    assert WELL == check()


def unmounted_volumes(host: Host) -> tuple[str, ...]:
    host.add("vda", "254:0")
    host.add("sdg", "8:96")
    host.add("dm-3", "253:3", "sdg", **{"dm/name": "guest-root", "dm/uuid": "LVM-g"})
    host.mounts(("254:0", "/", "/dev/vda"))
    return ("sdg",)


def other_volume(host: Host) -> tuple[str, ...]:
    volume(host)
    host.add("sdg", "8:96")
    return ("sdg",)


def returned_with_another_name(host: Host) -> tuple[str, ...]:
    """The path is back as sdc; sdg is not below the volume any more."""
    host.add("sdg", "8:96")
    host.add("sdc", "8:32")
    host.add("dm-4", "253:4", "sdc", **{"dm/name": "DATA01", "dm/uuid": "mpath-3600"})
    host.mounts(("253:4", "/", "/dev/mapper/DATA01"))
    return ("sdg",)


def number_given_again(host: Host) -> tuple[str, ...]:
    host.add("sdg", "259:3")
    host.mounts(("259:3", POD, "/dev/sdg"))
    return ("sdg",)


@cases(
    "make",
    ("harvester/harvester#3843: volumes of a guest on a disk that was detached", unmounted_volumes),
    ("a disk that nothing of the root's volume was on", other_volume),
    ("dell/csi-baremetal#489: a disk that is back with another name", returned_with_another_name),
)
def test_a_disk_that_is_gone_closes_no_node_that_does_without_it(host: Host, make) -> None:
    gone, check = make(host), host.check()
    check()
    host.remove(*gone)
    host.say(IO.format("sdg"))
    assert [WELL, WELL] == [check(), host.check()()]


def test_a_number_that_another_device_has_by_now_is_of_that_device(host: Host) -> None:
    gone, check = number_given_again(host), host.check()
    check()
    host.remove(*gone)
    host.add("nvme2n1", "259:3")
    host.mounts(("259:3", "/", "/dev/nvme2n1"))
    host.say(IO.format("sdg"))
    assert WELL == check()


def test_a_pods_disk_that_is_gone_warns(host: Host) -> None:
    """longhorn/longhorn#3283: iSCSI."""
    host.add("vda", "254:0")
    host.add("sdg", "8:96")
    host.mounts(("254:0", "/", "/dev/vda"), ("8:96", POD, "/dev/longhorn/pvc-1"))
    check = host.check()
    check()
    host.remove("sdg")
    host.say(IO.format("sdg"))
    assert io_error("warned", "sdg (device gone)", POD) == check()


def test_where_sysfs_shows_nothing_the_source_of_the_mount_tells(host: Host) -> None:
    host.mounts(("259:2", "/", "/dev/nvme0n1p2"))
    host.say(IO.format("nvme0n1"), IO.format("sdb"))
    assert io_error("failed", "nvme0n1", "/") == host.check()()


def test_where_neither_tells_it_is_unknown(host: Host) -> None:
    host.mounts(("253:0", "/", "/dev/mapper/vg-root"))
    host.say(IO.format("nvme0n1"))
    found = host.check()()
    expected = "ioError, but {}/class/block shows no device below /: needs the host's sysfs"
    assert Finding(CheckState.UNKNOWN, expected.format(host.root / "sys")) == found
