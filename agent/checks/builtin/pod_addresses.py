"""The check `podAddresses`: are there addresses left for new pods?

For networks whose addresses `host-local` gives out (bridge, kubenet, flannel, k3s): the ranges stand in the network's
configuration, and each address in use is a file in `/var/lib/cni/networks/NAME`, named by it, with the sandbox in it.
A pod takes one address of each set of ranges, so an IPv4 and an IPv6 one in a dual stack: the set with the fewest
left counts. It warns from `warnPercent` in use on and fails where fewer than `minFree` are left.

Addresses leak where a node lost its power, or a runtime its records, before the plugin could take them back; such
files stay for ever, and count as in use: host-local does not give them out again. With `socket` the runtime is asked
which sandboxes there are. An address whose file is two minutes old, and whose sandbox the runtime does not know, has
leaked: the check warns, and names the first few with the sandbox that each was given to. Those files may be removed. A
runtime that does not answer costs that comparison and nothing else: the check `runtime` says so.

`ranges` and `network` are for plugins that make their configuration only when they are called, as flannel's (the
node's pod network, and `cbr0`), Antrea's (which has its files below `/var/run/antrea`: `dataDir`) and Calico's with
`usePodCidr`: without them the check warns. Where Multus is the runtime's network, the network counts that it delegates
pods to. Addresses of other IPAM plugins cannot be counted here: the check is then not applicable, which is neither a
success nor a failure, and their own metrics have to be watched. It does not read those of Calico or Cilium: each has
its own, which change with its versions, and that a pool of the whole cluster is used up is the fault of no node.

Pods with `hostNetwork` take no address, and are held back with the others where the check gates: a gate has no word
for them, as nearly all are of DaemonSets or in `kube-system`, and so pass every gate anyway.

The way back is the next run that finds more free.
"""

import ipaddress
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from agent.checks.executables import pod_network
from agent.checks.file_contents import names_and_owners_in, owners_in
from agent.checks.networks import BrokenError
from agent.checks.rights import Rights
from agent.checks.state import CheckState, Finding
from agent.checks.subprocess_reader import Elsewhere, NoAnswerError, Patience
from agent.cri.base import CriError, Reader
from agent.processes.command import RuntimeUnavailable
from agent.wire.setting_types import NonEmpty
from component.settings import Section

DOC = "enough addresses are free for new pods, where `host-local` gives them out"
RIGHTS = Rights(reads=("confDir", "dataDir", "socket"), root=True)
TIMEOUT_S = 5  # a second is short for child processes under load
CALLS = 2  # that, and the calls of the runtime
HOST_LOCAL = "host-local"
FLANNEL, ANTREA = "flannel", "antrea"  # call host-local, with ranges that are not in the configuration
FILLED_IN = ("usePodCidr", "usePodCidrIPv6")  # by Calico, when it calls the plugin
DATA_DIR = "/var/lib/cni/networks"
OWNERS_LIMIT = 4096  # addresses in use, with host-local's own files, of which the owners are read
LEAKED_AFTER_S = 120.0  # an address is given out before the runtime tells of its sandbox
NAMED = 3  # leaked addresses
ID_LENGTH = 13  # of a sandbox, as crictl shows it
PART_OF_TIMEOUT = 0.4  # for each of the two calls of a list

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network = Mapping[str, Any]  # as the child process gives it
Owners = Iterable[tuple[str, float, str]]  # name of a file, when it was written, who has the address
_Percent = Annotated[int, Meta(ge=1, le=100, description="a percentage, 1 to 100")]
_Count = Annotated[int, Meta(ge=0, le=2**31 - 1, description="a whole number, 0 or more")]


class Settings(Section, frozen=True):
    """Folders, as the agent sees them. `network` None: the configuration's own. `ranges`: one network a set.
    `socket` None: the runtime is not asked for leaks."""

    conf_dir: NonEmpty = "/etc/cni/net.d"
    data_dir: NonEmpty = DATA_DIR
    network: NonEmpty | None = None
    ranges: tuple[NonEmpty, ...] = ()
    warn_percent: _Percent = 80
    min_free: _Count = 2
    socket: NonEmpty | None = None


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


