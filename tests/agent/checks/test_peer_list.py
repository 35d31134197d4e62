"""The list of peers: read by pages until this node is found, then slice by slice, and kept in a file."""

from collections.abc import Callable, Sequence
from pathlib import Path

from agent.checks.peer_list import PAGE, PeerList, Source
from agent.kernel.clocks import Clocks
from agent.wire.endpoint_slice import Endpoint, EndpointConditions, EndpointSlice
from agent.wire.network_policy import NetworkPolicy
from kube.errors import CredentialsInvalid, Forbidden, NotFound, Unreachable
from kube.objects import BareMeta
from tools.kit.clock import Clock


def slice_of(number: int, count: int = 100, family: str = "IPv4") -> EndpointSlice:
    ends = [
        Endpoint((f"10.{number}.0.{place}" if family == "IPv4" else f"fd00::{number}:{place}",), node_name=node)
        for place, node in enumerate(f"node-{number}-{place}" for place in range(count))
    ]
    return EndpointSlice(BareMeta(name=f"agents-{family}-{number:02}"), family, tuple(ends))


class Cluster:
    """A Source: the slices, and each request that was made."""

    def __init__(self, *slices: EndpointSlice) -> None:
        self.slices = {one.metadata.name: one for one in slices}
        self.requests: list[str] = []
        self.error: Exception | None = None
        self.closed = False

    def page(self, more: str) -> tuple[Sequence[EndpointSlice], str]:
        self._asked(f"page {more}")
        names = sorted(self.slices)
        begin = int(more or 0)
        rest = str(begin + PAGE) if begin + PAGE < len(names) else ""
        return [self.slices[name] for name in names[begin : begin + PAGE]], rest

    def slice(self, name: str) -> EndpointSlice:
        self._asked(name)
        if name not in self.slices:
            raise NotFound(path=name)
        return self.slices[name]

    def policies(self) -> Sequence[NetworkPolicy]:
        self._asked("policies")
        return []

    def close(self) -> None:
        self.closed = True

    def _asked(self, what: str) -> None:
        self.requests.append(what)
        if self.error is not None:
            raise self.error

    def connect(self) -> Source:
        return self


def listed(
    cluster: Cluster,
    own: str,
    copy: Path | None = None,
    clock: Clock | None = None,
    connect: Callable[[], Source] | None = None,
) -> PeerList:
    return PeerList(
        connect or cluster.connect,
        own,
        labels={},
        namespace="readygate-system",
        port=9375,
        every_s=300.0,
        copy=copy,
        clocks=Clocks(monotonic=clock or Clock(), random=lambda: 0.0),
    )


def test_pages_are_read_until_this_node_is_found() -> None:
    cluster = Cluster(*(slice_of(number) for number in range(50)))
    peers = listed(cluster, "node-9-5")
    peers._turn()
    assert cluster.requests == ["policies", "page ", "page 4", "page 8"]
    assert {peer.node for peer in peers.now.peers or ()} == {f"node-9-{place}" for place in range(100)}


def test_from_then_on_its_own_slice_alone_is_read() -> None:
    cluster, clock = Cluster(*(slice_of(number) for number in range(50))), Clock()
    peers = listed(cluster, "node-9-5", clock=clock)
    assert peers._turn() == 300.0
    del cluster.requests[:]
    clock.time += 300.0
    peers._turn()
    assert cluster.requests == ["policies", "agents-IPv4-09"]


def test_a_small_slice_is_filled_up_from_others() -> None:
    cluster = Cluster(slice_of(0, count=3), slice_of(1), slice_of(2))
    peers = listed(cluster, "node-0-0")
    peers._turn()
    assert len(peers.now.peers or ()) == 103


def test_pages_are_read_again_where_the_slice_is_gone() -> None:
    cluster, clock = Cluster(slice_of(0), slice_of(1)), Clock()
    peers = listed(cluster, "node-0-0", clock=clock)
    peers._turn()
    cluster.slices["agents-IPv4-03"] = cluster.slices.pop("agents-IPv4-00")
    clock.time += 300.0
    del cluster.requests[:]
    peers._turn()
    assert cluster.requests == ["policies", "agents-IPv4-00", "page "]


