"""What is tried: faults of tools/faults, and the checks of the service that watch for them, as one configuration."""

from collections import deque
from collections.abc import Collection, Sequence
from typing import Any

import yaml

from tools.faults.cache import SERVER
from tools.faults.fault import Fault
from tools.faults.filesystem import DISK
from tools.faults.network import API, DNS
from tools.faults.plugins import NAME as PLUGIN
from tools.faults.registry import FAULTS
from tools.faults.slow_disk import DISK as SLOW_DISK
from tools.faults.stalls import PROC as STALLS
from tools.faults.tables import PROC
from tools.faults.units import UNIT

BUS = "/host/run/dbus/system_bus_socket"
KUBELET = "kubelet"  # not a kind of check: the opinion of mode `node`
# The twelve of the comparison, and variants of them. Left out are a soft lockup, as it is over after five minutes, a
# disk that is gone, as the service keeps the mount that it began with, and slow syncs, which only warn.
NAMES = (
    "disk-read-only",
    "disk-full",
    "runtime-gone",
    "runtime-hangs",
    "cni-gone",
    "cni-broken",
    "cni-no-plugin",
    "addresses-leaked",
    "dns-service",
    "dns-service-tcp",
    "dns-server-ends",
    "dns-link-gone",
    "service-path",
    "full-size-packets",
    "full-size-packets-service",
    "proxy-hangs",
    "default-route-gone",
    "conntrack-drops",
    "neighbours-full",
    "plugin-hangs",
    "plugin-gone",
    "log-shutdown",
    "gpu-xid",
    "pod-threads",
    "stalls",
    "threads-out",
    "files-out",
    "syncs-hang",
    "certificate-ended",
    "gpu-missing",
    "time-lost",
    "inodes-used-up",
    "unit-failed",
    "unit-crashes",
    "own-line",
    "nfs-silent",
)
# Of these the kernel tells, and how: lines of its log, news of links and routes, of files.
NEWS = {
    "log-shutdown": "kmsg",
    "gpu-xid": "kmsg",
    "own-line": "kmsg",
    "nfs-silent": "kmsg",
    "default-route-gone": "netlink",
    "dns-link-gone": "netlink",
    "cni-gone": "inotify",
    "cni-broken": "inotify",
    "cni-no-plugin": "inotify",
    "certificate-ended": "inotify",
}
# Found by silence, which takes its time.
KUBELET_HANGS = Fault(
    "kubelet-hangs",
    KUBELET,
    "the kubelet stands still (SIGSTOP): mode `node` sees its silence",
    ("systemctl kill --kill-whom=main --signal=STOP kubelet",),
    ("systemctl kill --kill-whom=main --signal=CONT kubelet",),
)
SLOW = (KUBELET_HANGS.name,)
AVERAGED = ("stalls",)  # by the kernel over a minute, which a part of has to go by
# The hosts of the testbed have one kernel: one log, one clock.
EVERYWHERE = ("log-shutdown", "gpu-xid", "time-lost", "own-line", "nfs-silent")
# Nothing of a control plane looks at what these break: they may be played on its host too.
HARMLESS = (
    "disk-read-only",
    "disk-full",
    "cni-gone",
    "cni-broken",
    "cni-no-plugin",
    "addresses-leaked",
    "dns-service",
    "dns-service-tcp",
    "dns-server-ends",
    "dns-link-gone",
    "conntrack-drops",
    "neighbours-full",
    "plugin-hangs",
    "plugin-gone",
    "stalls",
    "files-out",
    "syncs-hang",
    "certificate-ended",
    "gpu-missing",
    "inodes-used-up",
    "unit-failed",
    "unit-crashes",
)
TRIED = {**{name: FAULTS[name] for name in NAMES}, KUBELET_HANGS.name: KUBELET_HANGS}
PROFILES = {"fast": (2, 2), "default": (10, 3)}  # periodSeconds, failureThreshold: as in the role readygate_node

Turn = dict[str, str]  # nodes, and the fault that each has; all at once


