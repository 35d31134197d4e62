"""The check `podAddresses`: are there addresses left for new pods?

For networks whose addresses `host-local` gives out (bridge, kubenet, flannel, k3s): the ranges stand in the network's
configuration, and each address in use is a file in `/var/lib/cni/networks/NAME`, named by it, with the sandbox in it.
A pod takes one address of each set of ranges, so an IPv4 and an IPv6 one in a dual stack: the set with the fewest
left counts. It warns from `warnPercent` in use on and fails where fewer than `minFree` are left.

Addresses leak where a node lost its power, or a runtime its records, before the plugin could take them back; such
files stay for ever, and count as in use: host-local does not give them out again.

`ranges` and `network` are for plugins that make their configuration only when they are called, as flannel's: the
node's pod network, and `cbr0`. Addresses of other IPAM plugins cannot be counted here: then the check warns, once and
for all, and their own metrics have to be watched. Pods with `hostNetwork` take no address.

The way back is the next run that finds more free.
"""

import ipaddress
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from agent.checks.networks import BrokenError, Network, network_of_containerd
from agent.checks.rights import Rights
from agent.checks.state import CheckState, Finding
from agent.keys import NonEmpty
from component.settings import Section

DOC = "enough addresses are free for new pods, where `host-local` gives them out"
RIGHTS = Rights(reads=("confDir", "dataDir"), root=True)
HOST_LOCAL = "host-local"
DATA_DIR = "/var/lib/cni/networks"
OWNER_LIMIT_BYTES = 256

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_Percent = Annotated[int, Meta(ge=1, le=100, description="a percentage, 1 to 100")]
_Count = Annotated[int, Meta(ge=0, le=2**31 - 1, description="a whole number, 0 or more")]


class Settings(Section, frozen=True):
    """Folders, as the agent sees them. `network` None: the configuration's own. `ranges`: one network a set."""

    conf_dir: NonEmpty = "/etc/cni/net.d"
    data_dir: NonEmpty = DATA_DIR
    network: NonEmpty | None = None
    ranges: tuple[NonEmpty, ...] = ()
    warn_percent: _Percent = 80
    min_free: _Count = 2


@dataclass(frozen=True, slots=True)
class Range:
    """From `first` to `last`, both included; `gateway` is never given out."""

    first: Address
    last: Address
    gateway: Address | None = None

    def __contains__(self, address: Address) -> bool:
        same = address.version == self.first.version
        return same and int(self.first) <= int(address) <= int(self.last) and address != self.gateway

    @property
    def size(self) -> int:
        whole = int(self.last) - int(self.first) + 1
        inside = self.gateway is not None and int(self.first) <= int(self.gateway) <= int(self.last)
        return whole - inside


class _UncountableError(Exception):
    """Who gives out the addresses instead."""


class Check:
    def __init__(self, settings: Settings, _timeout_s: float) -> None:
        self._settings = settings

    def __call__(self) -> Finding:
        """PASSED, WARNED, FAILED, or UNKNOWN where the files could not be looked at."""
        settings = self._settings
        try:
            network = None if settings.ranges and settings.network else network_of_containerd(Path(settings.conf_dir))
            sets = [[range_of({"subnet": text})] for text in settings.ranges] or _ranges_in(network)
            name = settings.network or (network.name if network else "")
            owners = read_owners(Path(_data_dir(network, settings), name))
        except _UncountableError as e:
            return Finding(CheckState.WARNED, f"the addresses of {e} cannot be counted here")
        except BrokenError as e:
            return Finding(CheckState.UNKNOWN, str(e))
        except OSError as e:
            return Finding(CheckState.UNKNOWN, f"cannot look at {e.filename}: {e.strerror}")
        return judged(name, sets, owners, settings)


def judged(network: str, sets: Sequence[Sequence[Range]], owners: Mapping[Address, str], settings: Settings) -> Finding:
    """`owners`: by address in use, the sandbox that has it. The set with the smallest part left speaks."""
    found = []
    for ranges in sets:
        size = sum(one.size for one in ranges)
        used = sum(any(address in one for one in ranges) for address in owners)
        found.append((size - used, used, size))
    if not found:
        return Finding(CheckState.UNKNOWN, f"network {network} has no ranges")
    free, used, size = min(found, key=lambda one: (one[0] >= settings.min_free, one[0] / max(1, one[2])))
    said = f"network {network}: {used} of {size} addresses in use"
    if free < settings.min_free:
        return Finding(CheckState.FAILED, f"{said}, {max(0, free)} left")
    if used * 100 >= settings.warn_percent * size:
        return Finding(CheckState.WARNED, f"{said}, {free} left")
    return Finding(CheckState.PASSED, said)


def read_owners(folder: Path) -> dict[Address, str]:
    """By address in use: the sandbox that host-local gave it to, as far as that can be read. A folder that is not there
    is one of a node that has given out none. Raises OSError."""
    owners: dict[Address, str] = {}
    try:
        names = os.listdir(folder)  # noqa: PTH208 - names alone, of thousands
    except FileNotFoundError:
        return owners
    for name in names:
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            continue  # host-local's own: lock, last_reserved_ip.0
        owners[address] = ""
    return owners


def range_of(given: Mapping[str, Any]) -> Range:
    """As host-local completes a range: without the network's own address, and IPv4's broadcast; the first address is
    the gateway's unless another is named. Raises BrokenError."""
    try:
        subnet = ipaddress.ip_network(given["subnet"], strict=False)
        first, last = int(subnet.network_address) + 1, int(subnet.broadcast_address) - (subnet.version == 4)
        address = ipaddress.IPv4Address if subnet.version == 4 else ipaddress.IPv6Address
        found = Range(
            address(given.get("rangeStart") or first),
            address(given.get("rangeEnd") or last),
            address(given.get("gateway") or int(subnet.network_address) + 1),
        )
    except (KeyError, TypeError, ValueError) as e:
        raise BrokenError(f"a range does not parse: {e}") from e
    if found.size < 1:
        raise BrokenError(f"the range {given['subnet']} has no addresses")
    return found


def _ranges_in(network: Network | None) -> list[list[Range]]:
    """The sets of a network. Raises BrokenError, _UncountableError."""
    ipam = _ipam(network)
    if ipam.get("type") != HOST_LOCAL:
        raise _UncountableError(str(ipam.get("type") or ", ".join(network.types if network else ()))[:64])
    sets = ipam.get("ranges") or []
    if "subnet" in ipam:  # of old: one range, beside the key that names many
        sets = [[ipam], *sets]
    if not isinstance(sets, list) or not all(isinstance(ranges, list) for ranges in sets):
        raise BrokenError("the ranges are no list of lists")
    return [[range_of(one) for one in ranges] for ranges in sets]


def _ipam(network: Network | None) -> Mapping[str, Any]:
    for plugin in network.plugins if network else ():
        if isinstance(ipam := plugin.get("ipam"), dict) and ipam:
            return ipam
    return {}


def _data_dir(network: Network | None, settings: Settings) -> str:
    """What the settings say, else what the configuration does."""
    own = _ipam(network).get("dataDir")
    return own if settings.data_dir == DATA_DIR and isinstance(own, str) and own else settings.data_dir