def test_addresses_of_both_families_are_joined() -> None:
    cluster = Cluster(slice_of(0, 3), slice_of(0, 3, "IPv6"))
    peers = listed(cluster, "node-0-0")
    peers._turn()
    assert [peer.addresses for peer in peers.now.peers or ()][1] == ("10.0.0.1", "fd00::0:1")


def test_a_node_that_is_not_in_the_list_looks_again_soon() -> None:
    assert listed(Cluster(slice_of(0, 3)), "other")._turn() == 30.0


def test_while_agents_are_installed_it_is_read_again_soon() -> None:
    ends = [Endpoint((f"10.0.0.{n}",), EndpointConditions(ready=n == 0), f"node-0-{n}") for n in range(4)]
    assert listed(Cluster(EndpointSlice(BareMeta(name="a"), "IPv4", tuple(ends))), "node-0-0")._turn() == 30.0


def test_what_was_read_is_kept_in_a_file(tmp_path: Path) -> None:
    copy = tmp_path / "peers"
    listed(Cluster(slice_of(0, 3)), "node-0-0", copy)._turn()
    away = Cluster()
    away.error = Unreachable(path="/")
    again = listed(away, "node-0-0", copy)
    again._restore()
    assert [peer.node for peer in again.now.peers or ()] == ["node-0-0", "node-0-1", "node-0-2"]


def test_a_file_that_is_damaged_is_as_none(tmp_path: Path) -> None:
    copy = tmp_path / "peers"
    copy.write_bytes(b'{"slices": [1')
    again = listed(Cluster(), "node-0-0", copy)
    again._restore()
    assert again.now.peers is None


def test_the_last_list_holds_while_the_api_server_is_away() -> None:
    cluster, clock = Cluster(slice_of(0, 3)), Clock()
    peers = listed(cluster, "node-0-0", clock=clock)
    peers._turn()
    cluster.error = Unreachable(path="/", message="no route")
    clock.time += 300.0
    assert (peers._turn(), len(peers.now.peers or ()), bool(peers.now.trouble)) == (30.0, 3, True)


def test_a_list_that_is_refused_is_said_so() -> None:
    cluster = Cluster()
    cluster.error = Forbidden(path="/")
    peers = listed(cluster, "node-0-0")
    peers._turn()
    assert (peers.now.peers, peers.now.forbidden) == (None, True)


def test_who_may_no_longer_ask_is_asked_for_again() -> None:
    """As in mode node, where the list is read with the identity of a health pod that was replaced."""
    clusters, clock = [Cluster(slice_of(0, 3)), Cluster(slice_of(0, 3))], Clock()
    clusters[0].error = CredentialsInvalid("the health pod is gone")
    left = iter(clusters)
    peers = listed(clusters[0], "node-0-0", clock=clock, connect=lambda: next(left))
    peers._turn()
    clock.time += 30.0
    peers._turn()
    assert (clusters[0].closed, len(peers.now.peers or ())) == (True, 3)


def test_it_is_read_soon_where_most_peers_are_lost_but_not_again_and_again() -> None:
    cluster, clock = Cluster(slice_of(0, 3)), Clock()
    peers = listed(cluster, "node-0-0", clock=clock)
    for _ in range(10):
        peers.refresh(at_once=True)
        peers._turn()
        clock.time += 1.0
    assert cluster.requests.count("policies") == 2


def test_of_two_agents_on_a_node_the_one_that_is_ready_counts() -> None:
    """As while an agent is replaced (cilium#33056)."""
    old = Endpoint(("10.0.0.1",), EndpointConditions(ready=False, terminating=True), "node-1")
    new = Endpoint(("10.0.0.2",), EndpointConditions(ready=True), "node-1")
    for ends in ((old, new), (new, old)):
        peers = listed(Cluster(EndpointSlice(BareMeta(name="a"), "IPv4", ends)), "node-0")
        peers._turn()
        assert [(peer.addresses, peer.ready) for peer in peers.now.peers or ()] == [(("10.0.0.2",), True)]


def test_stopping_closes_what_is_asked() -> None:
    cluster = Cluster(slice_of(0, 3))
    peers = listed(cluster, "node-0-0")
    peers.start()
    peers.wait_first(60.0)
    peers.stop()
    assert cluster.closed
