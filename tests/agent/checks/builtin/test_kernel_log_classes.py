"""The classes of the check `kernelLog`: each has its lines, its count in a window, and its way back."""

import pytest

from agent.checks.builtin.kernel_log import CLASSES, GATE, WARN, Known, after, holds, records_in
from tests.fakes.kmsg import line

# Lines as kernels print them, by class.
LINES = {
    "softLockup": ["watchdog: BUG: soft lockup - CPU#3 stuck for 26s! [kworker/3:1:412]"],
    "hardLockup": [
        "NMI watchdog: Watchdog detected hard LOCKUP on cpu 5",
        "watchdog: CPU5: Watchdog detected hard LOCKUP on cpu 5",
    ],
    "rcuStall": [
        "rcu: INFO: rcu_preempt self-detected stall on CPU",
        "rcu: INFO: rcu_sched detected stalls on CPUs/tasks:",
        "rcu: INFO: rcu_preempt detected expedited stalls on CPUs/tasks: { 1-...D }",
    ],
    "unregisterNetdevice": ["unregister_netdevice: waiting for lo to become free. Usage count = 2"],
    "ioError": [
        "blk_update_request: I/O error, dev sda, sector 2048 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 0",
        "I/O error, dev sda, sector 2048 op 0x1:(WRITE) flags 0x800 phys_seg 1 prio class 2",
        "critical medium error, dev sda, sector 5 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 0",
        "Buffer I/O error on dev sda, logical block 3, lost async page write",
        "Buffer I/O error on device sda, logical block 3",
    ],
    "filesystemShutdown": [
        "XFS (sda): Corruption of in-memory data (0x8) detected at xfs_x+0x1/0x2 [xfs].  Shutting down filesystem.",
        "XFS (sda): Filesystem has been shut down due to log error (0x2).",
        "XFS (sda): User initiated shutdown received. Shutting down filesystem",
        "EXT4-fs (sda): Remounting filesystem read-only",
        "EXT4-fs error (device sda): ext4_x:1: comm y: Remounting filesystem read-only",
        "BTRFS info (device sda state E): forced readonly",
    ],
    "uncorrectedError": [
        "EDAC MCx: 1 UE memory read error on CPU_SrcID#0_Ha#0_Chan#0_DIMM#0",
        "{1}[Hardware Error]: event severity: fatal",
        "Memory failure: 0x1234f: recovery action for dirty LRU page: Recovered",
    ],
    "correctedError": [
        "EDAC MCx: 1 CE memory read error on CPU_SrcID#0_Ha#0_Chan#0_DIMM#0",
        "mce: [Hardware Error]: Machine check events logged",
        "{2}[Hardware Error]: event severity: corrected",
    ],
    "hungTask": [
        "INFO: task dd:4242 blocked for more than 120 seconds.",
        "INFO: task a b:1 blocked for more than 1 seconds",
    ],
    "oops": [
        "Oops: 0002 [#1] PREEMPT SMP NOPTI",
        "Oops: general protection fault, probably for non-canonical address 0xdead: 0000 [#1] SMP",
        "general protection fault, probably for non-canonical address 0xdead: 0000 [#1] SMP PTI",
        "Internal error: Oops: 0000000096000004 [#1] SMP",
        "invalid opcode: 0000 [#2] SMP",
        "kernel BUG at fs/inode.c:123!",
    ],
    "gpuXid": [
        "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
        "NVRM: Xid (PCI:0000:3b:00): 48, An uncorrectable double bit error (DBE) has been detected",
    ],
}
NOTHING = [
    pytest.param("NVRM: Xid (PCI:0000:3b:00): 31, pid=5, name=python, MMU Fault", id="a program's own fault on a GPU"),
    pytest.param("traps: a[1] general protection fault ip:4 sp:7 error:0 in a[4+1]", id="a program's own fault"),
    pytest.param("XFS (sda): Mounting V5 Filesystem 1-2", id="a mount"),
    pytest.param("sd 0:0:0:0: [sda] Attached SCSI disk", id="a disk"),
    pytest.param("audit: I/O error is a word", id="words"),
]


def known(*lines: tuple[float, str]) -> Known:
    text = "".join(line(sequence, at_s, text) for sequence, (at_s, text) in enumerate(lines))
    return after(Known("5f1b"), records_in(text.encode()))


def holding(found: Known, now_s: float) -> list[str]:
    return [name for (name, of), trouble in found.troubles if holds((name, of), trouble, now_s)]


