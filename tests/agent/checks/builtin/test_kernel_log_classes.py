"""The classes of the check `kernelLog`: each has its lines, its count in a window, and its way back."""

import pytest

from agent.checks.builtin.kernel_log import Known, after
from agent.checks.kernel_lines import CLASSES, GATE, NOTE, WARN
from agent.kernel.kmsg import records_in
from tests.agent.checks.builtin.kernel_lines_added import ADDED, COMMS_ADDED, NOTHING_ADDED, holding, known
from tools.fakes.kmsg import line
from tools.kit.cases import cases

# Lines as kernels print them, by class.
LINES = {
    "softLockup": [
        "watchdog: BUG: soft lockup - CPU#3 stuck for 26s! [kworker/3:1:412]",
        "NMI watchdog: BUG: soft lockup - CPU#3 stuck for 26s! [a invoked oom-killer: :412]",
        "BUG: soft lockup - CPU#3 stuck for 26s! [x:5]",
    ],
    "hardLockup": [
        "NMI watchdog: Watchdog detected hard LOCKUP on cpu 5",
        "watchdog: CPU5: Watchdog detected hard LOCKUP on cpu 5",
    ],
    "rcuStall": [
        "rcu: INFO: rcu_preempt self-detected stall on CPU",
        "rcu: INFO: rcu_sched detected stalls on CPUs/tasks:",
        "INFO: rcu_sched self-detected stall on CPU",
        "rcu: INFO: rcu_preempt detected expedited stalls on CPUs/tasks: { 1-...D }",
    ],
    "unregisterNetdevice": ["unregister_netdevice: waiting for lo to become free. Usage count = 2"],
    "conntrackFull": [
        "nf_conntrack: nf_conntrack: table full, dropping packet",
        "nf_conntrack: table full, dropping packet",  # kubernetes/kubernetes#18604, #71261
        "nf_conntrack: table full, dropping packet.",
        "ip_conntrack: table full, dropping packet.",
    ],
    "neighbourOverflow": [
        "neighbour: arp_cache: neighbor table overflow!",  # kubernetes/kops#4533
        "neighbour: ndisc_cache: neighbor table overflow!",  # e2b-dev/infra#3508
        "arp_cache: neighbor table overflow!",
        "ipv4: Neighbour table overflow.",  # QubesOS/qubes-issues#355
        "IPv6: Neighbour table overflow",
        "Neighbour table overflow.",
    ],
    "ioError": [
        "blk_update_request: I/O error, dev sda, sector 2048 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 0",
        "I/O error, dev sda, sector 2048 op 0x1:(WRITE) flags 0x800 phys_seg 1 prio class 2",
        "print_req_error: I/O error, dev nvme0n1, sector 2048",
        "recoverable transport error, dev sda, sector 5 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 0",
        "critical medium error, dev sda, sector 5 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 0",
        "Buffer I/O error on dev sda, logical block 3, lost async page write",
        "Buffer I/O error on device sda, logical block 3",
        "block nvme0n1: no available path - failing I/O",
    ],
    "filesystemShutdown": [
        "XFS (sda): Corruption of in-memory data (0x8) detected at xfs_x+0x1/0x2 [xfs].  Shutting down filesystem.",
        "XFS (sda): Filesystem has been shut down due to log error (0x2).",
        "XFS (sda): User initiated shutdown received. Shutting down filesystem",
        "EXT4-fs (sda): Remounting filesystem read-only",
        "EXT4-fs error (device sda): ext4_x:1: comm y: Remounting filesystem read-only",
        "BTRFS info (device sda state E): forced readonly",
        "XFS (sda): Log I/O Error (0x2) detected at xlog_a+0x1/0x2 [xfs] (fs/xfs/x.c:1).  Shutting down filesystem.",
        "XFS (sda): xfs_do_force_shutdown(0x8) called from line 440 of file fs/xfs/libxfs/xfs_defer.c. Return address",
        "BTRFS: info (device sda): forced readonly",
    ],
    "uncorrectedError": [
        "EDAC MCx: 1 UE memory read error on CPU_SrcID#0_Ha#0_Chan#0_DIMM#0",
        "{1}[Hardware Error]: event severity: fatal",
        "Memory failure: 0x1234f: recovery action for dirty LRU page: Recovered",
        "EDAC MCx: 1 UE on mc#0memory#0 (channel:0 slot:0 page:0x1 offset:0x0 grain:8)",
        "mce: [Hardware Error]: Uncorrected error in the memory of a guest",
        "[Hardware Error]: Uncorrected, software restartable error.",
        "{2}[Hardware Error]: event severity: recoverable",
        "{2}[Hardware Error]:   error_type: 14, scrub uncorrected error",
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
        "divide error: 0000 [#1] PREEMPT(voluntary) SMP",
        "Oops [#1]",
        "Internal error: Oops - BUG: 00000000f2000800 [#3]  SMP",
        "Unable to handle kernel pointer dereference in virtual kernel address space: 0004 [#1] SMP",
    ],
    "gpuXid": [
        "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
        "NVRM: Xid (PCI:0000:3b:00): 48, An uncorrectable double bit error (DBE) has been detected",
        "NVRM: Xid (PCI:0000:3b:00): 46, pid=5, name=python, Ch 00000010, intr 00000000",
        "NVRM: Xid (PCI:0000:3b:00 GPU-I:02): 95, pid=5, name=python, Uncontained: FB. RST: Yes, D-RST: No",
        "NVRM: Xid (PCI:0000:3b:00): 119, pid=5, name=nvidia-smi, Timeout after 45s of waiting for RPC response",
        "NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
        "NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed from 0x4 (Drain and Reset) to 0x2 (OS Reboot)",
        "NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.",
    ],
    **ADDED,
}
NOTHING = [
    *NOTHING_ADDED,
    ("a program's own fault on a GPU", "NVRM: Xid (PCI:0000:3b:00): 31, pid=5, name=python, MMU Fault"),
    ("one in its kernel", "NVRM: Xid (PCI:0000:3b:00): 13, pid=5, name=a, Graphics SM Warp Exception"),
    ("a program that the GPU has stopped", "NVRM: Xid (PCI:0000:3b:00): 43, pid=5, name=a, Ch 00000010"),
    ("one that is cleaned up after", "NVRM: Xid (PCI:0000:3b:00): 45, pid=5, name=a, Ch 1 caused by previous Xid 145"),
    ("memory that is repaired", "NVRM: Xid (PCI:0000:3b:00): 63, pid=5, Row Remapper: New row marked for remapping"),
    ("an error that one program has felt", "NVRM: Xid (PCI:0000:3b:00 GPU-I:02): 94, pid=5, name=a, Contained: FB"),
    ("a link's, not fatal", "NVRM: Xid (PCI:0000:3b:00): 149, NETIR_LINK_EVT  Nonfatal, Link 01 (0x021425c6)"),
    (
        "a GPU that needs nothing any more",
        "NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)",
    ),
    ("a switch's", "nvidia-nvswitch1: SXid (PCI:0000:aa:00.0): 24007, Severity 1 Engine instance 12"),
    ("a program's own fault", "traps: a[1] general protection fault ip:4 sp:7 error:0 in a[4+1]"),
    ("what firmware remembers of an earlier boot (BERT)", "[Hardware Error]: event severity: fatal"),
    ("and its details", "[Hardware Error]:   error_type: 14, scrub uncorrected error"),
    ("one that was corrected then", "[Hardware Error]: event severity: corrected"),
    ("a pod's own table of connections", "nf_conntrack: nf_conntrack: table full in netns 4026532178, dropping packet"),
    ("the table of expected connections", "nf_conntrack: nf_conntrack: expectation table full"),
    ("lines that were left out", "net_ratelimit: 241 callbacks suppressed"),
    ("a path of several is not usable now", "block nvme0n1: no usable path - requeuing I/O"),
    ("a mount", "XFS (sda): Mounting V5 Filesystem 1-2"),
    ("a disk", "sd 0:0:0:0: [sda] Attached SCSI disk"),
    ("words", "audit: I/O error is a word"),
    (
        "fstrim of a disk that does not forget blocks",
        "critical target error, dev sda, sector 206848 op 0x3:(DISCARD) flags 0x800 phys_seg 1 prio class 2",
    ),
    (
        "one that does not clear them",
        "blk_update_request: I/O error, dev sda, sector 8 op 0x9:(WRITE_ZEROES) flags 0x0 phys_seg 0 prio class 0",
    ),
    (
        "not supported",
        "operation not supported error, dev nvme0n1, sector 0 op 0x9:(WRITE_ZEROES) flags 0x800 phys_seg 0",
    ),
    ("of an older kernel", "print_req_error: operation not supported error, dev loop8, sector 0"),
]

