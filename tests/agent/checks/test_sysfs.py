"""The block devices of this machine, and of a tree in which one goes while it is read."""

from pathlib import Path

from agent.checks.block_devices import Device
from agent.checks.sysfs import block_names, devices_in


def test_the_devices_of_this_machine() -> None:
    found = devices_in("/sys")
    numbers = [device.number for device in found.values() if device.number]
    assert (len(numbers), True) == (len(set(numbers)), set(found) - {""} >= {*block_names("/sys")} - {*_hidden("/sys")})


def _hidden(sys: str) -> list[str]:
    return [name for name in block_names(sys) if not Path(sys, "class/block", name, "dev").exists()]


def test_a_partition_stands_on_its_disk(tmp_path: Path) -> None:
    disk = tmp_path / "devices/sda"
    (disk / "sda1").mkdir(parents=True)
    (tmp_path / "class/block").mkdir(parents=True)
    for name, folder, number in (("sda", disk, "8:0"), ("sda1", disk / "sda1", "8:1")):
        (folder / "dev").write_text(f"{number}\n")
        (tmp_path / "class/block" / name).symlink_to(folder)
    (disk / "sda1/partition").write_text("1\n")
    assert {"sda": Device("8:0"), "sda1": Device("8:1", below=("sda",))} == devices_in(str(tmp_path))


def test_a_device_without_a_number_is_left_out(tmp_path: Path) -> None:
    """A path of an NVMe namespace, and a device that goes just now."""
    (tmp_path / "class/block/nvme0c0n1").mkdir(parents=True)
    assert {} == devices_in(str(tmp_path))


def test_no_sysfs_has_no_devices() -> None:
    assert ({}, []) == (devices_in("/none"), block_names("/none"))
