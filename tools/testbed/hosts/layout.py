"""Which hosts a cluster of ring 3 has, and what each is in it."""

import os
from dataclasses import dataclass

from tools.testbed.hosts.errors import HostsError
from tools.testbed.hosts.network import HOSTS, Network, Peer

# Names the set of hosts that a process of the testbed is about, where it is not the first one.
SET_VARIABLE = "READYGATE_HOSTS_SET"


@dataclass(frozen=True)
class Layout:
    """One set of hosts.

    controls: the first makes the cluster, the others join it with etcd and API server of their own. spare: booted, and
    in no cluster until a test joins them. from_snapshot: `kubeadm` has run in an earlier start, and the hosts begin
    with the files it left (snapshot.py); without it each start runs `kubeadm init` and `join`.
    """

    network: Network
    controls: tuple[Peer, ...]
    workers: tuple[Peer, ...] = ()
    spare: tuple[Peer, ...] = ()
    from_snapshot: bool = False

    @property
    def first(self) -> Peer:
        return self.controls[0]

    @property
    def joined(self) -> list[Peer]:
        return [*self.controls, *self.workers]

    @property
    def peers(self) -> list[Peer]:
        return [*self.joined, *self.spare]


def _one_control(network: Network) -> Layout:
    workers = (Peer("worker-1", 21, network), Peer("worker-2", 22, network))
    return Layout(network, controls=(Peer("control-1", 11, network),), workers=workers, from_snapshot=True)


ONE_CONTROL = _one_control(HOSTS)
# The same once more, for tests that run beside those on the first.
SECOND = _one_control(Network("second", "10.97.0.0/24", HOSTS.pods))

_HA = Network("ha", "10.98.0.0/24", "10.245.0.0/16")
# Two control planes and a third that joins when a test says so: with readygate in the cluster already.
THREE_CONTROLS = Layout(
    _HA,
    controls=(Peer("control-1", 11, _HA), Peer("control-2", 12, _HA)),
    spare=(Peer("control-3", 13, _HA),),
)
_IPV6 = Network("ipv6", "fd00:10:99::/64", "fd00:10:244::/56", services="fd00:10:96::/112")
# Where nothing has an address of IPv4 but each host's loopback.
IPV6 = Layout(_IPV6, controls=(Peer("control-1", 11, _IPV6),), workers=(Peer("worker-1", 21, _IPV6),))
_FIVE = Network("five", "10.95.0.0/24", "10.246.0.0/16")
# So many that a node has three peers and one more, and that two of them can be cut off together.
FIVE = Layout(
    _FIVE,
    controls=(Peer("control-1", 11, _FIVE),),
    workers=tuple(Peer(f"worker-{number}", 20 + number, _FIVE) for number in range(1, 5)),
)
LAYOUTS = (ONE_CONTROL, SECOND, THREE_CONTROLS, IPV6, FIVE)
_WITH_WORKERS = {layout.network.name: layout for layout in (ONE_CONTROL, SECOND)}


def chosen() -> Layout:
    """Of one control plane, the set that the environment names. Raises HostsError for one that is not known."""
    name = os.environ.get(SET_VARIABLE) or HOSTS.name
    if name not in _WITH_WORKERS:
        raise HostsError(f"{SET_VARIABLE}={name} is not known: {' or '.join(_WITH_WORKERS)}")
    return _WITH_WORKERS[name]
