"""What tenants can do to nodes by how their pods fail, by chance.

An attacker with one namespace closes no node and hides none. Pods that bypass kube-scheduler close none at all.
"""

import random
from collections.abc import Mapping
from typing import Any

import pytest

from extender.cluster.pod_starts import PodStarts, StartingPod
from extender.policy import pod_starts
from extender.policy.pod_starts import Attempt, StartRule
from kube.times import format_time
from tests.extender.builders import seen
from tools.kit.clock import Clock
from tools.kit.scope import draws

WALL = 1_800_000_000.0
NODES = [f"n{number}" for number in range(5)]
BAD = "bad"
HONEST = [f"team-{number}" for number in range(3)]  # as many as StartRule asks for
EVIL = "evil"
VOLUMES: list[dict[str, Any]] = [
    {"emptyDir": {}},
    {"configMap": {"name": "missing"}},
    {"secret": {"secretName": "missing"}},
    {"persistentVolumeClaim": {"claimName": "missing"}},
    {"hostPath": {"path": "/missing", "type": "Directory"}},
    {"csi": {"driver": "missing.example.com"}},
    {"projected": {"sources": [{"secret": {"name": "missing"}}]}},
]
STATUSES: list[dict[str, Any]] = [
    {"phase": "Pending"},
    {"phase": "Pending", "conditions": [{"type": "PodReadyToStartContainers", "status": "False"}]},
    {"phase": "Pending", "conditions": [{"type": "PodReadyToStartContainers", "status": "True"}]},
    {"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": "CreateContainerError"}}}]},
    {"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": "CreateContainerConfigError"}}}]},
    {"phase": "Failed", "reason": "UnexpectedAdmissionError"},
    {"phase": "Failed", "reason": "InvalidNodeInfo"},
    {"phase": "Failed", "reason": "Evicted"},
]
FAILS = [STATUSES[1], STATUSES[3], STATUSES[5]]


class Play:
    """Honest namespaces and an attacker, and what the extender makes of their pods. Limits are small, to be reached."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.clock, self.wall = Clock(1000.0), Clock(WALL)
        self.number = 0
        self.asked: dict[str, bool] = {}  # by uid: whether kube-scheduler asked about it
        self.evil: dict[str, dict[str, Any]] = {}  # the attacker's pods, by uid
        self.starts = PodStarts(
            StartRule(),
            asked=self.was_asked,
            on_change=lambda: None,
            reported=self.clock,
            monotonic=self.clock,
            wall=self.wall,
        )

    def was_asked(self, attempt: Attempt) -> bool:
        return self.asked[attempt.uid]

    def passes(self, seconds: float) -> None:
        self.clock.time += seconds
        self.wall.time += seconds

    def black(self) -> list[str]:
        self.passes(1.0)
        return sorted(self.starts.look()[0])

    def pod(self, namespace: str, owner: str, node: str, *, asked: bool, **spec: Any) -> dict[str, Any]:
        self.number += 1
        uid = f"pod-{self.number}"
        self.asked[uid] = asked
        owners = [{"kind": "ReplicaSet", "name": owner, "uid": owner, "controller": True}]
        meta = {"name": uid, "namespace": namespace, "uid": uid, "ownerReferences": owners}
        return {"metadata": meta, "spec": {"nodeName": node, **spec}, "status": {"phase": "Pending"}}

    def put(self, pod: dict[str, Any], status: Mapping[str, Any] | None = None) -> None:
        if status is not None:
            pod["status"] = dict(status)
        self.starts.upsert(seen(StartingPod, pod))

    def leave(self, pod: dict[str, Any], *, deleted: bool) -> None:
        if deleted:
            pod["metadata"]["deletionTimestamp"] = format_time(self.wall.time)
        self.starts.remove(seen(StartingPod, pod))

    def start(self, namespace: str) -> None:
        pod = self.pod(namespace, f"{namespace}-web", self.chance.choice(NODES), asked=True)
        self.put(pod)
        self.leave(pod, deleted=False)

    def fail(self, namespace: str, *, asked: bool = True) -> None:
        self.put(self.pod(namespace, f"{namespace}-web", BAD, asked=asked), self.chance.choice(FAILS))

    def attack(self, *, namespace: str = EVIL, scheduled: float = 0.8) -> None:
        """Anything that a tenant can do with pods of one namespace. scheduled: share of pods that set no nodeName."""
        chance = self.chance
        if self.evil and chance.random() < 0.5:
            uid = chance.choice(sorted(self.evil))
            pod = self.evil[uid]
            if chance.random() < 0.5:
                self.put(pod, chance.choice(STATUSES))
            else:
                self.leave(self.evil.pop(uid), deleted=chance.random() < 0.5)
            return
        owner = chance.choice([f"evil-{chance.randrange(40)}", f"{chance.choice(HONEST)}-web"])  # or another tenant's
        volumes = [{"name": "v", **chance.choice(VOLUMES)}] if chance.random() < 0.5 else []
        node = chance.choice([*NODES, BAD])
        pod = self.pod(namespace, owner, node, asked=chance.random() < scheduled, volumes=volumes)
        self.evil[pod["metadata"]["uid"]] = pod
        self.put(pod, chance.choice(STATUSES))


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PENDING_MAX", "REJECTED_MAX", "CLAIMS_MAX", "FAILING_MAX", "STARTED_MAX"):
        monkeypatch.setattr(pod_starts, name, 24)


@pytest.mark.parametrize("part", range(4))
def test_by_chance_one_tenant_closes_no_node(seed: int, part: int) -> None:
    for number in range(draws(6, 25)):
        play = Play(random.Random(f"{seed} tenant {part} {number}"))
        for _ in range(200):
            if play.chance.random() < 0.3:
                play.start(play.chance.choice(HONEST))
            else:
                play.attack()
            play.passes(play.chance.choice([0.0, 0.1, 1.0, 10.0]))
            assert [] == play.black(), number


@pytest.mark.parametrize("part", range(4))
def test_by_chance_one_tenant_hides_no_node_on_which_the_pods_of_others_fail(seed: int, part: int) -> None:
    for number in range(draws(6, 25)):
        play = Play(random.Random(f"{seed} hidden {part} {number}"))
        for _ in range(100):
            play.attack()
            play.passes(play.chance.choice([0.0, 0.1, 1.0]))
        for namespace in HONEST:
            play.start(namespace)
        play.black()
        for namespace in HONEST:
            play.fail(namespace)
        for _ in range(100):
            play.attack()
            play.passes(play.chance.choice([0.0, 0.1, 0.5]))
            if play.chance.random() < 0.3:
                play.black()
        play.passes(40)
        assert [BAD] == play.black(), number


@pytest.mark.parametrize("part", range(4))
def test_by_chance_pods_that_were_bound_past_kube_scheduler_close_no_node(seed: int, part: int) -> None:
    for number in range(draws(6, 25)):
        play = Play(random.Random(f"{seed} bypass {part} {number}"))
        for _ in range(200):
            namespace = f"evil-{play.chance.randrange(6)}"
            if play.chance.random() < 0.5:
                play.attack(namespace=namespace, scheduled=0.0)
            else:
                play.start(namespace)
                play.fail(namespace, asked=False)
            play.passes(play.chance.choice([0.0, 0.1, 1.0, 10.0]))
            assert [] == play.black(), number
