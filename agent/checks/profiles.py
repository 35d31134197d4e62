"""Ready-made lists of checks, chosen by one word. Pure.

    minimal   what needs no right but to look at the CNI's folders
    default   what tells a broken node from a good one on any machine
    gpu       default, and its accelerators
    storage   default, and a disk on which everybody waits closes its node too

None of them closes a node for what it lacks: a runtime is looked for at the sockets of several, a source that a kernel
does not have is left out, and what a healthy node may be without (a synchronised clock, addresses of host-local, the
kubelet's own certificates) only warns. In a pod a profile leaves out what takes the host's network, its devices, or
the kubelet's keys. Checks that need addresses of the cluster (dns, servicePath) are in none.
"""

from collections.abc import Mapping, Sequence
from typing import Any

Document = dict[str, Any]

_ALWAYS = ("cni", "pressure", "time")
_DEFAULT = (*_ALWAYS, "runtime", "filesystem", "pod-addresses", "certificates", "connection-tables", "kernel-log")
PROFILES: Mapping[str, tuple[str, ...]] = {
    "minimal": _ALWAYS,
    "default": _DEFAULT,
    "gpu": (*_DEFAULT, "gpu"),
    "storage": _DEFAULT,
}
SOCKETS = ("/run/containerd/containerd.sock", "/run/crio/crio.sock", "/run/k3s/containerd/containerd.sock")
_ON_THE_NODE = ("certificates", "connection-tables", "kernel-log")
_IN_A_POD = ["io", "memory", "cpu", "threads", "files"]  # not podThreads: those are in the host's control groups


def checks_of(profile: str, mode: str, host_root: str) -> list[Document]:
    """As in the configuration file. `mode`: pod or node. `host_root`: where the agent sees the host's files."""
    entries = _entries(mode, host_root.rstrip("/"), storage=profile == "storage")
    names = [name for name in PROFILES[profile] if mode == "node" or name not in _ON_THE_NODE]
    return [{"name": name, **entries[name]} for name in names]


def joined(
    own: Sequence[Document], ready_made: Sequence[Document], leave_out: Sequence[str], kinds: Sequence[str]
) -> list[Document]:
    """The own checks, each with what it does not say itself from the ready-made one of its name, then the others. A
    kind that is given takes the place of the ready-made one as a whole."""
    known = {check["name"]: check for check in ready_made if check["name"] not in leave_out}
    found = []
    for check in own:
        base = known.pop(str(check.get("name")), {})
        is_own = any(kind in check for kind in kinds)
        found.append({**{key: value for key, value in base.items() if not (is_own and key in kinds)}, **check})
    return [*found, *known.values()]


def _entries(mode: str, root: str, *, storage: bool) -> dict[str, Document]:
    folder = f"{root}/var/lib/kubelet" + ("" if mode == "node" else "/readygate")
    pressure: Document = {} if mode == "node" else {"look": _IN_A_POD}
    return {
        "cni": {"cni": {"confDir": f"{root}/etc/cni/net.d", "binDirs": [f"{root}/opt/cni/bin"], "runtime": "auto"}},
        "pressure": {
            "pressure": {**pressure, **({"folder": folder} if storage else {})},
            "severity": "gate" if storage else "warn",
        },
        "time": {"timeSync": {}, "severity": "warn"},
        "runtime": {"runtime": {"socket": [f"{root}{socket}" for socket in SOCKETS]}},
        "filesystem": {"filesystem": {"mounts": [folder]}},
        "pod-addresses": {
            "podAddresses": {"confDir": f"{root}/etc/cni/net.d", "dataDir": f"{root}/var/lib/cni/networks"},
            "severity": "warn",
        },
        "certificates": {"certificates": {"folder": f"{root}/var/lib/kubelet/pki"}, "severity": "warn"},
        "connection-tables": {"connectionTables": {}},
        "kernel-log": {"kernelLog": {}},
        "gpu": {"gpu": {}},
    }
