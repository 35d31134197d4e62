"""The check `gpu`: what is on the bus, against what the driver has."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agent.checks.builtin import gpu
from agent.checks.builtin.gpu import Check, Function, Seen, Settings, judged
from agent.checks.state import CheckState, Finding
from tools.kit.cases import cases

failed, passed = (partial(Finding, state) for state in (CheckState.FAILED, CheckState.PASSED))

A, B = "0000:17:00.0", "0000:65:00.0"


SILENT, GRACE = Function(B, answers=False), Function(B, driver="nvgrace_gpu_vfio_pci")


@cases(
    "seen, count, expected",
    ("a node without any", Seen((), ()), None, passed("none here")),
    ("two are expected", Seen((), ()), 2, failed("0 of 2 are there")),
    ("all there", Seen((Function(A), Function(B)), (A, B.upper())), 2, passed("2 are there")),
    ("the driver lacks one", Seen((Function(A), Function(B)), (A,)), None, failed(f"the driver lacks: {B}")),
    ("the bus lacks one", Seen((Function(A),), (A, B)), None, failed(f"the driver has, the bus lacks: {B}")),
    ("one answers no more", Seen((Function(A), SILENT), (A,)), None, failed(f"fallen off the bus: {B}")),
    ("a virtual machine's", Seen((Function(A), Function(B, driver="vfio-pci")), (A,)), None, passed("1 are there")),
    ("a virtual machine's, by its own driver", Seen((Function(A), GRACE), (A,)), None, passed("1 are there")),
    ("no list is asked", Seen((Function(A),), None), 1, passed("1 are there")),
    ("no driver loaded", Seen((Function(A),), ()), None, failed(f"the driver lacks: {A}")),
)
def test_what_is_there_against_what_the_driver_has(seen: Seen, count: int | None, expected: Finding) -> None:
    assert expected == judged(seen, count)


class Machine:
    def __init__(self, root: Path) -> None:
        self.sysfs, self.driver = root / "sys", root / "gpus"
        (self.sysfs / "bus/pci/devices").mkdir(parents=True)

    def function(self, address: str, *, vendor: str = "0x10de", kind: str = "0x030200", **more: Any) -> None:
        folder = self.sysfs / "bus/pci/devices" / address
        folder.mkdir()
        (folder / "vendor").write_text(f"{vendor}\n")
        (folder / "class").write_text(f"{kind}\n")
        (folder / "config").write_bytes(more.get("config", b"\xde\x10\x82\x26" * 16))
        if "driver" in more:
            (folder / "driver").symlink_to(f"../../bus/pci/drivers/{more['driver']}")
        if more.get("virtual"):
            (folder / "physfn").symlink_to("../0000:65:00.0")

    def listed(self, *addresses: str) -> None:
        for address in addresses:
            (self.driver / address).mkdir(parents=True)

    def find(self, expected: int | None = None) -> Finding:
        return Check(Settings(expected=expected, sysfs=str(self.sysfs), driver_list=str(self.driver)), 20.0)()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_only_accelerators_of_the_vendor_count(machine: Machine) -> None:
    machine.function(A, driver="nvidia")
    machine.function("0000:17:00.1", kind="0x040300")  # its sound
    machine.function("0000:03:00.0", vendor="0x1a03", kind="0x030000")  # the board's own display
    machine.function("0000:65:00.4", virtual=True)
    machine.listed(A)
    assert Finding(CheckState.PASSED, "1 are there") == machine.find(1)


EIGHT = [f"0000:{bus:02x}:00.0" for bus in (0x18, 0x2A, 0x3A, 0x5D, 0x9A, 0xAB, 0xBA, 0xDB)]


def test_a_node_of_eight_in_parts_is_looked_at_by_cards(machine: Machine) -> None:
    """MIG makes devices of the driver's, none of the bus; the switches between the cards are bridges."""
    for address in EIGHT:
        machine.function(address, driver="nvidia")
    for bus in range(7, 11):
        machine.function(f"0000:{bus:02x}:00.0", kind="0x068000", driver="nvidia-nvswitch")
    machine.listed(*EIGHT)
    (machine.driver.parent / "capabilities/gpu0/mig/gi1").mkdir(parents=True)
    assert Finding(CheckState.PASSED, "8 are there") == machine.find(8)


def test_one_of_eight_has_fallen_off_the_bus_while_the_driver_has_it_still(machine: Machine) -> None:
    for address in EIGHT:
        machine.function(address, driver="nvidia", **({"config": b"\xff" * 64} if address == EIGHT[3] else {}))
    machine.listed(*EIGHT)
    assert Finding(CheckState.FAILED, f"fallen off the bus: {EIGHT[3]}") == machine.find(8)


def test_virtual_functions_that_the_driver_lists_are_not_missing_on_the_bus(machine: Machine) -> None:
    machine.function(A, driver="nvidia")
    machine.function("0000:17:00.4", virtual=True, driver="nvidia")
    machine.listed(A, "0000:17:00.4")
    assert Finding(CheckState.PASSED, "1 are there") == machine.find()


def test_one_that_reads_as_ones_has_fallen_off_the_bus(machine: Machine) -> None:
    machine.function(A, config=b"\xff" * 64)
    assert Finding(CheckState.FAILED, f"fallen off the bus: {A}") == machine.find()


def test_the_way_back(machine: Machine) -> None:
    machine.function(A)
    assert Finding(CheckState.FAILED, f"the driver lacks: {A}") == machine.find()
    machine.listed(A)
    assert Finding(CheckState.PASSED, "1 are there") == machine.find()


def test_a_machine_whose_bus_cannot_be_looked_at_is_unknown(tmp_path: Path) -> None:
    found = Check(Settings(sysfs=str(tmp_path / "none")), 20.0)()
    assert found.state is CheckState.UNKNOWN
    assert "cannot look at the PCI bus: FileNotFoundError" in found.output


def test_a_driver_that_hangs_is_hung(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "SCRIPT", "import time\ntime.sleep(60)\n")
    expected = "the bus or its driver gives no answer within 1 s"
    assert Finding(CheckState.HUNG, expected) == Check(Settings(), 1.0)()


def test_this_machines_bus_can_be_looked_at() -> None:
    expected = CheckState.PASSED if Path("/sys/bus/pci/devices").is_dir() else CheckState.UNKNOWN
    assert expected is Check(Settings(driver_list=None), 20.0)().state