# What a pod may call a process (15 bytes) and the file of its program (255). The kernel writes both into its own lines.
COMMS = {
    "softLockup": ["BUG: soft locku", "watchdog: BUG: "],
    "hardLockup": ["watchdog: CPU1:", "Watchdog detect"],
    "rcuStall": ["INFO: a detecte", "rcu: INFO: rcu "],
    "unregisterNetdevice": ["unregister_netd"],
    "conntrackFull": ["nf_conntrack: n", "nf_conntrack: t", "nf_conntrack:"],
    "neighbourOverflow": ["neighbour: arp_", "arp_cache: neig", "Neighbour table"],
    "ioError": ["I/O error, dev ", "Buffer I/O erro", "a error, dev a,", "block nvme0n1: "],
    "filesystemShutdown": [
        "XFS (sda): ",
        "EXT4-fs (sda): ",
        "BTRFS info (dev",
        "XFS (sda): Log",
        "XFS (sda):\\x01\\x01",
    ],
    "uncorrectedError": ["EDAC a: 1 UE ", "EDAC MCx: 1 UE ", "[Hardware Error", "Memory failure:"],
    "correctedError": ["EDAC a: 1 CE ", "EDAC MCx: 1 CE ", "[Hardware Error"],
    "hungTask": ["INFO: task a:1 ", "INFO: task "],
    "oops": ["Oops [#1]", "Oops [#1] SMP", "Oops: ", "kernel BUG at ", "invalid opcode:"],
    "gpuXid": ["NVRM: Xid (PCI:"],
    **COMMS_ADDED,
}
ENDS = {
    "softLockup": "BUG: soft lockup - CPU#0 stuck for",
    "hardLockup": "Watchdog detected hard LOCKUP on cpu 0",
    "rcuStall": "rcu: INFO: rcu_sched self-detected stall on CPU",
    "unregisterNetdevice": "unregister_netdevice: waiting for a to become free",
    "conntrackFull": "nf_conntrack: table full, dropping packet",
    "neighbourOverflow": "Neighbour table overflow",
    "ioError": "I/O error, dev sda, sector 1",
    "filesystemShutdown": "Shutting down filesystem",
    "uncorrectedError": "EDAC MCx: 1 UE memory read error on [Hardware Error]: Uncorrected",
    "correctedError": "EDAC MCx: 1 CE memory read error on a",
    "hungTask": "a:1 blocked for more than 120 seconds",
    "oops": "Oops: [#1] SMP",
    "gpuXid": "NVRM: Xid (PCI:0000:3b:00): 79, pid=1",
    **{name: texts[0] for name, texts in ADDED.items()},
}
# Lines about a process: {comm} is its name, {file} that of its program or of something that it opened.
ABOUT = [
    ("segfault", "{comm}[7]: segfault at 0 ip 0 sp 0 error 4 in {file}[400000+1000]"),
    ("with a CPU", "{comm}[7]: segfault at 0 ip 0 sp 0 error 4 in {file}[400000+1000] likely on CPU 1"),
    ("bad frame", "{comm}[7] bad frame in rt_sigreturn frame:0 ip:0 sp:0 orax:0 in {file}[400000+1000]"),
    ("riscv", "{comm}[7]: unhandled signal 11 code 0x1 at 0x0 in {file}[400000+1000]"),
    ("arm64", "{comm}[7]: unhandled exception: DABT (lower EL), ESR 0x0, in {file}[400000+1000]"),
    ("trap", "traps: {comm}[7] trap invalid opcode ip:0 sp:0 error:0 in {file}[400000+1000]"),
    ("oom-killer", "{comm} invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=9"),
    ("killed", "Memory cgroup out of memory: Killed process 7 ({comm}) total-vm:1kB, anon-rss:1kB"),
    ("killed, of the node", "Out of memory: Killed process 7 ({comm}) total-vm:1kB, anon-rss:1kB"),
    ("oom-kill", "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),task={comm},pid=7,uid=0"),
    ("a table's row", "[      7]     0     7     1000      100    40960        0           900 {comm}"),
    ("a trace", "CPU: 0 PID: 7 Comm: {comm} Not tainted 6.1.0 #1"),
    ("allocation", "{comm}: page allocation failure: order:4, mode:0x1(GFP), nodemask=(null),cpuset=a"),
    ("caches", "{comm} (7): drop_caches: 3"),
    ("stack", "{comm} (7) used greatest stack depth: 11000 bytes left"),
    ("uses", "{comm} uses wireless extensions which will stop working for Wi-Fi 7; use nl80211"),
    ("a task", "INFO: task {comm}:7 blocked by nobody"),
    ("ext4", "EXT4-fs error (device sda): ext4_a:935: inode #12: comm {comm}: path /{file}: bad"),
    ("ext4, a path", ("EXT4-fs error (device sda): ext4_a:1: inode #2: comm {comm}: path /q: Remounting filesystem "
                 "read-only: bad")),
    ("mount", "ext4 filesystem being mounted at /{file} supports timestamps until 2038 (0x7fffffff)"),
    ("audit", 'audit: type=1701 audit(1:1): auid=1 uid=0 pid=7 comm="{comm}" exe="/{file}" sig=11'),
]  # fmt: skip


