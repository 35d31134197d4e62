"""What a CNI plugin runs besides itself, by its configuration: its IPAM plugin, and networks it delegates to. Pure.

Mirrors what the plugins do (containernetworking/plugins pkg/ipam, flannel-io/cni-plugin flannel_linux.go, multus-cni
pkg/types/conf.go and pkg/k8sclient). Most plugins run the binary that `ipam.type` names, as the CNI specification has
it. Some do not: Antrea's agent brings its own, and `azure-cns` is a service. Of a plugin that is in neither list
it is not known.

A child process runs this for each look, see `networks`.
"""

from __future__ import annotations

from agent.checks.go_json import Object, anything, as_marshalled, list_of, map_of, struct, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FLANNEL = "flannel"
MULTUS, MULTUS_THICK = "multus", "multus-shim"  # the second one's daemon may be configured otherwise
BIN_DIR = "/opt/cni/bin"  # multus' own default, and each runtime's
_NEED_IPAM = ("dummy", "ptp", "vlan")
_RUN_IPAM = frozenset(
    (
        *_NEED_IPAM,
        *("bridge", "host-device", "ipvlan", "macvlan", "tap"),
        *("bond", "ib-sriov", "ipoib", "ovs", "sriov"),
        *("azure-vnet", "calico", "egress-cni", "weave-net"),
    )
)
_HAVE_OWN_IPAM = frozenset(("antrea",))
_NO_BINARIES = frozenset(("azure-cns",))
_UNLESS = {"azure-vnet": ("multitenancy", True), "egress-cni": ("enabled", "false")}

_IPAM = struct({"ipam": struct({"type": text}), "multitenancy": anything, "enabled": anything})
_FLANNEL = struct({"ipam": map_of(anything), "delegate": map_of(anything)})
_MULTUS = struct(
    {
        "bindir": text,
        "clusternetwork": text,
        "defaultnetworks": list_of(text),
        "delegates": list_of(map_of(anything)),
        "auxiliarycnichainname": text,
    }
)


class WrongError(Exception):
    """Why the plugin refuses each pod."""


class Followed:
    """`ipam`: the binary of its IPAM plugin, empty for none; `runs_ipam` False: whether it is run is not known.
    `delegates`: networks that stand in its configuration. `names`: of networks that stand elsewhere, or their paths.
    `chain`: of the folder, beside the first of `names`, whose plugins are run too. `folder`: where it looks for
    binaries first. `is_known` False: another program may know of more."""

    __slots__ = ("chain", "delegates", "folder", "ipam", "is_known", "names", "runs_ipam")

    def __init__(self, ipam: str = "", *, runs_ipam: bool = True, delegates: tuple[Any, ...] = ()) -> None:
        self.ipam = ipam
        self.runs_ipam = runs_ipam
        self.delegates = delegates
        self.names: tuple[str, ...] = ()
        self.chain = self.folder = ""
        self.is_known = True


def followed(kind: str, plugin: Object) -> Followed:
    """`kind`: the type of the plugin. Raises WrongError."""
    try:
        if kind == FLANNEL:
            return _flannel(plugin)
        if kind in (MULTUS, MULTUS_THICK):
            return _multus(kind, plugin)
        return _other(kind, plugin)
    except TypeError as e:
        raise WrongError(str(e)) from e


def _other(kind: str, plugin: Object) -> Followed:
    fields = _IPAM(None, plugin, as_marshalled)
    ipam = (fields.get("ipam") or {}).get("type", "")
    key, off = _UNLESS.get(kind, ("", None))
    if not ipam and kind in _NEED_IPAM:
        raise WrongError("names no IPAM plugin")
    if kind in _HAVE_OWN_IPAM or ipam in _NO_BINARIES or (key and fields.get(key) == off):
        return Followed()
    return Followed(ipam, runs_ipam=kind in _RUN_IPAM)


def _flannel(plugin: Object) -> Followed:
    """It calls `bridge` with `host-local`, unless its configuration names others."""
    fields = _FLANNEL(None, plugin, as_marshalled)
    delegate, ipam = fields.get("delegate") or {}, fields.get("ipam") or {}
    for key in ("name", "ipam"):
        if key in delegate:
            raise WrongError(f"delegate must not have {key}")
    if not isinstance(delegate.get("type", ""), str):
        raise WrongError("delegate: type is no text")
    filled = Object()
    for key, value in {"type": "bridge", **delegate, "ipam": _object({"type": "host-local", **ipam})}.items():
        filled.add(key, value)
    return Followed(delegates=(filled,))


def _multus(kind: str, plugin: Object) -> Followed:
    fields = _MULTUS(None, plugin, as_marshalled)
    cluster, delegates = fields.get("clusternetwork", ""), fields.get("delegates") or ()
    found = Followed(delegates=() if cluster else tuple(_object(one or {}) for one in delegates))
    found.folder = fields.get("bindir", BIN_DIR)
    if cluster:  # then delegates are not looked at
        found.names = (cluster, *(name or "" for name in fields.get("defaultnetworks") or ()))
        found.chain = fields.get("auxiliarycnichainname", "")
    elif not delegates and kind == MULTUS:
        raise WrongError("neither delegates nor clusterNetwork is set")
    found.is_known = bool(cluster or delegates)
    return found


def _object(fields: dict[str, Any]) -> Object:
    made = Object()
    for key, value in fields.items():
        made.add(key, value)
    return made