@dataclass(frozen=True, slots=True)
class Leaks:
    """`owners`: by leaked address, its sandbox. `unseen`: one line where they could not be looked for."""

    owners: Mapping[Address, str] = field(default_factory=dict)
    unseen: str = ""

    def __str__(self) -> str:
        if not self.owners:
            return f"; not compared with the runtime's sandboxes: {self.unseen}" if self.unseen else ""
        named = [f"{address} of {owner[:ID_LENGTH]}" for address, owner in list(self.owners.items())[:NAMED]]
        more = len(self.owners) - len(named)
        return f"; {len(self.owners)} leaked: {', '.join(named)}" + (f" and {more} more" if more else "")


class _UncountableError(Exception):
    """Who gives out the addresses instead. `settings_help`: with `ranges` they can be counted."""

    def __init__(self, who: str, *, settings_help: bool) -> None:
        super().__init__(who)
        self.settings_help = settings_help


class Check:
    def __init__(
        self,
        settings: Settings,
        timeout_s: float,
        connect: Callable[[str, float], Reader] | None = None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._settings = settings
        self._timeout_s = timeout_s
        self._deadline_s = PART_OF_TIMEOUT * timeout_s
        self._configuration = Elsewhere(pod_network, settings.conf_dir, where=settings.conf_dir)
        self._folder = ""  # of the two below
        self._both: Elsewhere | None = None
        self._owners: Elsewhere | None = None
        self._connect = connect or _connected
        self._wall = wall
        self._reader: Reader | None = None

    def __call__(self) -> Finding:
        """PASSED, WARNED, FAILED, HUNG, NOT_APPLICABLE, or UNKNOWN where the files could not be looked at."""
        settings = self._settings
        patience = Patience(self._timeout_s)
        try:
            given = settings.ranges and settings.network
            network = None if given else _network_from(self._configuration(patience.left_s()))
            sets = [[range_of({"subnet": text})] for text in settings.ranges] or _ranges_in(network)
            name = settings.network or (network["name"] if network else "")
            both, owners = self._looks(str(Path(_data_dir(network, settings), name)))
            names, owned_by = both(patience.left_s())
            used = addresses_of(names)
            leaks = self._leaks(owned_by, owners, patience)
        except _UncountableError as e:
            state = CheckState.WARNED if e.settings_help else CheckState.NOT_APPLICABLE
            return Finding(state, f"the addresses of {e} cannot be counted here")
        except BrokenError as e:
            return Finding(CheckState.UNKNOWN, str(e))
        except OSError as e:
            return Finding(CheckState.UNKNOWN, f"cannot look at {e.filename}: {e.strerror}")
        except NoAnswerError as e:
            return e.finding
        return judged(name, sets, used, settings, leaks)

    def _looks(self, folder: str) -> tuple[Elsewhere, Elsewhere]:
        """At the names in the folder and who owns them, and again at who owns them."""
        if self._both is None or self._owners is None or folder != self._folder:
            self._folder = folder
            at_most = 0 if self._settings.socket is None else OWNERS_LIMIT
            self._both = Elsewhere(names_and_owners_in, folder, at_most, where=folder)
            self._owners = Elsewhere(owners_in, folder, where=folder)
        return self._both, self._owners

    def _leaks(self, found: Owners | None, owners: Elsewhere, patience: Patience) -> Leaks:
        """The files before the list, and again after it: whoever goes meanwhile gives back its address first."""
        if self._settings.socket is None:
            return Leaks()
        if found is None:
            return Leaks(unseen=f"more than {OWNERS_LIMIT}")
        before = self._wall() - LEAKED_AFTER_S
        old = owned(found, before)
        try:
            reader = self._reader or self._connect(self._settings.socket, self._deadline_s)
            self._reader = reader
            pods = reader.list_pods()
        except (CriError, RuntimeUnavailable) as e:
            return Leaks(unseen=str(e))
        known = {sandbox.id.rpartition("/")[2] for pod in pods for sandbox in pod.sandboxes}
        if not any(owner not in known for owner in old.values()):
            return Leaks()
        try:
            now = owned(owners(patience.left_s()), before)
        except NoAnswerError as e:  # the first look has come back, so it is the list that was slow
            return Leaks(unseen=e.finding.output)
        return Leaks(
            {
                address: owner
                for address, owner in sorted(old.items(), key=lambda pair: (pair[0].version, int(pair[0])))
                if owner not in known and now.get(address) == owner
            }
        )

    def close(self) -> None:
        """After the last run."""
        if self._reader is not None:
            self._reader.close()


def judged(
    network: str,
    sets: Sequence[Sequence[Range]],
    addresses: Sequence[Address],
    settings: Settings,
    leaks: Leaks = Leaks(),
) -> Finding:
    """`addresses`: those in use. The set with the smallest part left speaks."""
    found = []
    for ranges in sets:
        size = sum(one.size for one in ranges)
        used = sum(any(address in one for one in ranges) for address in addresses)
        found.append((size - used, used, size))
    if not found:
        return Finding(CheckState.UNKNOWN, f"network {network} has no ranges")
    free, used, size = min(found, key=lambda one: (one[0] >= settings.min_free, one[0] / max(1, one[2])))
    said = f"network {network}: {used} of {size} addresses in use"
    if free < settings.min_free:
        return Finding(CheckState.FAILED, f"{said}, {max(0, free)} left{leaks}")
    if used * 100 >= settings.warn_percent * size:
        return Finding(CheckState.WARNED, f"{said}, {free} left{leaks}")
    return Finding(CheckState.WARNED if leaks.owners else CheckState.PASSED, f"{said}{leaks}")


def addresses_of(names: Iterable[str]) -> list[Address]:
    """Those in use."""
    found: list[Address] = []
    for name in names:
        try:
            found.append(ipaddress.ip_address(name))
        except ValueError:
            continue  # host-local's own: lock, last_reserved_ip.0
    return found


def owned(files: Owners, before: float) -> dict[Address, str]:
    """By address that was given out before that time (wall): its sandbox."""
    old = {name: owner for name, changed, owner in files if owner and changed <= before}
    return {address: old[str(address)] for address in addresses_of(old) if str(address) in old}


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


def _network_from(said: _Network) -> _Network:
    """Raises BrokenError, _UncountableError."""
    if "broken" in said:
        raise BrokenError(said["broken"])
    if "unseen" in said:
        raise _UncountableError(f"a network that cannot be read here ({said['unseen']})", settings_help=False)
    return said


def _types(network: _Network | None) -> list[str]:
    return [plugin["type"] for plugin in network["plugins"]] if network else []


def _ranges_in(network: _Network | None) -> list[list[Range]]:
    """The sets of a network. Raises BrokenError, _UncountableError."""
    ipam = _ipam(network)
    if ipam.get("type") != HOST_LOCAL:
        types = _types(network)
        raise _UncountableError(str(ipam.get("type") or ", ".join(types))[:64], settings_help=FLANNEL in types)
    sets = ipam.get("ranges") or []
    if "subnet" in ipam:  # of old: one range, beside the key that names many
        sets = [[ipam], *sets]
    if not isinstance(sets, list) or not all(isinstance(ranges, list) for ranges in sets):
        raise BrokenError("the ranges are no list of lists")
    if not sets and ANTREA in _types(network):
        raise _UncountableError(ANTREA, settings_help=True)
    if any(isinstance(one, dict) and one.get("subnet") in FILLED_IN for ranges in sets for one in ranges):
        raise _UncountableError(f"{HOST_LOCAL} by usePodCidr, without `ranges` in the settings,", settings_help=True)
    return [[range_of(one) for one in ranges] for ranges in sets]


def _ipam(network: _Network | None) -> Mapping[str, Any]:
    for plugin in network["plugins"] if network else ():
        if isinstance(ipam := plugin.get("ipam"), dict) and ipam:
            return ipam
    return {}


def _data_dir(network: _Network | None, settings: Settings) -> str:
    """What the settings say, else what the configuration does."""
    own = _ipam(network).get("dataDir")
    return own if settings.data_dir == DATA_DIR and isinstance(own, str) and own else settings.data_dir


def _connected(socket: str, deadline_s: float) -> Reader:
    from agent.cri.connect import connect  # late: gRPC is large

    return connect(socket, deadline_s=deadline_s)
