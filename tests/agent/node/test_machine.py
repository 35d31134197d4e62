"""What is read of the machine, once at the start."""

import os
from pathlib import Path

import pytest

from agent.node.machine import NO_LIMITS, machine, resources


def test_a_machine_that_cannot_be_read_is_empty(tmp_path: Path) -> None:
    made = machine(tmp_path)
    assert ("", "", "") == (made.os_image, made.machine_id, made.boot_id)


def test_the_name_of_the_system_is_read(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/os-release").write_text('ID=x\nPRETTY_NAME="Some Linux 1"\n')
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
