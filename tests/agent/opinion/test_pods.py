"""Which objects of a list are health pods of this node, also from a server that sends more than it was asked for; and
which watches there are when the entries that choose them become others."""

import json
import math
from collections.abc import Iterator

import msgspec
import pytest

from agent.opinion import pods
from agent.opinion.pods import NEWS_LIMIT_S, HealthPodSource, HealthPodTable
from agent.opinion.selection import HealthPods
from agent.wire.pod import PodObject
from component.lifecycle import StartFailed
from tools.kit.clock import Clock

OWNER = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "health", "uid": "d", "controller": True}


def item(uid: str = "u", *, node: str = "n", namespace: str = "ns", owner: str = "health", **more: object) -> PodObject:
    owners = [OWNER | {"name": owner}] if owner else []
    meta = {"name": f"p-{uid}", "namespace": namespace, "uid": uid, "ownerReferences": owners, **more}
    return msgspec.json.decode(json.dumps({"metadata": meta, "spec": {"nodeName": node}}), type=PodObject)


def table(daemon_set: str = "health") -> HealthPodTable:
    return HealthPodTable(HealthPods("ns", "app=health", daemon_set), "n", lambda: None)


@pytest.mark.parametrize(
    ("one", "daemon_set", "expected"),
    [
        pytest.param(item(), "health", 1, id="of the DaemonSet"),
        pytest.param(item(owner="other"), "health", 0, id="of another one"),
        pytest.param(item(owner=""), "health", 0, id="of nobody"),
        pytest.param(item(owner=""), "", 1, id="of nobody, where the selector alone decides"),
        pytest.param(item(node="m"), "health", 0, id="of another node"),
        pytest.param(item(namespace="x"), "health", 0, id="of another namespace"),
        pytest.param(
            item(owner="", annotations={"kubernetes.io/config.mirror": "h"}), "", 1, id="the mirror of a static pod"
        ),
        pytest.param(
            item(owner="", annotations={"kubernetes.io/config.mirror": "h"}), "health", 0, id="which has no DaemonSet"
        ),
        pytest.param(item(annotations={"kubernetes.io/config.source": "file"}), "health", 1, id="whatever its source"),
    ],
)
def test_what_is_a_health_pod_of_ours(one: PodObject, daemon_set: str, expected: int) -> None:
    listed, watched = table(daemon_set), table(daemon_set)
    listed.replace([one])
    watched.upsert(one)
    assert (expected, expected) == (len(listed.pods()), len(watched.pods()))


STATIC = {"kubernetes.io/config.source": "file", "kubernetes.io/config.hash": "static"}
MIRROR = {**STATIC, "kubernetes.io/config.mirror": "static"}


def test_sp40_a_mirror_is_known_by_the_uid_of_its_static_pod() -> None:
    """By which the kubelet's own list and the container runtime know it, too."""
    found = table("")
    for _ in range(2):
        found.upsert(item("mirror", owner="", annotations=MIRROR))
        assert [("static", True)] == [(pod.uid, pod.static) for pod in found.pods()]
    found.upsert(item("second", owner="", annotations=MIRROR))  # it was made again
    found.remove(item("mirror", owner=""))
    assert ["static"] == [pod.uid for pod in found.pods()]
    found.replace([item("second", owner="", annotations=MIRROR)])
    assert ["static"] == [pod.uid for pod in found.pods()]
    found.remove(item("second", owner=""))
    assert [] == found.pods()


def test_sp40_a_mirror_without_a_hash_is_itself() -> None:
    found = table("")
    found.upsert(item("mirror", owner="", annotations={"kubernetes.io/config.mirror": ""}))
    assert ["mirror"] == [pod.uid for pod in found.pods()]


def test_a_list_takes_the_place_of_the_last_and_a_line_removes_one() -> None:
    found = table()
    found.replace([item("a"), item("b")])
    found.replace([item("b"), item("c")])
    found.remove(item("c"))
    assert ["b"] == [pod.uid for pod in found.pods()]


# When the entries become others.

HEALTH = HealthPods("ns", "app=health", "health")
LABELS = {"app": "health", "tier": "a"}


class Watch:
    """As kube.reflector.Reflector, without a server. The path that it would list and the pods that it is told."""

    no_thread = False
    all: list["Watch"] = []  # noqa: RUF012 - emptied by a fixture

    def __init__(self, lister: object, table: HealthPodTable, *, name: str, first_pause_s: float) -> None:
        del lister
        self.table, self.name, self.first_pause_s = table, name, first_pause_s
        self.synced, self.told_at, self.life = False, -math.inf, "made"
        self.all.append(self)

    def start(self) -> None:
        if self.no_thread and len(self.all) > 1:
            raise RuntimeError("can't start new thread")
        self.life = "runs"

    def stop(self) -> None:
        self.life = "ended"

    def healthy(self, monotonic: float) -> bool:  # noqa: ARG002 - of a Service
        return self.life == "runs"

    def age_s(self, monotonic: float) -> float:
        return monotonic - self.told_at

    def tell(self, *items: PodObject, at: float) -> None:
        self.table.replace(items)
        self.synced, self.told_at = True, at


