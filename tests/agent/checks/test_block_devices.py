"""Names of block devices, and the tree that is remembered of those that are gone."""

from agent.checks.block_devices import (
    GONE_DEVICES,
    Device,
    Devices,
    Mount,
    disk_name,
    mounts_of,
    places_of,
    with_present,
)
from tools.kit.cases import cases


@cases(
    "name, expected",
    ("a path of an NVMe namespace", "nvme1c12n3", "nvme1n3"),
    ("a partition of it", "nvme0c0n1p2", "nvme0n1p2"),
    ("the namespace itself", "nvme0n1", "nvme0n1"),
    ("another disk", "sdc", "sdc"),
    ("a name with a folder", "cciss/c0d0p1", "cciss!c0d0p1"),
)
def test_the_name_that_sysfs_has(name: str, expected: str) -> None:
    assert expected == disk_name(name)


@cases(
    "source, disk, expected",
    ("a name that ends in a letter", "sda12", "sda", True),
    ("of a virtual machine", "vdb1", "vdb", True),
    ("a name that ends in a number", "nvme0n1p2", "nvme0n1", True),
    ("a card", "mmcblk0p1", "mmcblk0", True),
    ("a partition of an array", "md127p1", "md127", True),
    ("a device of a folder", "cciss/c0d0p3", "cciss!c0d0", True),
    ("the whole disk", "nvme0n1", "nvme0n1", True),
    ("another disk with a longer name", "sdaa1", "sda", False),
    ("another namespace", "nvme0n12", "nvme0n1", False),
    ("a boot area of a card", "mmcblk0boot0", "mmcblk0", False),
)
def test_the_disk_of_a_partition_that_is_gone(source: str, disk: str, expected: bool) -> None:
    devices = Devices({"vda": Device("254:0")})
    places = places_of([disk], devices, [Mount("8:1", "/", "ext4", f"/dev/{source}")], ["/"])
    assert (["/"] if expected else [], [disk]) == (places.gated[disk], places.gone)


@cases(
    "number, kind, source",
    ("memory that is called like a disk", "0:25", "tmpfs", "sda"),
    ("a share", "0:26", "nfs4", "10.0.0.1:/dev/sda"),
    ("layers", "0:27", "overlay", "overlay"),
    ("FUSE", "0:28", "fuse", "/dev/fuse"),
    ("several devices of bcachefs", "0:29", "bcachefs", "/dev/sdb:/dev/sdc"),
)
def test_what_names_no_disk_is_on_none_that_is_gone(number: str, kind: str, source: str) -> None:
    places = places_of(["sda"], Devices({"vda": Device("254:0")}), [Mount(number, "/", kind, source)], ["/"])
    assert ([], []) == (places.mounts["sda"], places.gated["sda"])


def test_the_number_of_a_mount_counts_more_than_its_source() -> None:
    devices = Devices({"sda": Device("8:0"), "sdb": Device("8:16")})
    mount = Mount("8:16", "/", "ext4", "/dev/sda")
    assert {"sda": [], "sdb": ["/"]} == places_of(["sda", "sdb"], devices, [mount], ["/"]).mounts


def test_the_newest_devices_that_are_gone_are_remembered() -> None:
    devices = Devices()
    for number in range(300):
        devices = with_present(devices, {f"sd{number}": Device(f"8:{number}")})
    assert ({"sd299": Device("8:299")}, [f"sd{number}" for number in range(299 - GONE_DEVICES, 299)]) == (
        devices.present,
        list(devices.gone),
    )


def test_a_device_that_is_back_is_what_it_is_now() -> None:
    devices = Devices()
    for number in ("8:0", None, "8:16"):
        devices = with_present(devices, {"vda": Device("254:0"), **({"sda": Device(number)} if number else {})})
    assert Devices({"vda": Device("254:0"), "sda": Device("8:16")}) == devices


@cases(
    "now, expected",
    ("nothing is shown below it: it stands on what it stood on", Device("253:0", stacked=True), ("sda",)),
    ("it was moved to another disk", Device("253:0", below=("sdb",), stacked=True), ("sdb",)),
    ("another volume has its name", Device("253:7", stacked=True), ()),
)
def test_a_volume_whose_disk_is_gone(now: Device, expected: tuple[str, ...]) -> None:
    before = Devices({"dm-0": Device("253:0", below=("sda",), stacked=True)})
    assert expected == with_present(before, {"dm-0": now}).present["dm-0"].below


def test_lines_of_mountinfo() -> None:
    text = "22 1 8:2 / / rw shared:1 - ext4 /dev/sda2 rw\n23 22 0:5 / /proc rw - proc none rw\nhalf a line\n"
    expected = [Mount("8:2", "/", "ext4", "/dev/sda2"), Mount("0:5", "/proc", "proc", "none"), Mount("", "")]
    assert expected == mounts_of(text)
