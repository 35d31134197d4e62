"""Which hosts a cluster of ring 3 has, and what each is in it."""

from dataclasses import dataclass

from tests.testbed.hosts.network import HOSTS, Network, Peer


@dataclass(frozen=True)
class Layout:
    """One set of hosts.

    controls: the first makes the cluster, the others join it with etcd and API server of their own. spare: booted, and
    in no cluster until a test joins them.
    """

    network: Network
    controls: tuple[Peer, ...]
    workers: tuple[Peer, ...] = ()
    spare: tuple[Peer, ...] = ()

    @property
    def first(self) -> Peer:
        return self.controls[0]

    @property
    def joined(self) -> list[Peer]:
        return [*self.controls, *self.workers]

    @property
    def peers(self) -> list[Peer]:
        return [*self.joined, *self.spare]


ONE_CONTROL = Layout(HOSTS, controls=(Peer("control-1", 11),), workers=(Peer("worker-1", 21), Peer("worker-2", 22)))

_HA = Network("ha", "10.98.0", "10.245")
# Two control planes and a third that joins when a test says so: with readygate in the cluster already.
THREE_CONTROLS = Layout(
    _HA,
    controls=(Peer("control-1", 11, _HA), Peer("control-2", 12, _HA)),
    spare=(Peer("control-3", 13, _HA),),
)