class Scene:
    def __init__(self) -> None:
        self.clock = Clock(1000.0)
        self.changes = 0
        self.source = HealthPodSource(None, "n", [HEALTH], self.changed, first_pause_s=3.0, monotonic=self.clock)  # type: ignore[arg-type]
        self.source.start()
        self.tell(item("a", labels=LABELS), item("b", labels=LABELS | {"tier": "b"}))
        self.changes = 0

    def changed(self) -> None:
        self.changes += 1

    def tell(self, *items: PodObject, of: HealthPods = HEALTH) -> None:
        next(w for w in Watch.all if w.table.chosen == of).tell(*items, at=self.clock.time)

    @property
    def known(self) -> dict[str, set[str]]:
        """By uid, the selectors that have chosen it."""
        return {one.pod.uid: {by.label_selector for by in one.by} for one in self.source.pods()}

    @property
    def watches(self) -> list[str]:
        return [f"{w.table.chosen.label_selector} {w.life}" for w in Watch.all]


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    monkeypatch.setattr(pods, "Reflector", Watch)
    monkeypatch.setattr(pods, "ListerWatcher", lambda *_args, **_more: None)
    Watch.all.clear()
    yield Scene()
    Watch.no_thread = False


def selecting(selector: str, *, namespace: str = "ns", owner: str = "health") -> HealthPods:
    return HealthPods(namespace, selector, owner)


def test_an_entry_that_is_new_gets_a_watch_and_the_others_go_on(scene: Scene) -> None:
    scene.source.follow([HEALTH, selecting("app=gpu")])
    assert (["app=health runs", "app=gpu runs"], False, 1) == (scene.watches, scene.source.synced, scene.changes)
    assert [3.0, 0.0] == [watch.first_pause_s for watch in Watch.all], "it asks at once"
    scene.tell(item("g", labels={"app": "gpu"}), of=selecting("app=gpu"))
    assert {"a": {"app=health"}, "b": {"app=health"}, "g": {"app=gpu"}} == scene.known
    assert scene.source.synced
    assert scene.source.healthy(scene.clock())


def test_an_entry_that_is_gone_ends_with_its_pods(scene: Scene) -> None:
    scene.source.follow([HEALTH, selecting("app=gpu")])
    scene.tell(item("g", labels={"app": "gpu"}), of=selecting("app=gpu"))
    scene.source.follow([selecting("app=gpu")])
    assert (["app=health ended", "app=gpu runs"], {"g": {"app=gpu"}}) == (scene.watches, scene.known)


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        pytest.param(selecting("app in (health)"), ["a", "b"], id="the same ones in other words"),
        pytest.param(selecting("app=health,tier=a"), ["a"], id="fewer of them"),
        pytest.param(selecting(""), ["a", "b"], id="all of the DaemonSet"),
        pytest.param(selecting("app=health", owner=""), ["a", "b"], id="of any owner"),
        pytest.param(selecting("app=health", owner="other"), [], id="of another DaemonSet"),
        pytest.param(selecting("app=health", namespace="x"), [], id="of another namespace"),
    ],
)
def test_a_pod_that_the_entry_chooses_in_its_new_words_is_known_all_the_time(
    scene: Scene, entry: HealthPods, expected: list[str]
) -> None:
    """Else its probes and who writes for it would end, and begin anew when its list has been read."""
    scene.source.follow([entry])
    assert expected == [*scene.known]
    scene.tell(item("c", namespace=entry.namespace, owner=entry.daemon_set), of=entry)
    assert ["c"] == [*scene.known], "its own list is the truth"


def test_two_entries_of_the_same_words_are_watched_once(scene: Scene) -> None:
    scene.source.follow([HEALTH, HEALTH])
    assert ["app=health runs"] == scene.watches


def test_an_entry_that_is_new_makes_nobody_believe_that_the_api_server_is_away(scene: Scene) -> None:
    scene.clock.time += NEWS_LIMIT_S / 2
    scene.source.follow([HEALTH, selecting("app=gpu")])
    just_now = scene.source.news
    scene.clock.time += NEWS_LIMIT_S / 2
    scene.tell(item("a"))
    soon = scene.source.news
    scene.clock.time += NEWS_LIMIT_S / 2 + 1
    assert (True, True, False) == (just_now, soon, scene.source.news)


def test_where_no_thread_is_left_all_is_as_it_was(scene: Scene) -> None:
    Watch.no_thread = True
    with pytest.raises(StartFailed, match="no watch for health pods: can't start new thread"):
        scene.source.follow([selecting("app=gpu"), selecting("app=x")])
    assert ["app=health runs", "app=gpu ended", "app=x ended"] == scene.watches
    assert {"a": {"app=health"}, "b": {"app=health"}} == scene.known


def test_after_its_stop_no_watch_stays_behind(scene: Scene) -> None:
    scene.source.stop()
    scene.source.follow([HEALTH, selecting("app=gpu")])
    assert ["app=health ended", "app=gpu ended"] == scene.watches