def often(names: Collection[str], workers: Sequence[str], control: str, number: int) -> list[Turn]:
    """Round `number` of `names`: all of them on each worker, not the same at once; as many on the control plane's host,
    of those that it can bear; what the kernel's log tells on all of them. Kubelets are one another's peers of
    servicePath: one stands still at a time, each round another."""
    usual, told, slow = _sorted(names)
    here = [name for name in usual if name in HARMLESS]
    turns = list[Turn]()
    for place in range(len(usual)):
        apart = max(1, len(usual) // len(workers))
        turn = {node: usual[(place + apart * n) % len(usual)] for n, node in enumerate(workers)}
        if here:
            turn[control] = here[(place + number * len(usual)) % len(here)]
        turns.append(turn)
    turns += [dict.fromkeys((control, *workers), name) for name in told]
    return [*turns, *({workers[number % len(workers)]: name} for name in slow)]


def once(names: Collection[str], workers: Sequence[str], control: str) -> list[Turn]:
    """Each of `names` on one node, as many at once as there are nodes."""
    usual, told, slow = _sorted(names)
    here = deque(name for name in usual if name in HARMLESS)
    there = deque(name for name in usual if name not in HARMLESS)
    turns = list[Turn]()
    while here or there:
        turn = {control: here.popleft()} if here else {}
        turns.append(turn)
        for node in workers:
            if there or here:
                turn[node] = there.popleft() if there else here.popleft()
    turns += [dict.fromkeys((control, *workers), name) for name in told]
    return [*turns, *({workers[0]: name} for name in slow)]


def _sorted(names: Collection[str]) -> tuple[list[str], list[str], list[str]]:
    kept = [name for name in TRIED if name in names]
    apart = (*EVERYWHERE, *SLOW)
    told, slow = ([name for name in kept if name in these] for these in (EVERYWHERE, SLOW))
    return [name for name in kept if name not in apart], told, slow


def checks(addresses: dict[str, str]) -> list[dict[str, Any]]:
    """Of every host, beside the check `cni`, which the role makes. `addresses`: of the hosts, by name."""
    control, *_ = addresses.values()
    return [
        {"name": "filesystem", "filesystem": {"mounts": [f"/host{DISK}"], "minFreeInodes": 20}, "timeoutSeconds": 2},
        {"name": "runtime", "runtime": {"socket": "/host/run/containerd/containerd.sock"}},
        {
            "name": "addresses",
            "podAddresses": {"confDir": "/host/etc/cni/net.d", "dataDir": "/host/var/lib/cni/networks"},
        },
        {"name": "dns", "dns": {"nodeLocal": SERVER, "service": DNS, "servers": [control]}},
        {
            "name": "service-path",
            "servicePath": {
                "service": API,
                "apiServers": [control],
                "peers": list(addresses.values()),
                "proxy": "127.0.0.1",
            },
        },
        {
            "name": "plugins",
            "kubeletPlugins": {"folder": "/host/var/lib/kubelet/plugins_registry", "expected": [PLUGIN]},
        },
        {"name": "conntrack", "connectionTables": {"proc": f"/host{PROC}"}},
        # One line is enough, and the kernel wakes the check.
        {
            "name": "kernel",
            "kernelLog": {"programs": True, "gate": ["filesystemShutdown"], "gatePaths": [DISK]},
            "failureThreshold": 1,
        },
        {"name": "gpu-xid", "kernelLog": {"programs": True, "gate": ["gpuXid"], "warn": []}, "failureThreshold": 1},
        {
            "name": "own-line",
            "kernelLog": {
                "programs": True,
                "gate": ["nfsNotResponding"],
                "warn": [],
                "patterns": yaml.safe_load(FAULTS["own-line"].settings)["patterns"],
            },
            "failureThreshold": 1,
        },
        {"name": "unit", "systemdUnit": {"units": [UNIT], "socket": BUS, "maxRestarts": 3, "restartSeconds": 10}},
        {"name": "pressure", "pressure": {"look": ["podThreads"], "cgroup": "/host/sys/fs/cgroup"}},
        {"name": "threads", "pressure": {"look": ["threads"], "proc": f"/host{PROC}"}},
        {"name": "files", "pressure": {"look": ["files"], "proc": f"/host{PROC}"}},
        {"name": "stalls", "pressure": {"look": ["io"], "proc": f"/host{STALLS}", "ioFailPercent": 20}},
        {"name": "syncs", "pressure": {"look": ["cpu"], "folder": f"/host{SLOW_DISK}"}, "timeoutSeconds": 2},
        {"name": "time", "timeSync": {"unsynchronized": "fail"}},
        {
            "name": "certificates",
            "certificates": {"files": ["kubelet-client-current.pem", "readygate-fault.pem"]},
        },
        {"name": "gpu", "gpu": {"sysfs": "/host/run/readygate-fault/sys", "driverList": None, "expected": 2}},
    ]