EACH = [pytest.param(name, text, id=f"{name}: {text[:30]}") for name, texts in LINES.items() for text in texts]


def test_each_class_has_lines_and_a_place_in_the_settings() -> None:
    assert (list(CLASSES), set(GATE) | set(WARN) | set(NOTE)) == (list(LINES), set(LINES))


@pytest.mark.parametrize(("name", "text"), EACH)
def test_what_a_kernel_prints_is_of_one_class_and_holds_for_its_time(name: str, text: str) -> None:
    kind = CLASSES[name]
    lines = [(100.0 - kind.stall_s * before, text) for before in reversed(range(kind.count))]
    few, enough = known(*lines[1:]), known(*lines)
    ends_s = 100.0 + min(kind.lasts_s, 1e9)
    assert [[], [name], [name]] == [holding(few, 101.0), holding(enough, 101.0), holding(enough, ends_s - 1)]
    assert ([] if kind.lasts_s < 1e9 else [name]) == holding(enough, ends_s)


@cases("text", *NOTHING)
def test_what_is_of_no_class(text: str) -> None:
    assert () == known(*[(1.0, text)] * 20).troubles


@cases("form", *ABOUT)
def test_what_a_pod_has_put_into_a_line_about_a_process_is_of_no_class(form: str) -> None:
    forged = [form.format(comm=comm, file=ENDS[name]) for name in CLASSES for comm in [*COMMS[name], ENDS[name][:15]]]
    told = {text: {name for (name, _), _ in known((1.0, text)).troubles} for text in forged}
    own = {"oomKill"} if "Killed process" in form else set()
    assert {} == {text: names for text, names in told.items() if names != own}


