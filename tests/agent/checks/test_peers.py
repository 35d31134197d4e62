"""Which peers a node asks: spread over zones, the same on every machine, and as many as ask it."""

from collections import Counter

from agent.checks.peers import FURTHER, Peer, choosers, chosen, further, turn_of
from tools.kit.cases import cases


def cluster(count: int, zones: int = 3) -> list[Peer]:
    return [Peer(f"node-{number:02}", f"zone-{number % zones}", (f"10.0.0.{number}",)) for number in range(count)]


def names(peers: list[Peer]) -> list[str]:
    return [peer.node for peer in peers]


def test_a_node_asks_three_others_and_never_itself() -> None:
    found = {peer.node: names(chosen(peer.node, cluster(50))) for peer in cluster(50)}
    assert {len(set(peers) - {node}) for node, peers in found.items()} == {3}


def test_the_choice_is_the_same_on_every_machine() -> None:
    assert names(chosen("node-07", cluster(50))) == names(chosen("node-07", cluster(50)[::-1]))


def test_each_node_is_asked_by_about_three_others() -> None:
    asked = Counter(name for peer in cluster(200) for name in names(chosen(peer.node, cluster(200))))
    assert (sum(asked.values()), max(asked.values()) <= 12) == (600, True)


def test_no_zone_has_more_than_two_of_three_peers() -> None:
    zone = {peer.node: peer.zone for peer in cluster(50)}
    most = {max(Counter(zone[n] for n in names(chosen(p.node, cluster(50)))).values()) for p in cluster(50)}
    assert most <= {1, 2}


def test_a_small_zone_is_not_asked_by_all() -> None:
    peers = [Peer("alone", "small"), *cluster(100, zones=2)]
    asking = [peer.node for peer in peers if "alone" in names(chosen(peer.node, peers))]
    assert len(asking) < 15


def test_zones_do_not_matter_where_there_is_one() -> None:
    assert len(chosen("node-00", cluster(10, zones=1))) == 3


def test_a_node_that_leaves_changes_the_peers_of_few() -> None:
    before, after = cluster(50), [peer for peer in cluster(50) if peer.node != "node-11"]
    changed = [p.node for p in after if names(chosen(p.node, before)) != names(chosen(p.node, after))]
    assert len(changed) < 15


def test_ready_peers_come_first() -> None:
    """A node that is shut down is still in the list for a while (goldpinger#87)."""
    peers = [Peer(p.node, p.zone, p.addresses, ready=index % 2 == 0) for index, p in enumerate(cluster(20))]
    assert all(peer.ready for one in peers for peer in chosen(one.node, peers))


def test_further_peers_begin_with_those_that_came() -> None:
    peers = cluster(50)
    first = chosen("node-00", peers)
    came = [peer.node for peer in peers if peer not in first and peer.node != "node-00"][:2]
    found = names(further("node-00", peers, first, came))
    assert (set(found[:2]), len(found), set(found) & set(names(first))) == (set(came), FURTHER, set())


def test_choosers_are_the_nodes_that_ask_it() -> None:
    peers = cluster(20)
    expected = [peer.node for peer in peers if "node-03" in names(chosen(peer.node, peers))]
    assert names(choosers("node-03", peers)) == expected


@cases(
    "connections, number, expected",
    ("few are made in every run", ["a", "b"], 7, ["a", "b"]),
    ("the first run", ["a", "b", "c", "d", "e"], 0, ["a", "b"]),
    ("the second run", ["a", "b", "c", "d", "e"], 1, ["c", "d"]),
    ("the third run begins anew", ["a", "b", "c", "d", "e"], 2, ["e", "a"]),
)
def test_connections_take_turns(connections: list[str], number: int, expected: list[str]) -> None:
    assert turn_of(number, connections, 2) == expected
