"""What is read of the machine, once at the start."""

import os
from pathlib import Path

import pytest

from agent.kubelet.node.machine import NO_LIMITS, machine, resources


def test_a_machine_that_cannot_be_read_is_empty(tmp_path: Path) -> None:
    made = machine(tmp_path)
    assert ("Unknown", "", "", "") == (made.os_image, made.machine_id, made.boot_id, made.system_uuid)
    assert {"cpu", "memory"}.isdisjoint(resources(tmp_path, tmp_path))


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


MEMINFO = "MemFree:  1 kB\nMemTotal:        8000 kB\nSwapTotal:       10 kB\n"
ONLINE = "sys/devices/system/cpu/online"
GROUP = {"proc/self/mounts": "c /cg cgroup2 rw 0 0", "proc/self/cgroup": "0::/a"}


@pytest.mark.parametrize(
    ("files", "own_processes", "expected"),
    [
        pytest.param({ONLINE: "0-3,6\n"}, True, ("5", "8192000"), id="processors that are online, all memory"),
        pytest.param(
            {f"sys/devices/system/cpu/{name}/x": "" for name in ("cpu0", "cpu11", "cpufreq")},
            True,
            ("2", "8192000"),
            id="a kernel that takes no processor offline",
        ),
        pytest.param(
            {ONLINE: "0-3", **GROUP, "cg/a/memory.max": "4096", "cg/a/cpu.max": "150000 100000"},
            True,
            ("1500m", "4096"),
            id="its control group has less",
        ),
        pytest.param(
            {ONLINE: "0-3", **GROUP, "cg/a/memory.max": "9999999", "cg/a/cpu.max": "900000 100000"},
            True,
            ("4", "8192000"),
            id="its control group may have more than there is",
        ),
        pytest.param(
            {ONLINE: "0-3", **GROUP, "cg/a/memory.max": "4096", "cg/cpu.max": "33333 100000"},
            False,
            ("334m", "8192000"),
            id="with a container runtime its own group is not that of the pods",
        ),
    ],
)
def test_n102_n103_capacity_is_read_of_the_machine(
    files: dict[str, str], own_processes: bool, expected: tuple[str, str], tmp_path: Path
) -> None:
    write(tmp_path, {"proc/meminfo": MEMINFO, **files})
    found = resources(tmp_path, tmp_path, own_processes=own_processes)
    assert expected == (found["cpu"], found["memory"])
    assert machine(tmp_path).swap_bytes == 10240


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param({"etc/machine-id": "m\n", "var/lib/dbus/machine-id": "d\n"}, ("m", "m"), id="s390x has no other"),
        pytest.param({"var/lib/dbus/machine-id": "d\n"}, ("d", ""), id="that of dbus"),
        pytest.param(
            {"etc/machine-id": "m", "sys/class/dmi/id/product_uuid": "u\n"}, ("m", "u"), id="the firmware's of a PC"
        ),
        pytest.param(
            {"etc/machine-id": "m", "proc/device-tree/vm,uuid": "v\0"},
            ("m", "v"),
            id="of a Power machine",
        ),
    ],
)
def test_n104_names_of_the_machine(files: dict[str, str], expected: tuple[str, str], tmp_path: Path) -> None:
    write(tmp_path, files)
    made = machine(tmp_path)
    assert expected == (made.machine_id, made.system_uuid)


def test_the_name_of_the_system_is_read(tmp_path: Path) -> None:
    write(tmp_path, {"usr/lib/os-release": "ID=y\n"})
    assert machine(tmp_path).os_image == "Linux"
    write(tmp_path, {"etc/os-release": 'ID=x\nPRETTY_NAME="Some Linux 1"\n'})
    assert machine(tmp_path).os_image == "Some Linux 1"


def test_what_of_its_capacity_is_the_machines_own(tmp_path: Path) -> None:
    for size, pages in ((2048, "3\n"), (1048576, "1\n"), (64, "")):
        folder = tmp_path / f"sys/kernel/mm/hugepages/hugepages-{size}kB"
        folder.mkdir(parents=True)
        (folder / "nr_hugepages").write_text(pages)
    found = resources(tmp_path / "not/there/yet", tmp_path)
    storage = os.statvfs(tmp_path)
    assert {
        "ephemeral-storage": str(storage.f_blocks * storage.f_frsize),
        "hugepages-2Mi": str(3 * 2**21),
        "hugepages-1Gi": str(2**30),
        "hugepages-64Ki": "0",
    } == found


def test_a_kernel_without_huge_pages_has_none(tmp_path: Path) -> None:
    assert ["ephemeral-storage"] == list(resources(tmp_path, tmp_path))


@pytest.mark.parametrize(
    ("mounts", "files", "expected"),
    [
        pytest.param("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0", (), "", id="version 2"),
        pytest.param("cgroup /cg cgroup rw,cpu 0 0", ("period", "quota"), "", id="version 1"),
        pytest.param("cgroup /cg cgroup rw,cpu 0 0", ("period",), NO_LIMITS, id="N2 version 1 without quotas"),
        pytest.param("cgroup /cg cgroup rw,cpuset 0 0\n\ngarbage", (), "", id="none that we see"),
    ],
)
def test_limits_of_processor_time(mounts: str, files: tuple[str, ...], expected: str, tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mounts").write_text(mounts)
    (tmp_path / "cg").mkdir()
    for name in files:
        (tmp_path / f"cg/cpu.cfs_{name}_us").write_text("1")
    assert expected == machine(tmp_path).soft_requirements
