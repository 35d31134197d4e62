"""Lines of the kernel's log as records and troubles; those of the classes that users of other detectors have asked for,
and lines that were false alarms of theirs."""

from agent.checks.builtin.kernel_log import Known, after, holds
from agent.kernel.kmsg import records_in
from tools.fakes.kmsg import line

ADDED = {
    "gpuLost": [
        # NVIDIA/NVSentinel#155: one record; the kernel escapes its line feeds.
        (
            "NVRM: The NVIDIA GPU 0000:b3:00.0\\x0aNVRM: (PCI ID: 10de:26b5) installed in this system has\\x0aNVRM: "
            "fallen off the bus and is not responding to commands."
        ),
        "NVRM: fallen off the bus and is not responding to commands.",  # leptonai/gpud#1209: a record each
    ],
    "sxid": ["nvidia-nvswitch3: SXid (PCI:0000:c5:00.0): 12028, Fatal, Link 32 egress non-posted PRIV error (First)"],
    "pcieFatal": [
        "pcieport 0000:00:01.0: AER: Uncorrected (Fatal) error received: 0000:01:00.0",
        "pcieport 0000:00:01.0: AER: Multiple Uncorrected (Fatal) error received: 0000:01:00.0",
        "pcieport 0000:00:01.0: AER: Uncorrectable (Fatal) error message received from 0000:01:00.0",
        "nvme 0000:01:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Receiver ID)",
        "nvme 0000:01:00.0: AER: PCIe Bus Error: severity=Uncorrectable (Fatal), type=Data Link Layer",
    ],
    "netdevWatchdog": [
        "NETDEV WATCHDOG: eth0 (ftgmac100): transmit queue 0 timed out",  # openbmc/openbmc#2228
        "NETDEV WATCHDOG: ens6 (r8169): transmit queue 0 timed out 5004 ms",
        "r8125 0000:22:04.0 eth4: NETDEV WATCHDOG: CPU: 3: transmit queue 0 timed out 5010 ms",
    ],
    "workqueueLockup": ["BUG: workqueue lockup - pool cpus=3 node=0 flags=0x0 nice=0 stuck for 33s!"],
    "nfsNotResponding": [
        "nfs: server 10.0.0.7 not responding, still trying",
        "nfs: server nfs-1.example.com not responding, timed out",
    ],
    "zfsSuspended": [
        "WARNING: Pool 'tank' has encountered an uncorrectable I/O failure and has been suspended.",
        (
            "WARNING: Pool 'zfs_pool_scsi0QEMU_QEMU_HARDDISK_disk11' has encountered an uncorrectable I/O failure "
            "and has been suspended."
        ),  # whamcloud/integrated-manager-for-lustre#340
        (
            "SPLError: 3525:0:(spl-err.c:67:vcmn_err()) WARNING: Pool 'tank' has encountered an uncorrectable I/O "
            "failure and has been suspended."
        ),  # openzfs/spl#417
    ],
    "oomKill": [
        # kubernetes/node-problem-detector#480: older and newer kernels
        "Memory cgroup out of memory: Kill process 4015 (python) score 1923 or sacrifice child",
        "Memory cgroup out of memory: Killed process 4249 (python) total-vm:32812kB, anon-rss:23856kB",
        "Out of memory: Killed process 4249 (python) total-vm:32812kB, anon-rss:23856kB, file-rss:1700kB",
        "Out of memory (oom_kill_allocating_task): Killed process 4249 (python) total-vm:32812kB",
    ],
}
NOTHING_ADDED = [
    (
        "rwth-i6/returnn#1486, hirschmann/nbfc#181: a PCIe error that was corrected",
        "pcieport 0000:00:03.0: AER: Corrected error received: 0000:00:03.0",
    ),
    (
        "its details",
        "pcieport 0000:00:03.0: PCIe Bus Error: severity=Corrected, type=Data Link Layer, (Transmitter ID)",
    ),
    ("one that is not fatal", "pcieport 0000:00:01.0: AER: Uncorrected (Non-Fatal) error received: 0000:01:00.0"),
    (
        "details of one that is not fatal",
        "nvme 0000:01:00.0: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Transaction Layer",
    ),
    (
        "a switch's error that is not fatal",
        "nvidia-nvswitch3: SXid (PCI:0000:c5:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error (First)",
    ),
    ("a GPU that is too old", "NVRM: The NVIDIA GPU 0000:b3:00.0 installed in this system is not supported"),
    ("open-gpu-kernel-modules#1098: an empty line", ""),
    ("a driver's line about its queue", "r8125 0000:22:04.0 eth4: rtl_rxtx_empty_cond == 0 (loop: 42, delay: 100)."),
    ("a work item that takes long", "workqueue: ib_cache_event_task [ib_core] hogged CPU for >10000us 4 times"),
    (
        "leptonai/gpud#1164: a register that may not be read",
        "mlx5_core 0000:d2:00.0: mlx5_cmd_out_err:838:(pid 1441871): ACCESS_REG(0x805) op_mod(0x1) failed, err(-22)",
    ),
    ("a server that answers again", "nfs: server 10.0.0.7 OK"),
    ("that the OOM killer was called", "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=a,mems_allowed=0"),
]
COMMS_ADDED = {
    "gpuLost": ["NVRM: The NVIDI", "NVRM: fallen of"],
    "sxid": ["nvidia-nvswitch", "nvidia-nvswitc1"],
    "pcieFatal": ["pcieport 0000:0", "a 0000:00:01.0:"],
    "netdevWatchdog": ["NETDEV WATCHDOG", "a b c: NETDEV W"],
    "workqueueLockup": ["BUG: workqueue "],
    "nfsNotResponding": ["nfs: server a n", "nfs: server "],
    "zfsSuspended": ["WARNING: Pool '", "SPLError: a WAR"],
    "oomKill": ["Out of memory: ", "Memory cgroup o"],
}


def known(*lines: tuple[float, str]) -> Known:
    text = "".join(line(sequence, at_s, text) for sequence, (at_s, text) in enumerate(lines))
    return after(Known("5f1b"), records_in(text.encode()))


def holding(found: Known, now_s: float) -> list[str]:
    return [name for (name, of), trouble in found.troubles if holds((name, of), trouble, now_s)]
