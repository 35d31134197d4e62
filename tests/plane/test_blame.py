"""Which nodes readygate alone kept a pod off: what it says, against kube-scheduler's filters worked out here anew."""

import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import pytest

from extender.config.settings import parse
from extender.feed.replica import Replica
from extender.policy.reasons import REASONS
from extender.web.app import create_app
from tests.plane import blame
from tests.plane.cluster import Cluster
from tools.kit.scope import draws
from tools.kit.waiting import wait_for, wait_until
from tools.testbed.plane import scheduler_config
from tools.testbed.plane.programs import Extender
from tools.testbed.shared import bare
from tools.testbed.shared.api import Object, condition

pytestmark = pytest.mark.timeout(900)

PODS = "/api/v1/namespaces/default/pods"
SCHEDULES = draws(gate=150, whole=1000)
ROUNDS, NODES_OF_A_ROUND = draws(gate=1, whole=4), 30  # fewer than a hundred: kube-scheduler looks at all of them
WRITERS = 6
KNOWN_EVERY_S = 1.0  # how often kube-scheduler counts what it knows
SETTLED_WITHIN_S = 120.0


class Told:
    """What the API says, from the feed of the extender's process; pages are not paced here."""

    def __init__(self, mirror: Replica):
        self._mirror = mirror
        self._client = create_app(mirror).test_client()

    def of_pod(self, name: str) -> Object:
        return self._client.get(f"/api/v1/pods/default/{name}").json

    def closed(self, names: list[str]) -> set[str] | None:
        """Which of these nodes are closed; None while one of them is not known."""
        snapshot = self._mirror.board.snapshot
        return snapshot.view(snapshot.refusing).keys() & set(names) if snapshot.nodes >= set(names) else None


@contextmanager
def told(extender: Extender) -> Iterator[Told]:
    mirror = Replica(
        Path(extender.settings["feed"]["socket"]),
        parse(""),
    )
    mirror.start()
    wait_until(lambda: mirror.board.filled, "the feed")
    try:
        yield Told(mirror)
    finally:
        mirror.stop()