def test_a_pod_heals_nothing_by_the_name_of_a_program() -> None:
    xid, shut = LINES["gpuXid"][0], LINES["filesystemShutdown"][0]
    forged = "a[7]: segfault at 0 ip 0 sp 0 error 4 in {}[400000+1000]"
    healing = ["NVRM: loading NVIDIA", "XFS (sda): Mounting V5 Filesystem"]
    found = known((1.0, xid), (1.0, shut), *[(2.0, forged.format(words)) for words in healing])
    assert ["gpuXid", "filesystemShutdown"] == holding(found, 3.0)


@pytest.mark.parametrize("flag", [pytest.param("-", id="a line"), pytest.param("c", id="the rest of one")])
def test_what_another_processor_has_cut_off_a_line_is_no_line(flag: str) -> None:
    """As the name of a control group, which a pod may have chosen, in what the kernel says of want of memory."""
    block = "".join(f"6,{n},1000000,{flag};BUG: soft lockup - CPU#0 stuck for 22s! [a:1]\n" for n in (7, 8))
    expected = ["softLockup"] if flag == "-" else []
    assert expected == holding(after(Known("5f1b"), records_in(block.encode())), 2.0)


def test_who_called_the_kernel_and_what_comes_below_a_line_change_nothing() -> None:
    """As a kernel with CONFIG_PRINTK_CALLER says it, and one that names the device."""
    block = "3,7,1000000,-,caller=Cx;{}\n SUBSYSTEM=block\n DEVICE=b8:0\n".format(LINES["filesystemShutdown"][0])
    assert ["filesystemShutdown"] == holding(after(Known("5f1b"), records_in(block.encode())), 2.0)


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
    ("mounted again", "XFS (sda): Mounting V5 Filesystem 1-2", True),
    ("another device is mounted", "XFS (sdb): Mounting V5 Filesystem 1-2", False),
    ("ext4, mounted", "EXT4-fs (sda): mounted filesystem 1-2 r/w with ordered data mode", True),
    ("remounted to be written", "EXT4-fs (sda): re-mounted 1-2 r/w. Quota mode: none.", True),
    ("remounted to be read only", "EXT4-fs (sda): re-mounted 1-2 ro. Quota mode: none.", False),
    ("btrfs, mounted", "BTRFS info (device sda): first mount of filesystem 1-2", True),
    ("btrfs, mounted, of an old kernel", "BTRFS info (device sda): has skinny extents", True),
    ("of a newer one", "BTRFS info (device sda): using crc32c (crc32c-intel) checksum algorithm", True),
    ("said of a remount that fails too", "BTRFS info (device sda): disk space caching is enabled", False),
]


