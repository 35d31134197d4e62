"""Ready-made lists of checks, chosen by one word. Pure.

    minimal   what needs no right but to look at the CNI's folders
    default   what tells a broken node from a good one on any machine; the default of chart and roles
    gpu       default, and its accelerators
    storage   default, and a disk on which everybody waits closes its node too

None of them closes a node for what it lacks: a runtime is looked for at the sockets of several, a source that a kernel
does not have is left out, and what a healthy node may be without (a synchronised clock, addresses of host-local, the
kubelet's own certificates) only warns. In a pod a profile leaves out what takes the host's network, its devices, or
the kubelet's keys. On the host it leaves out what a pod examines in its own network, and by its own DNS: the health pod
on that node does so, its readiness has the result, and to enter its network would take CAP_SYS_ADMIN.

A check that joins a list after the first release only warns, on every installation, until the settings name it with
`severity: gate`: so no upgrade makes a list close nodes for something new.
"""

from collections.abc import Mapping, Sequence
from typing import Any

Document = dict[str, Any]

_ALWAYS = ("cni", "pressure", "time")
_DEFAULT = (
    *_ALWAYS,
    "runtime",
    "filesystem",
    "pod-network",
    "dns",
    "pod-addresses",
    "certificates",
    "connection-tables",
    "kernel-log",
)
PROFILES: Mapping[str, tuple[str, ...]] = {
    "minimal": _ALWAYS,
    "default": _DEFAULT,
    "gpu": (*_DEFAULT, "gpu"),
    "storage": _DEFAULT,
}
# The checks of the first release that may close a node. No name is ever added: see above.
MAY_CLOSE = frozenset(
    {
        *("cni", "runtime", "filesystem", "pod-network", "connection-tables", "kernel-log", "gpu"),
        "pressure",  # in the list `storage`
    }
)
SOCKETS = ("/run/containerd/containerd.sock", "/run/crio/crio.sock", "/run/k3s/containerd/containerd.sock")
_NOT_IN = {
    "pod": ("certificates", "connection-tables", "kernel-log"),
    "node": ("pod-network", "dns"),
}
_IN_A_POD = ["io", "memory", "cpu", "threads", "files"]  # not podThreads: those are in the host's control groups


def checks_of(profile: str, mode: str, host_root: str) -> list[Document]:
    """As in the configuration file. `mode`: pod or node. `host_root`: where the agent sees the host's files."""
    entries = _entries(mode, host_root.rstrip("/"), storage=profile == "storage")
    return [{"name": name, **cautious(name, entries[name])} for name in PROFILES[profile] if name not in _NOT_IN[mode]]


def cautious(name: str, check: Document) -> Document:
    """The check of a list, which only warns where it is not known to be of the first release."""
    return check if name in MAY_CLOSE else {**check, "severity": "warn"}


def not_run(profile: str, mode: str) -> list[str]:
    """Names of the checks of a list that an agent of this mode cannot run."""
    return [name for name in PROFILES.get(profile, ()) if name in _NOT_IN[mode]]


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
        "pod-network": {"podNetwork": {}},
        "dns": {"dns": {"service": "auto"}, "severity": "warn"},
        "pod-addresses": {
            "podAddresses": {"confDir": f"{root}/etc/cni/net.d", "dataDir": f"{root}/var/lib/cni/networks"},
            "severity": "warn",
        },
        "certificates": {"certificates": {"folder": f"{root}/var/lib/kubelet/pki"}, "severity": "warn"},
        "connection-tables": {"connectionTables": {"optional": True}},
        "kernel-log": {"kernelLog": {}},
        "gpu": {"gpu": {}},
    }
