"""Heartbeats of agents: who is called silent, and when, by a fake clock. An agent beats each 3 s, the limit is 9 s."""

import math

import msgspec
import pytest

from extender.cluster.heartbeats import AGENTS, Heartbeats
from extender.cluster.lease_reader import PAGE_SIZE, LeaseReader
from extender.cluster.observed import Lease
from extender.cluster.watches import AGENTS_LOOK_S
from kube.listing import Page
from tools.kit.clock import Clock

NODES = [f"n{number:02}" for number in range(20)]


def lease(node: str, renewed: float, *, holder: str | None = None, version: int = 1, every_s: float = 3.0) -> Lease:
    found = {
        "metadata": {"name": node, "namespace": "ns", "uid": node, "resourceVersion": str(version)},
        "spec": {
            "renewTime": f"2026-01-01T00:{int(renewed // 60):02}:{renewed % 60:09.6f}Z",
            "leaseDurationSeconds": int(4 * every_s),
            "holderIdentity": node if holder is None else holder,
        },
    }
    return msgspec.convert(found, Lease)


def agents(**options) -> Heartbeats:
    return Heartbeats(9.0, AGENTS, on_change=lambda: None, **options)


class Scene:
    """Agents that beat until they are dead; `away`: the API server is, for them and for us. Nothing else says of
    any node that it is lost."""

    def __init__(self, nodes: list[str]) -> None:
        self.clock = Clock(0.0)
        self.last_word: float | None = 0.0
        self.list_began: float | None = 0.0
        self.list_ahead_s: float | None = None
        self.counters: dict[str, int] = {}
        self.living = list(nodes)
        self.nodes = nodes
        self.away = False
        self.beats = agents(watch=lambda: self, monotonic=self.clock)
        self.renewed = dict.fromkeys(nodes, 0.0)
        self.every_s = dict.fromkeys(nodes, 3.0)
        self.reader = LeaseReader(self, self.beats, look_every_s=AGENTS_LOOK_S, monotonic=self.clock)
        self.reader_due_at = 0.0
        self.beats.replace([lease(node, 0.0) for node in nodes])

    def page(self, *, limit: int | None, more: str = "") -> Page[Lease]:
        assert (limit, more) == (PAGE_SIZE, "")
        return Page(
            items=[lease(node, self.renewed[node], every_s=self.every_s[node]) for node in self.nodes],
            resource_version="1",
            more="",
            skipped=0,
            kind="",
        )

    def close(self) -> None: ...

    def beat(self, node: str) -> None:
        self.renewed[node] = self.last_word = self.clock()
        self.beats.upsert(lease(node, self.clock(), every_s=self.every_s[node]))

    def run(self, seconds: float) -> dict[str, float]:
        """When each node was found silent first, in seconds from now; of those that still are."""
        began, found = self.clock(), dict[str, float]()
        while self.clock() < began + seconds:
            self.clock.time += 0.5
            now = self.clock()
            if not self.away:
                for place, node in enumerate(self.nodes):
                    due = now - self.renewed[node] >= self.every_s[node] and (now * 2 + place) % 2 == 0
                    if node in self.living and due:
                        self.beat(node)
                if now >= self.reader_due_at:
                    self.reader_due_at = now + self.reader.turn()
            silent, _ = self.beats.look(lambda _: True)
            found = {node: found.get(node, now - began) for node in silent}
        return found


def test_a_node_that_dies_is_found_within_ten_seconds_and_no_other() -> None:
    scene = Scene(NODES)
    scene.run(60)
    scene.living.remove("n07")
    found = scene.run(30)
    assert (["n07"], True) == (list(found), found["n07"] <= 10.0)


def test_it_opens_with_its_next_beat() -> None:
    scene = Scene(NODES)
    scene.run(60)
    scene.living.remove("n07")
    scene.run(30)
    scene.living.append("n07")
    assert {} == scene.run(4)


@pytest.mark.parametrize("count", [1, 2])
def test_the_only_agents_of_a_small_cluster(count: int) -> None:
    """One that falls silent is found, by lists beside the watch; two of two are our own blindness."""
    scene = Scene(NODES[:count])
    scene.run(60)
    scene.living.clear()
    assert (1 if count == 1 else 0) == len(scene.run(30))


@pytest.mark.parametrize(
    ("dead", "expected"),
    [
        pytest.param(20, 0, id="all at once: we are blind, or nobody may write"),
        pytest.param(10, 0, id="half of them: a part of the network"),
        pytest.param(2, 2, id="two"),
    ],
)
def test_many_that_fall_silent_together_do_not_close_by_that_alone(dead: int, expected: int) -> None:
    scene = Scene(NODES)
    scene.run(60)
    scene.living = NODES[dead:]
    assert expected == len(scene.run(60))


def test_agents_that_become_slower_may_miss_a_beat_before_anybody_tells_the_extender() -> None:
    """A play changes one host after the other; each begins with a beat, and the limit stays that of beats each 3 s."""
    scene = Scene(NODES)
    scene.run(60)
    silent = dict[str, float]()
    for node in NODES:
        scene.every_s[node] = 10.0
        scene.beat(node)
        silent |= scene.run(5)
    for node in NODES[::5]:  # this one cannot write for a while
        scene.living.remove(node)
        silent |= scene.run(19)
        scene.living.append(node)
        silent |= scene.run(12)
    scene.living.remove("n07")
    found = scene.run(40)
    assert ({}, ["n07"], True) == (silent, list(found), found["n07"] <= 31.0)


def test_an_outage_of_the_api_server_closes_nobody_nor_does_its_return() -> None:
    scene = Scene(NODES)
    scene.run(60)
    scene.away = True
    during = scene.run(60)
    scene.away = False
    assert ({}, {}) == (during, scene.run(60))


def test_a_node_without_a_lease_is_not_judged_by_it() -> None:
    scene = Scene(NODES)
    scene.run(60)
    scene.living.remove("n07")
    scene.run(30)
    scene.beats.remove(lease("n07", 0.0))
    scene.nodes = [node for node in NODES if node != "n07"]
    assert {} == scene.run(60)


def test_the_lease_by_which_extenders_choose_who_writes_is_none_of_an_agent() -> None:
    beats = agents()
    other = lease("readygate-extender", 0.0, holder="host-1_uid")
    beats.replace([other])
    beats.upsert(other)
    assert math.inf == beats.leases_due_at()
