"""What is tried: faults of tests/faults, and the checks of the service that watch for them, as one configuration."""

from typing import Any

from tests.faults.fault import Fault
from tests.faults.filesystem import DISK
from tests.faults.network import API, DNS
from tests.faults.registry import FAULTS
from tests.faults.tables import PROC

EVENT = "kernelLog"  # the check that the kernel wakes
KUBELET = "kubelet"  # not a kind of check: the opinion of mode `node`
# The twelve of the comparison, and variants of them. A soft lockup is left out: it is over after five minutes.
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
    "service-path",
    "conntrack-drops",
    "log-shutdown",
    "pod-threads",
    "certificate-ended",
    "gpu-missing",
)
# Found by silence, which takes its time.
KUBELET_HANGS = Fault(
    "kubelet-hangs",
    KUBELET,
    "the kubelet stands still (SIGSTOP): mode `node` sees its silence",
    ("systemctl kill --kill-whom=main --signal=STOP kubelet",),
    ("systemctl kill --kill-whom=main --signal=CONT kubelet",),
)
SLOW = (KUBELET_HANGS.name,)
EVERYWHERE = ("log-shutdown",)  # the hosts of the testbed have one kernel, so one log
TRIED = {**{name: FAULTS[name] for name in NAMES}, KUBELET_HANGS.name: KUBELET_HANGS}
PROFILES = {"fast": (2, 2), "default": (10, 3)}  # periodSeconds, failureThreshold: as in the role readygate_node


def checks(addresses: dict[str, str]) -> list[dict[str, Any]]:
    """Of every host, beside the check `cni`, which the role makes. `addresses`: of the hosts, by name."""
    control, *_ = addresses.values()
    return [
        {"name": "filesystem", "filesystem": {"mounts": [f"/host{DISK}"]}, "timeoutSeconds": 2},
        {"name": "runtime", "runtime": {"socket": "/host/run/containerd/containerd.sock"}},
        {
            "name": "addresses",
            "podAddresses": {"confDir": "/host/etc/cni/net.d", "dataDir": "/host/var/lib/cni/networks"},
        },
        {"name": "dns", "dns": {"service": DNS, "servers": [control]}},
        {
            "name": "service-path",
            "servicePath": {
                "service": API,
                "apiServers": [control],
                "peers": list(addresses.values()),
                "proxy": "127.0.0.1",
            },
        },
        {"name": "conntrack", "connectionTables": {"tables": ["conntrack"], "proc": f"/host{PROC}"}},
        # One line is enough, and the kernel wakes the check.
        {
            "name": "kernel",
            "kernelLog": {"programs": True, "gate": ["filesystemShutdown"], "gatePaths": [DISK]},
            "failureThreshold": 1,
        },
        {"name": "pressure", "pressure": {"look": ["podThreads"], "cgroup": "/host/sys/fs/cgroup"}},
        {
            "name": "certificates",
            "certificates": {"files": ["kubelet-client-current.pem", "readygate-fault.pem"]},
        },
        {"name": "gpu", "gpu": {"sysfs": "/host/run/readygate-fault/sys", "driverList": None, "expected": 2}},
    ]
