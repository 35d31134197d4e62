"""200 drawn partitions of 50 nodes: no node is closed for another's fault, and each isolated node is closed.

Each node runs the product's own choice and judgement. Nodes run one after the other in a drawn order, so an answer is
of the run before or of this one. A node is closed by two runs in a row that failed, as in the profile `fast`.
"""

import random
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise

import pytest

from agent.checks.peer_verdict import Answer, Leg, Probe, Seen, Way, judge
from agent.checks.peers import Peer, chosen, further
from agent.checks.state import CheckState

NODES, PARTITIONS, RUNS = 50, 200, 4
HALVES = 0.3  # of the partitions are nearly in the middle, where a node of the larger part may miss most peers
PEERS = [Peer(f"node-{number:02}", f"zone-{number % 3}") for number in range(NODES)]
FIRST = {peer.node: chosen(peer.node, PEERS) for peer in PEERS}


@dataclass
class World:
    """group: of each node; nodes of one group reach each other. dead: nodes that are shut down. api, dns: the groups in
    which those Services are."""

    group: dict[str, int]
    api: int = 0
    dns: int = 0
    dead: frozenset[str] = frozenset()
    answers: dict[str, Answer] = field(default_factory=dict)
    came: dict[str, dict[str, int]] = field(default_factory=dict)
    states: dict[str, list[CheckState]] = field(default_factory=dict)

    def run(self, number: int, draw: random.Random) -> None:
        for node in draw.sample(sorted(self.group), len(self.group)):
            if node not in self.dead:
                self.run_of(node, number)

    def run_of(self, node: str, number: int) -> None:
        mine = self.group[node]
        visitors = [name for name, run in self.came.get(node, {}).items() if run >= number - 1]
        probes = [self.probe(node, peer.node, number) for peer in FIRST[node]]
        legs = [
            Leg("api", "API server", Way.REACHED if self.api == mine else Way.SILENT),
            Leg("dns", "DNS by UDP", Way.REACHED if self.dns == mine else Way.SILENT),
        ]
        if 2 * sum(not probe.open for probe in probes) >= len(probes):
            probes += [self.probe(node, p.node, number) for p in further(node, PEERS, FIRST[node], visitors)]
        finding = judge(Seen(node, NODES - 1, probes, legs, visitors))
        self.states.setdefault(node, []).append(finding.state)
        self.answers[node] = Answer(
            node,
            finding.state,
            tuple(probe.node for probe in probes if probe.open),
            tuple(probe.node for probe in probes if not probe.open),
            api=legs[0].open,
            dns=legs[1].open,
            visitors=len(visitors),
        )

    def probe(self, own: str, other: str, number: int) -> Probe:
        if other in self.dead or self.group[own] != self.group[other]:
            return Probe(other, 4, Way.SILENT)
        self.came.setdefault(other, {})[own] = number
        return Probe(other, 4, Way.REACHED, self.answers.get(other))

    def closed(self) -> set[str]:
        failed = CheckState.FAILED
        return {n for n, found in self.states.items() if any(a is b is failed for a, b in pairwise(found))}


def played(world: World, draw: random.Random) -> World:
    """One run of a whole cluster, then those of the partition."""
    groups, dead, world.dead = world.group, world.dead, frozenset()
    api, dns = world.api, world.dns
    world.group, world.api, world.dns = dict.fromkeys(groups, 0), 0, 0
    world.run(0, draw)
    world.states.clear()
    world.group, world.dead, world.api, world.dns = groups, dead, api, dns
    for number in range(1, RUNS + 1):
        world.run(number, draw)
    return world


def drawn(draw: random.Random) -> World:
    """Some nodes are alone, the others are in one to three groups of drawn sizes; each Service is in a drawn group."""
    nodes = draw.sample([peer.node for peer in PEERS], NODES)
    alone = draw.choice([0, 1, 1, 2, 5, 10])
    cuts = sorted(draw.sample(range(1, NODES - alone), draw.choice([0, 0, 1, 1, 2])))
    if draw.random() < HALVES:
        cuts = [(NODES - alone) // 2 + draw.choice([-2, -1, 1, 2])]
    group = {node: 100 + place for place, node in enumerate(nodes[:alone])}
    group |= {node: sum(place >= cut for cut in cuts) for place, node in enumerate(nodes[alone:])}
    groups = sorted(set(group.values()))
    return World(group, draw.choice(groups), draw.choice(groups))


@pytest.mark.parametrize("seed", range(PARTITIONS))
def test_a_partition_closes_isolated_nodes_and_no_majority(seed: int) -> None:
    draw = random.Random(seed)
    world = played(drawn(draw), draw)
    sizes = Counter(world.group.values())
    isolated = {node for node, group in world.group.items() if sizes[group] == 1}
    majority = {node for node, group in world.group.items() if 2 * sizes[group] > NODES}
    assert (isolated - world.closed(), majority & world.closed()) == (set(), set())


@pytest.mark.parametrize("seed", range(PARTITIONS))
def test_dead_nodes_close_no_live_one(seed: int) -> None:
    """Up to half of the nodes are shut down at once; the list still has them."""
    draw = random.Random(seed)
    dead = frozenset(draw.sample([peer.node for peer in PEERS], draw.randint(1, NODES // 2)))
    world = played(World(dict.fromkeys((peer.node for peer in PEERS), 0), dead=dead), draw)
    assert world.closed() == set()


@pytest.mark.parametrize("seed", range(20))
def test_dns_that_is_down_for_all_closes_no_node(seed: int) -> None:
    draw = random.Random(seed)
    world = played(World(dict.fromkeys((peer.node for peer in PEERS), 0), dns=9), draw)
    assert (world.closed(), {states[-1] for states in world.states.values()}) == (set(), {CheckState.WARNED})