EACH = [pytest.param(name, text, id=f"{name}: {text[:30]}") for name, texts in LINES.items() for text in texts]


def test_each_class_has_lines_and_a_place_in_the_settings() -> None:
    assert (list(CLASSES), set(GATE) | set(WARN)) == (list(LINES), set(LINES))


@pytest.mark.parametrize(("name", "text"), EACH)
def test_what_a_kernel_prints_is_of_one_class_and_holds_for_its_time(name: str, text: str) -> None:
    kind = CLASSES[name]
    few, enough = known(*[(100.0, text)] * (kind.count - 1)), known(*[(100.0, text)] * kind.count)
    ends_s = 100.0 + min(kind.lasts_s, 1e9)
    assert [[], [name], [name]] == [holding(few, 101.0), holding(enough, 101.0), holding(enough, ends_s - 1)]
    assert ([] if kind.lasts_s < 1e9 else [name]) == holding(enough, ends_s)


@pytest.mark.parametrize("text", NOTHING)
def test_what_is_of_no_class(text: str) -> None:
    assert () == known(*[(1.0, text)] * 20).troubles


COUNTED = [
    pytest.param("softLockup", [0, 119], True, id="two within the window"),
    pytest.param("softLockup", [0, 121], False, id="two, too far apart"),
    pytest.param("softLockup", [0, 121, 130], True, id="the last two count"),
    pytest.param("ioError", [0, 10, 20, 30, 61], False, id="four within the window"),
    pytest.param("ioError", [0, 10, 20, 30, 59], True, id="five within the window"),
]


@pytest.mark.parametrize(("name", "at", "expected"), COUNTED)
def test_counts_in_windows(name: str, at: list[int], expected: bool) -> None:
    found = known(*[(float(at_s), LINES[name][0]) for at_s in at])
    assert expected == bool(holding(found, at[-1]))


def test_lines_of_two_devices_are_not_added() -> None:
    text = LINES["ioError"][1]
    assert [] == holding(known(*[(1.0, text), (1.0, text.replace("sda", "sdb"))] * 4), 2.0)


def test_what_goes_on_holds_on() -> None:
    """One line every 10 seconds for an hour: it holds until a minute after the last."""
    found = known(*[(10.0 * turn, LINES["unregisterNetdevice"][0]) for turn in range(360)])
    assert (["unregisterNetdevice"], []) == (holding(found, 3649.0), holding(found, 3650.0))


HEALED = [
    pytest.param("XFS (sda): Mounting V5 Filesystem 1-2", True, id="mounted again"),
    pytest.param("XFS (sdb): Mounting V5 Filesystem 1-2", False, id="another device is mounted"),
    pytest.param("EXT4-fs (sda): mounted filesystem 1-2 r/w with ordered data mode", True, id="ext4, mounted"),
    pytest.param("EXT4-fs (sda): re-mounted 1-2 r/w. Quota mode: none.", True, id="remounted to be written"),
    pytest.param("EXT4-fs (sda): re-mounted 1-2 ro. Quota mode: none.", False, id="remounted to be read only"),
    pytest.param("BTRFS info (device sda): first mount of filesystem 1-2", True, id="btrfs, mounted"),
]


@pytest.mark.parametrize(("text", "expected"), HEALED)
def test_a_file_system_that_is_mounted_again_is_well(text: str, expected: bool) -> None:
    found = known((1.0, LINES["filesystemShutdown"][0]), (2.0, text))
    assert ([] if expected else ["filesystemShutdown"]) == holding(found, 3.0)


def test_a_driver_that_is_loaded_again_heals_all_its_gpus() -> None:
    xid = LINES["gpuXid"][0]
    found = known((1.0, xid), (1.0, xid.replace("3b", "af")), (2.0, "NVRM: loading NVIDIA UNIX x86_64 Kernel Module"))
    assert [] == holding(found, 3.0)


def test_a_flood_of_different_things_is_bounded() -> None:
    text = "unregister_netdevice: waiting for veth{} to become free. Usage count = 2"
    found = known(*[(1.0, text.format(number)) for number in range(1000)])
    assert (64, "veth999") == (len(found.troubles), found.troubles[-1][0][1])


MANGLED = [b"", b"\n", b"no record", b"3,x,1,-;text", b"3,1", b";", b"\xff\xfe", b"3,1,1,- text"]


@pytest.mark.parametrize("block", MANGLED, ids=repr)
def test_bytes_that_are_no_record(block: bytes) -> None:
    assert [] == records_in(block)
