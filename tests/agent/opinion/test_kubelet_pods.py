"""Whose word on the pods is taken while API server and kubelet come and go, second by second."""

import logging
from collections.abc import Sequence

import pytest

from agent.cri.base import Trouble
from agent.opinion.kubelet_pods import ASK_S, KEPT_S, KubeletPods
from agent.opinion.selection import Chosen, HealthPods
from agent.podsapi.base import PodsApiError
from agent.wire.pod import PodObject, pod_from_object
from tests.agent.opinion.test_pods import item
from tools.kit.clock import Clock

LABELS = {"app": "health"}
HEALTH = HealthPods("ns", "app=health", "health")
THEIRS = pod_from_object(item("theirs"))


class Scene:
    """API server, kubelet and who asks it. trouble: why it does not answer."""

    def __init__(self, *, asked: bool = True) -> None:
        self.clock = Clock(1000.0)
        self.synced = self.news = True
        self.known = [THEIRS]
        self.items: list[PodObject] = [item("ours", labels=LABELS)]
        self.trouble: Trouble | None = None
        self.connected = self.questions = 0
        self.changes: list[None] = []
        self.local = KubeletPods(
            self,
            "n",
            [HEALTH],
            lambda: self.changes.append(None),
            self.connect if asked else None,
            monotonic=self.clock,
        )

    def pods(self) -> list[Chosen]:
        return [Chosen(pod, frozenset({HEALTH})) for pod in self.known]

    def connect(self) -> "Scene":
        self.connected += 1
        if self.trouble is Trouble.NO_SOCKET:
            raise PodsApiError("/s", self.trouble)
        return self

    def list_pods(self, within_s: float) -> Sequence[PodObject]:
        assert within_s > 0
        self.questions += 1
        if self.trouble is not None:
            raise PodsApiError("/s", self.trouble, "because")
        return self.items

    def close(self) -> None:
        self.connected -= 1

    def away(self, *, synced: bool = True) -> None:
        self.news, self.synced = False, synced

    def turn(self) -> None:
        self.clock.time += self.local.turn()

    @property
    def told(self) -> tuple[list[str], bool, bool, bool]:
        """Of whom; whether anybody has told, of late, and whether that is the kubelet."""
        local = self.local
        return [one.pod.uid for one in local.pods()], local.synced, local.news, local.by_kubelet


def test_while_the_api_server_tells_the_kubelet_is_not_asked() -> None:
    scene = Scene()
    for _ in range(5):
        scene.turn()
    assert ((["theirs"], True, True, False), 0) == (scene.told, scene.connected)


@pytest.mark.parametrize("synced", [pytest.param(True, id="since a while"), pytest.param(False, id="since the start")])
def test_while_it_is_away_the_kubelets_word_is_taken(synced: bool) -> None:
    scene = Scene()
    scene.away(synced=synced)
    assert (["theirs"], synced, False, False) == scene.told
    scene.turn()
    assert ((["ours"], True, True, True), 1) == (scene.told, len(scene.changes))
    scene.items = [item("ours", labels=LABELS), item("new", labels=LABELS)]
    scene.turn()
    assert ((["ours", "new"], True, True, True), 1) == (scene.told, scene.connected)


def test_it_is_back_and_its_word_is_taken_at_once() -> None:
    scene = Scene()
    scene.away()
    scene.turn()
    scene.news = True
    assert (["theirs"], True, True, False) == scene.told
    scene.turn()
    assert 0 == scene.connected, "and nobody is asked any more"
    scene.away()
    assert (["theirs"], True, False, False) == scene.told, "what the kubelet had told then is old"


@pytest.mark.parametrize(
    "one",
    [
        pytest.param(item("x", labels={"app": "other"}), id="of other labels"),
        pytest.param(item("x"), id="without labels"),
        pytest.param(item("x", node="m", labels=LABELS), id="of another node"),
        pytest.param(item("x", owner="other", labels=LABELS), id="of another DaemonSet"),
    ],
)
def test_of_all_pods_the_health_pods_are_taken(one: PodObject) -> None:
    scene = Scene()
    scene.away()
    scene.items = [one, item("ours", labels=LABELS)]
    scene.turn()
    assert ["ours"] == scene.told[0]


def test_sp41_static_pods_of_the_kubelet_are_known_as_by_their_mirrors() -> None:
    scene = Scene()
    scene.away()
    scene.items = [item("static", labels=LABELS, annotations={"kubernetes.io/config.source": "file"})]
    scene.turn()
    assert ["static"] == scene.told[0]


def test_a_kubelet_that_falls_silent_too_leaves_the_last_known_pods() -> None:
    scene = Scene()
    scene.away()
    scene.turn()
    scene.trouble = Trouble.HANGS
    for _ in range(int(KEPT_S / ASK_S) + 1):
        scene.turn()
    assert (["ours"], True, False, False) == scene.told
    scene.trouble = None
    scene.turn()
    assert (["ours"], True, True, True) == scene.told


@pytest.mark.parametrize(
    ("trouble", "lines"),
    [
        pytest.param(Trouble.NO_SOCKET, 0, id="a kubelet without it"),
        pytest.param(Trouble.NOT_OFFERED, 0, id="one that does not offer it"),
        pytest.param(Trouble.NOBODY_LISTENS, 0, id="one that has ended"),
        pytest.param(Trouble.HANGS, 1, id="one that hangs"),
        pytest.param(Trouble.GARBAGE, 1, id="one that talks nonsense"),
    ],
)
def test_a_kubelet_that_tells_none_leaves_the_last_known_pods_and_is_said_once(
    trouble: Trouble, lines: int, caplog: pytest.LogCaptureFixture
) -> None:
    scene = Scene()
    scene.trouble = trouble
    scene.away()
    with caplog.at_level(logging.WARNING):
        for _ in range(50):
            scene.turn()
    assert ((["theirs"], True, False, False), lines) == (scene.told, len(caplog.records))


def test_where_no_socket_is_named_nobody_is_asked() -> None:
    scene = Scene(asked=False)
    scene.away()
    scene.turn()
    assert ((["theirs"], True, False, False), 0) == (scene.told, scene.questions)


def test_entries_that_become_others_take_the_pods_that_the_kubelet_had_told() -> None:
    scene = Scene()
    scene.away()
    scene.turn()
    scene.local.follow([HealthPods("ns", "app in (health)", "health")])
    assert ["ours"] == scene.told[0], "at once"
    scene.items = [item("gpu", labels={"app": "gpu"})]
    scene.local.follow([HealthPods("ns", "app=gpu", "health")])
    before = scene.told[0]
    scene.turn()
    assert ([], ["gpu"]) == (before, scene.told[0])