@cases("text, expected", *HEALED)
def test_a_file_system_that_is_mounted_again_is_well(text: str, expected: bool) -> None:
    found = known((1.0, LINES["filesystemShutdown"][0]), (2.0, text))
    assert ([] if expected else ["filesystemShutdown"]) == holding(found, 3.0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("{1}[Hardware Error]:   section_type: PCIe error", [], id="as a disk that was pulled"),
        pytest.param("{1}[Hardware Error]:   section_type: memory error", ["uncorrectedError"], id="of the memory"),
        pytest.param("{2}[Hardware Error]:   section_type: PCIe error", ["uncorrectedError"], id="another record"),
    ],
)
def test_what_firmware_tells_of_a_device_is_none_of_the_memory_or_a_processor(text: str, expected: list[str]) -> None:
    severity = "{1}[Hardware Error]: event severity: recoverable"
    found = known((1.0, severity), (1.0, "{1}[Hardware Error]:  Error 0, type: recoverable"), (1.0, text))
    assert expected == holding(found, 2.0)


def test_a_driver_that_is_loaded_again_heals_all_its_gpus() -> None:
    xid = LINES["gpuXid"][0]
    found = known((1.0, xid), (1.0, xid.replace("3b", "af")), (2.0, "NVRM: loading NVIDIA UNIX x86_64 Kernel Module"))
    assert [] == holding(found, 3.0)