class Round:
    """Nodes, of which some are closed, and pods; all by chance. closed: by name. blamed: pods kept off a node."""

    def __init__(self, cluster: Cluster, chance: random.Random, number: int):
        self.cluster, self.api, self.chance = cluster, cluster.api, chance
        self.blamed: set[str] = set()
        self.names = [f"blame-{number}-{one}" for one in range(NODES_OF_A_ROUND)]
        self.closed = set(chance.sample(self.names, chance.randrange(8, 20)))
        self.pods = [f"pod-{number}-{one}" for one in range(SCHEDULES // ROUNDS)]
        self.filling = [f"fills-{number}-{one}" for one in range(NODES_OF_A_ROUND)]

    def __enter__(self) -> Self:
        self._all(lambda name: self.api.create("/api/v1/nodes", blame.node(random.Random(name), name)), self.names)
        opened = [name for name in self.names if name not in self.closed]
        self.cluster.add_health_pods(opened, ready=True)
        self.cluster.add_health_pods(sorted(self.closed), ready=False)
        self._make(self.filling, on=self.chance.choices(self.names, k=len(self.filling)))
        return self

    def __exit__(self, *_: object) -> None:
        self._all(lambda name: self.api.delete(f"{PODS}/{name}", grace_s=0), [*self.pods, *self.filling])
        self._all(lambda name: self.api.delete(f"/api/v1/nodes/{name}"), self.names)

    def wait_until_the_scheduler_knows_it(self) -> None:
        """A node that it hears of later is none it asks about."""
        time.sleep(2 * KNOWN_EVERY_S)  # what it tells is no longer of before
        places = [on for one in self.api.items("/api/v1/pods") if (on := one["spec"].get("nodeName"))]
        # It goes on counting a Node that is gone while a pod of it is there.
        names = {*places, *(one["metadata"]["name"] for one in self.api.items("/api/v1/nodes"))}
        there = len(names), len(places)
        knows = self.cluster.plane.scheduler_knows
        told = f"{there} nodes and pods, which kube-scheduler does not know"
        wait_until(lambda: knows() == there, told, timeout_s=60)

    def schedule(self) -> None:
        self._make(self.pods)

    def _make(self, names: list[str], on: list[str] | None = None) -> None:
        bodies = [
            blame.pod(self.chance, name, on=place) for name, place in zip(names, on or [""] * len(names), strict=True)
        ]
        self._all(lambda body: self.api.create(PODS, body), bodies)

    @staticmethod
    def _all(call: Callable[[object], object], items: list) -> None:
        with ThreadPoolExecutor(WRITERS) as writers:
            list(writers.map(call, items))

    def seen(self) -> tuple[blame.Filters, dict[str, Object]]:
        """The filters over what there is, and the pods that were to be scheduled."""
        everywhere = self.api.items("/api/v1/pods")
        nodes = [one for one in self.api.items("/api/v1/nodes") if one["metadata"]["name"] in self.names]
        mine = {one["metadata"]["name"]: one for one in everywhere if one["metadata"]["name"] in set(self.pods)}
        return blame.Filters(nodes, everywhere), mine

    def wrong(self, told: Told, known: dict[str, set[str]], *, healing: bool = False) -> list[str]:
        """One line for each pod of which something else is told, or which kube-scheduler has yet to try. known: the
        pods that were bound, with what was right then. healing: which nodes were closed when a pod was bound after
        that, nobody knows.
        """
        filters, pods = self.seen()
        found = []
        for name, pod in pods.items():
            fits = filters.pass_for(pod)
            if not bare.bound_to(pod) and (fits - self.closed or not condition(pod, "PodScheduled")):
                found.append(f"{name}: is to be tried yet")
                continue
            if healing and bare.bound_to(pod) and name not in known:
                continue
            # Nothing is placed on a closed node: what fits there fitted when the pod was tried.
            expected = known.get(name, fits & self.closed)
            self.blamed |= {name} if expected else set()
            last = told.of_pod(name)["last"] or {"refused": [], "complete": True}
            refused = {one["node"] for one in last["refused"]}
            if not bare.bound_to(pod) and not any(reason in bare.refused(pod) for reason in REASONS):
                # The documented rule: its own filters passed no node, so it did not ask, and what is told is older.
                refused = set()
            if (expected, True) != (refused, last["complete"]):
                found.append(f"{name}: expected {sorted(expected)}, told {sorted(refused)}")
            elif bare.bound_to(pod):
                known[name] = expected
        return found


def settled(look: Callable[[], list[str]]) -> list[str]:
    """What is still wrong when nothing changes any more."""
    wait_for(lambda: not look(), timeout_s=SETTLED_WITHIN_S, every_s=1.0)
    return look()


def test_of_many_schedules_by_chance_every_one_is_blamed_on_the_nodes_that_readygate_alone_kept_it_off(
    cluster: Cluster, seed: int, say: Callable[[str], None]
):
    chance = random.Random(seed)
    extender = cluster.start_extender()
    url = scheduler_config.extender(extender.url)
    cluster.plane.restart_scheduler(cluster.plane.scheduler_config([url], queries_per_s=2000, burst=2000))
    schedules = again = blamed = 0
    wrong: list[str] = []
    began = time.monotonic()
    with told(extender) as seen:
        for number in range(ROUNDS):
            with Round(cluster, chance, number) as one:
                wait_until(lambda one=one: seen.closed(one.names) == one.closed, "the closed nodes")
                one.wait_until_the_scheduler_knows_it()
                one.schedule()
                known: dict[str, set[str]] = {}
                wrong += settled(lambda one=one, known=known: one.wrong(seen, known))
                assert [] == wrong, f"round {number}"
                schedules += len(one.pods)
                # Some nodes heal: those that wait are tried again, and fewer nodes are to blame.
                healed = chance.sample(sorted(one.closed), 4)
                for name in healed:
                    cluster.health_pods[name].say(ready=True)
                one.closed -= set(healed)
                again += len(one.pods) - len(known)
                wrong += settled(lambda one=one, known=known: one.wrong(seen, known, healing=True))
                assert [] == wrong, f"round {number}, after some nodes have healed"
                blamed += len(one.blamed)
    took = f"{time.monotonic() - began:.0f} s"
    say(f"{schedules} schedules and {again} once more, {blamed} pods kept off a node, {len(wrong)} wrong, {took}")
    assert schedules >= SCHEDULES
    assert blamed >= SCHEDULES / 2
