"""The check `kernelLog`: from the name in a kernel line to the mounts on that device, as people have reported them."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.checks.builtin.kernel_log import Check, Settings
from agent.checks.state import CheckState, Finding
from tools.fakes.kmsg import line
from tools.kit.cases import cases

IO = "I/O error, dev {}, sector 2048 op 0x1:(WRITE) flags 0x800 phys_seg 1 prio class 2"
NO_PATH = "block {}: no available path - failing I/O"
WELL = Finding(CheckState.PASSED, "nothing that still holds")
LVM = {"dm/name": "vg-root", "dm/uuid": "LVM-b0dE"}
POD = "/var/lib/kubelet/plugins/csi/globalmount"


class Host:
    """sysfs as the kernel makes it, a log that is a pipe, and a clock."""

    def __init__(self, root: Path) -> None:
        self.root, self.now_s, self.sequence = root, 1000.0, 0
        os.mkfifo(root / "kmsg")
        self.writer = os.open(root / "kmsg", os.O_RDWR | os.O_NONBLOCK)
        (root / "boot_id").write_text("5f1b\n")
        (root / "sys/class/block").mkdir(parents=True)
        self.mounts()

    def add(self, name: str, number: str, *below: str, disk: str = "", **files: str) -> None:
        """`below`: what it is made of. `disk`: of a partition."""
        folder = self.root / "sys/devices" / disk / name
        (folder / "slaves").mkdir(parents=True)
        (folder / "holders").mkdir()
        for path, text in {"dev": number, **({"partition": "1"} if disk else {}), **files}.items():
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_text(f"{text}\n")
        (self.root / "sys/class/block" / name).symlink_to(folder)
        for part in below:
            lower = (self.root / "sys/class/block" / part).resolve()
            (folder / "slaves" / part).symlink_to(lower)
            (lower / "holders" / name).symlink_to(folder)

    def remove(self, *names: str) -> None:
        """Links to it below volumes remain, and lead nowhere."""
        for name in names:
            link = self.root / "sys/class/block" / name
            shutil.rmtree(link.resolve(), ignore_errors=True)
            link.unlink()

    def btrfs(self, uuid: str, *parts: str, **levels: str) -> None:
        group = self.root / "sys/fs/btrfs" / uuid
        for use, level in levels.items():
            (group / "allocation" / use / level).mkdir(parents=True)
            (group / "allocation" / use / "total_bytes").write_text("1\n")
        (group / "devices").mkdir()
        for part in parts:
            (group / "devices" / part).symlink_to(self.root / "sys/class/block" / part)

    def mounts(self, *mounts: tuple[str, str, str], kind: str = "ext4") -> None:
        lines = [f"20 1 {number} / {at} rw shared:1 - {kind} {of} rw" for number, at, of in mounts]
        (self.root / "mountinfo").write_text("".join(f"{each}\n" for each in lines))

    def check(self) -> Check:
        files = {key: str(self.root / key) for key in ("mountinfo", "sys", "boot_id")}
        settings = Settings(path=str(self.root / "kmsg"), position_file=str(self.root / "position"), **files)
        return Check(settings, 2.0, lambda: self.now_s)

    def say(self, *texts: str, times: int = 5) -> None:
        for text in texts * times:
            os.write(self.writer, line(self.sequence, self.now_s, text).encode())
            self.sequence += 1


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    made = Host(tmp_path)
    yield made
    os.close(made.writer)


def io_error(state: str, device: str, below: str, lines: int = 5) -> Finding:
    return Finding(CheckState(state), f"ioError {device}: {lines} lines, the last 0 s ago, below {below}")


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


# Devices that are gone


def whole_disk(host: Host) -> tuple[str, ...]:
    host.add("vda", "254:0")
    host.add("nvme0n1", "259:0")
    host.mounts(("259:0", "/", "/dev/nvme0n1"))
    return ("nvme0n1",)


def partition(host: Host) -> tuple[str, ...]:
    nvme(host)
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
def test_so_does_one_that_left_before_the_agent_came(host: Host, make, text: str) -> None:
    host.remove(*make(host))
    host.say(text.format("nvme0n1"))
    assert GONE_ROOT == host.check()()


@cases("make", ("by what is left of the links", volume), ("without", volume))
def test_an_agent_that_starts_again_remembers_the_disks(host: Host, make, request: pytest.FixtureRequest) -> None:
    gone, check = make(host), host.check()
    assert WELL == check()
    host.remove(*gone)
    if "without" in request.node.name:
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