@cases(
    "text, expected",
    ("nothing any more: it is well", "0x1 (GPU Reset Required) to 0x0 (None)", ["0000:af:00"]),
    ("something else", "0x4 (Drain and Reset) to 0x1 (GPU Reset Required)", ["0000:af:00", "0000:3b:00"]),
)
def test_the_driver_itself_tells_that_a_gpu_needs_nothing_any_more(text: str, expected: list[str]) -> None:
    """Of one of eight; the others are as they were."""
    xid, said = LINES["gpuXid"][0], f"NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed from {text}"
    found = known((1.0, xid), (1.0, xid.replace("3b", "af")), (2.0, said))
    assert expected == [of for (_, of), _ in found.troubles]


@cases(
    "facility, text, expected",
    ("of one GPU", 1, "readygate: over gpuXid 0000:3b:00", ["0000:af:00"]),
    ("of all of them", 1, "readygate: over gpuXid", []),
    ("of another class", 1, "readygate: over softLockup", ["0000:af:00", "0000:3b:00"]),
    ("of none that there is", 1, "readygate: over gpuXid 0000:3b", ["0000:af:00", "0000:3b:00"]),
    ("other words", 1, "readygate: over gpuXid 0000:3b:00 and more", ["0000:af:00", "0000:3b:00"]),
    ("the kernel's, which a pod may have a part in", 0, "readygate: over gpuXid", ["0000:af:00", "0000:3b:00"]),
)
def test_what_the_kernel_does_not_tell_the_end_of_people_call_over(
    facility: int, text: str, expected: list[str]
) -> None:
    xid = LINES["gpuXid"][0]
    found = known((1.0, xid.replace("3b", "af")), (1.0, xid))
    over = f"{8 * facility + 6},99,2000000,-;{text}\n"
    assert expected == [of for (_, of), _ in after(found, records_in(over.encode())).troubles]


def test_a_flood_of_other_things_pushes_out_nothing_that_holds() -> None:
    """As of devices that come and go and have one error each; what is new can still become true."""
    flapping = [(2.0, f"I/O error, dev sd{number}, sector 1") for number in range(1000)]
    shut, lockup = LINES["filesystemShutdown"][0], LINES["softLockup"][0]
    found = known((1.0, shut), *flapping, (3.0, lockup))
    found = after(found, records_in(line(2000, 4.0, lockup).encode()))
    assert (["filesystemShutdown", "softLockup"], 64) == (holding(found, 5.0), len(found.troubles))


def test_what_holds_on_many_devices_keeps_nothing_new_from_being_counted() -> None:
    shut = LINES["filesystemShutdown"][0]
    found = known(*[(1.0, shut.replace("sda", f"dm-{number}")) for number in range(100)])
    for sequence in (200, 201):
        found = after(found, records_in(line(sequence, 2.0, LINES["softLockup"][0]).encode()))
    assert ("softLockup", 64) == (holding(found, 3.0)[-1], len(found.troubles))


def test_a_flood_of_different_things_is_bounded() -> None:
    text = "unregister_netdevice: waiting for veth{} to become free. Usage count = 2"
    found = known(*[(1.0, text.format(number)) for number in range(1000)])
    assert (64, "veth999") == (len(found.troubles), found.troubles[-1][0][1])


MANGLED = [b"", b"\n", b"no record", b"3,x,1,-;text", b"3,1", b";", b"\xff\xfe", b"3,1,1,- text"]


@pytest.mark.parametrize("block", MANGLED, ids=repr)
def test_bytes_that_are_no_record(block: bytes) -> None:
    assert [] == records_in(block)
