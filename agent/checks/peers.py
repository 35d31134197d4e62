"""Which other nodes a node asks whether it reaches them, of all that have an agent. Pure.

Rendezvous hashing: each pair of nodes has a number, and a node asks those of its lowest numbers. So each node is asked
by as many others as it asks, on average, and a node that comes or goes changes the peers of few. At most the larger
half of the peers are in one zone: a zone that is cut off is then not taken for a node that is.
"""

from collections.abc import Iterable, Sequence
from typing import TypeVar
from zlib import crc32

import msgspec

from agent.wire.endpoint_slice import EndpointSlice

PEERS = 3
FURTHER = 13  # asked in a run that fails; of 16 peers none is reached by chance once in 65,000 where half the nodes are

T = TypeVar("T")


class Peer(msgspec.Struct, frozen=True, omit_defaults=True):
    """An agent on another node. addresses: IP addresses, at most one of each family. ready: the API server says so."""

    node: str
    zone: str = ""
    addresses: tuple[str, ...] = ()
    ready: bool = True


def peers_of(slices: Iterable[EndpointSlice]) -> list[Peer]:
    """By node, in order of names. Of several agents on a node, as while one is replaced, one that is ready."""
    found: dict[str, Peer] = {}
    for one in slices:
        for endpoint in one.endpoints or ():
            if endpoint.node_name and endpoint.addresses:
                peer = Peer(endpoint.node_name, endpoint.zone or "", endpoint.addresses[:1], endpoint.is_ready)
                found[peer.node] = _joined(found.get(peer.node), peer)
    return [found[node] for node in sorted(found)]


def family_of(address: str) -> int:
    return 6 if ":" in address else 4


def _joined(before: Peer | None, peer: Peer) -> Peer:
    if before is None or peer.ready > before.ready:
        return peer
    families = {family_of(address) for address in before.addresses}
    if before.ready > peer.ready or family_of(peer.addresses[0]) in families:
        return before
    return Peer(
        before.node, before.zone, tuple(sorted((*before.addresses, *peer.addresses), key=family_of)), peer.ready
    )


def chosen(own: str, peers: Iterable[Peer], count: int = PEERS) -> list[Peer]:
    """The `count` peers of the node `own`, first those that are ready. Fewer where there are fewer."""
    others = sorted((peer for peer in peers if peer.node != own), key=lambda peer: (not peer.ready, _order(own, peer)))
    return _spread(others, count)


def further(own: str, peers: Sequence[Peer], first: Sequence[Peer], visitors: Iterable[str]) -> list[Peer]:
    """Whom else it asks where it does not reach most of the first: those that reached it lately, as they are alive,
    then the next ones."""
    asked = {own, *(peer.node for peer in first)}
    alive = set(visitors)
    others = [peer for peer in peers if peer.node not in asked]
    others.sort(key=lambda peer: (peer.node not in alive, not peer.ready, _order(own, peer)))
    known = [peer for peer in others if peer.node in alive][: FURTHER // 2]
    return [*known, *_spread([peer for peer in others if peer not in known], FURTHER - len(known))]


def choosers(own: str, peers: Sequence[Peer], count: int = PEERS) -> list[Peer]:
    """The peers that ask the node `own`, if they know the same peers."""
    return [
        peer for peer in peers if peer.node != own and any(one.node == own for one in chosen(peer.node, peers, count))
    ]


def turn_of(number: int, connections: Sequence[T], count: int) -> list[T]:
    """The part of `connections` that run `number` makes, `count` of them, each in its turn."""
    if len(connections) <= count:
        return list(connections)
    return [connections[(number * count + place) % len(connections)] for place in range(count)]


def _spread(ranked: Sequence[Peer], count: int) -> list[Peer]:
    """The first of them, where no zone has more than the larger half, as long as there are others."""
    most = (count + 1) // 2
    found: list[Peer] = []
    of_zone: dict[str, int] = {}
    for peer in ranked:
        if len(found) < count and of_zone.get(peer.zone, 0) < most:
            found.append(peer)
            of_zone[peer.zone] = of_zone.get(peer.zone, 0) + 1
    if len(found) < count:
        found += [peer for peer in ranked if peer not in found][: count - len(found)]
    return found


def _order(own: str, peer: Peer) -> int:
    """Of two nodes; the same on every machine. The steps after the checksum are the finalizer of MurmurHash3, which is
    in the public domain: a checksum alone would order the peers of all nodes alike."""
    mixed = crc32(f"{own} {peer.node}".encode())
    mixed = ((mixed ^ (mixed >> 16)) * 0x85EBCA6B) & 0xFFFFFFFF
    mixed = ((mixed ^ (mixed >> 13)) * 0xC2B2AE35) & 0xFFFFFFFF
    return mixed ^ (mixed >> 16)
