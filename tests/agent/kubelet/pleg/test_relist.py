"""What a list of all pods, or a look at one, tells and keeps (rows PL6-PL19, PL28-PL31, PL52)."""

import pytest

from agent.kubelet.pleg.relist import EVENTED
from agent.wire.containers import RuntimePod
from tests.agent.kubelet.pleg.builders import CriRuntime, Scene, ScriptedRuntime, made
from tools.kit.cases import cases

FIRST = {"p1": "c1=x c2=r c3=u", "p2": "c1=x"}
GONE = OSError("runtime away")


@pytest.fixture(autouse=True, params=[ScriptedRuntime, CriRuntime], ids=["a runtime of ours", "one behind the CRI"])
def runtime_type(request, monkeypatch):
    monkeypatch.setattr(Scene, "runtime_type", request.param)


def test_pl6_the_first_list_tells_of_all_but_what_is_unknown():
    scene = Scene()
    scene.show(**FIRST)
    scene.relist.relist(1.0)
    assert ["p1 ContainerDied c1", "p1 ContainerStarted c2", "p2 ContainerDied c1"] == scene.told()


def test_pl7_the_same_list_again_tells_nothing_and_inspects_nothing():
    scene = Scene()
    scene.show(**FIRST)
    scene.relist.relist(1.0)
    scene.told()
    scene.runtime.inspected.clear()
    scene.relist.relist(2.0)
    assert ([], []) == (scene.told(), scene.runtime.inspected)


def test_pl8_what_has_changed_since():
    scene = Scene()
    scene.show(**FIRST)
    scene.relist.relist(1.0)
    scene.told()
    scene.show(p1="c2=x c3=r", p2="c4=r")
    scene.relist.relist(2.0)
    expected = [
        *("p1 ContainerRemoved c1", "p1 ContainerDied c2", "p1 ContainerStarted c3"),
        *("p2 ContainerRemoved c1", "p2 ContainerStarted c4"),
    ]
    assert expected == scene.told()


@pytest.mark.parametrize("relists", [1, 3])
def test_pl9_a_pod_that_goes_is_told_of_once_and_forgotten(relists):
    scene = Scene()
    scene.show(p="c2=r c3=x")
    scene.relist.relist(1.0)
    scene.told()
    scene.show()
    for number in range(relists):
        scene.relist.relist(2.0 + number)
    expected = ["p ContainerDied c2", "p ContainerRemoved c2", "p ContainerRemoved c3"]
    assert (expected, frozenset(), {}) == (scene.told(), scene.cache.uids(), scene.relist._records)


def test_pl10_what_there_is_no_room_for_is_lost_and_counted_and_the_cache_is_true():
    scene = Scene(room=4)
    scene.show(p="c1=r c2=r c3=r c4=r c5=r")
    scene.relist.relist(1.0)
    assert ([f"p ContainerStarted c{n}" for n in (1, 2, 3, 4)], 1) == (scene.told(), scene.relist.discarded)
    assert 5 == len(scene.cache.get("p").pod.containers)
    scene.relist.relist(2.0)
    assert [] == scene.told()


def test_pl11_a_pod_that_cannot_be_inspected_is_told_of_when_it_can():
    scene = Scene()
    scene.show(p0="c1=r", p1="c2=r")
    scene.runtime.breaks["p1"] = GONE
    listed = scene.relist.relist(1.0)
    assert ((("p1", GONE),), ["p0 ContainerStarted c1"]) == (listed.failed, scene.told())
    assert GONE is scene.cache.get("p1").error
    scene.runtime.breaks.clear()
    assert () == scene.relist.relist(2.0).failed
    assert (["p1 ContainerStarted c2"], None) == (scene.told(), scene.cache.get("p1").error)


def test_pl11_what_cannot_be_inspected_keeps_nobody_else_from_being_told():
    scene = Scene()
    scene.show(p0="c1=r", p1="c2=r", p2="c3=r")
    scene.runtime.breaks["p1"] = ValueError("garbage")
    scene.relist.relist(1.0)
    assert ["p0 ContainerStarted c1", "p2 ContainerStarted c3"] == scene.told()


@pytest.mark.parametrize("error", [GONE, ValueError("garbage")], ids=["away", "garbage"])
def test_pl12_without_a_list_nothing_changes(error):
    scene = Scene()
    scene.show(p="c1=r")
    scene.relist.relist(1.0)
    scene.told()
    scene.show()
    scene.runtime.breaks["list"] = error
    assert error is scene.relist.relist(2.0).error
    assert ([], 1.0, frozenset({"p"})) == (scene.told(), scene.relist.listed_at, scene.cache.uids())
    assert scene.cache.newer_than("p", 1.0, lambda _entry: None) is None, "the cache has not grown newer"


@cases(
    "marked, pods, breaks, told, still_marked, kept",
    ("PL13 asked, inspected", 1, {"p": "c1=r"}, False, ["p PodSync"], False, "c1=r"),
    ("PL13 asked twice, inspected", 2, {"p": "c1=r"}, False, ["p PodSync"], False, "c1=r"),
    ("PL14 asked, cannot be inspected", 1, {"p": "c1=r"}, True, [], True, ""),
    ("PL15 not asked, not inspected", 0, {"p": "c1=r"}, True, [], False, "c1=r"),
    ("PL13 asked, and has changed: no PodSync", 1, {"p": "c1=x"}, False, ["p ContainerDied c1"], False, "c1=x"),
)
def test_pl13_pl14_pl15_what_is_asked_for_is_inspected(marked, pods, breaks, told, still_marked, kept):
    scene = Scene()
    scene.show(p="c1=r")
    scene.relist.relist(1.0)
    scene.told()
    for _ in range(marked):
        scene.relist.reinspect("p")
    scene.show(**pods)
    if breaks:
        scene.runtime.breaks["p"] = GONE
    scene.relist.relist(2.0)
    assert (told, still_marked) == (scene.told(), "p" in scene.relist._marked)
    assert made("p", kept) == scene.cache.get("p").pod


def test_pl16_a_marked_pod_that_is_gone_gets_its_podsync_and_no_entry():
    scene = Scene()
    scene.show(p="c1=r")
    scene.runtime.breaks["p"] = GONE
    scene.relist.relist(1.0)  # never told of, and marked
    scene.show()
    scene.relist.relist(2.0)
    assert (["p PodSync"], frozenset()) == (scene.told(), scene.cache.uids())


def test_pl16_a_mark_for_a_pod_that_the_runtime_does_not_know_waits_for_it():
    scene = Scene()
    scene.relist.reinspect("p")
    scene.relist.relist(1.0)
    assert [] == scene.told()
    scene.show(p="c1=c")
    scene.relist.relist(2.0)
    assert ([], frozenset()) == (scene.told(), frozenset(scene.relist._marked)), "Changed takes the place of PodSync"


def test_pl17_a_container_that_is_only_made_is_inspected_and_nothing_is_told():
    scene = Scene()
    scene.show(p="c1=c")
    scene.relist.relist(1.0)
    assert ([], ["p"], made("p", "c1=c")) == (scene.told(), scene.runtime.inspected, scene.cache.get("p").pod)


@pytest.mark.parametrize(
    ("after", "ip", "kept"),
    [
        pytest.param("c1=x s1=s", "", "10.0.0.1", id="no sandbox is ready"),
        pytest.param("c1=x", "", "10.0.0.1", id="no sandbox at all"),
        pytest.param("c1=r s1=s s2=S", "", "", id="a sandbox is ready without an address"),
        pytest.param("c1=x s1=s", "10.0.0.2", "10.0.0.2", id="it has another one"),
    ],
)
def test_pl18_the_address_of_a_pod_whose_network_is_gone_is_kept(after, ip, kept):
    scene = Scene()
    scene.runtime.pods = {"p": made("p", "c1=r s1=S", "10.0.0.1")}
    scene.relist.relist(1.0)
    scene.runtime.pods = {"p": made("p", after, ip)}
    scene.relist.relist(2.0)
    assert kept == scene.cache.get("p").pod.ip


def test_pl18_an_error_between_loses_the_address():
    scene = Scene()
    scene.runtime.pods = {"p": made("p", "c1=r s1=S", "10.0.0.1")}
    scene.relist.relist(1.0)
    scene.runtime.pods = {"p": made("p", "c1=x s1=s")}
    scene.runtime.breaks["p"] = GONE
    scene.relist.relist(2.0)
    scene.runtime.breaks.clear()
    scene.relist.relist(3.0)
    assert "" == scene.cache.get("p").pod.ip


def test_pl19_the_cache_is_as_new_as_the_beginning_of_the_list_once_all_is_in_it():
    scene = Scene()
    scene.show(p="c1=r")
    got = []
    scene.cache.newer_than("p", 0.5, lambda entry: got.append(entry.pod))
    scene.cache.newer_than("other", 0.5, lambda entry: got.append(entry.pod))
    scene.relist.relist(1.0)
    assert [made("p", "c1=r"), RuntimePod("other")] == got


@cases(
    "listed_at, monotonic, expected",
    ("PL28 never listed", None, 600.0, "pleg has yet to be successful"),
    ("PL29 a minute ago", 10.0, 70.0, ""),
    ("PL29 as long ago as is allowed", 10.0, 190.0, ""),
    ("PL29 longer ago than that", 10.0, 190.25, "pleg was last seen active 3m0.25s ago; threshold is 3m0s"),
    ("PL29 the clock was set back", 10.0, 5.0, ""),
)
def test_pl28_pl29_is_it_healthy(listed_at, monotonic, expected):
    scene = Scene()
    if listed_at is not None:
        scene.relist.relist(listed_at)
    assert expected == scene.relist.unhealthy(monotonic)


def test_pl29_lists_that_fail_let_it_grow_old_and_one_that_comes_heals_it():
    scene = Scene()
    scene.relist.relist(0.0)
    scene.runtime.breaks["list"] = GONE
    for second in range(1, 182):
        scene.relist.relist(float(second))
    assert "pleg was last seen active 3m1s ago; threshold is 3m0s" == scene.relist.unhealthy(181.0)
    scene.runtime.breaks.clear()
    scene.relist.relist(182.0)
    assert "" == scene.relist.unhealthy(182.0)


def test_pl29_with_events_it_may_be_older():
    scene = Scene(pace=EVENTED)
    scene.relist.relist(0.0)
    expected = ("", "pleg was last seen active 10m0.5s ago; threshold is 10m0s")
    assert expected == (scene.relist.unhealthy(600.0), scene.relist.unhealthy(600.5))


def test_pl30_a_look_at_one_pod_tells_of_it_alone():
    scene = Scene()
    scene.show(p="c1=r", q="c2=r")
    freed = []
    scene.cache.newer_than("p", 0.5, lambda _entry: freed.append("p"))
    scene.cache.newer_than("q", 0.5, lambda _entry: freed.append("q"))
    scene.relist.relist_pod("p", 1.0)
    assert (["p ContainerStarted c1"], ["p"], ["p"]) == (scene.told(), freed, scene.runtime.inspected)
    assert scene.relist.listed_at is None, "health is of whole lists"


def test_pl30_a_look_that_finds_nothing_new_says_so_to_who_waits():
    scene = Scene()
    scene.show(p="c1=r")
    scene.relist.relist(1.0)
    freed = []
    scene.cache.newer_than("p", 1.5, freed.append)
    scene.relist.relist_pod("p", 2.0)
    assert [(1.0, 2.0)] == [(entry.modified, entry.observed) for entry in freed]


@pytest.mark.parametrize("breaks", [{}, {"list": GONE}], ids=["it is not there", "the runtime is away"])
def test_pl31_a_look_that_finds_no_pod_is_left_to_the_next_list(breaks):
    scene = Scene()
    scene.show(p="c1=r")
    scene.relist.relist(1.0)
    scene.told()
    scene.show()
    scene.runtime.breaks = breaks
    assert breaks.get("list") is scene.relist.relist_pod("p", 2.0).error
    assert ([], frozenset({"p"})) == (scene.told(), scene.cache.uids())
    scene.runtime.breaks = {}
    scene.relist.relist(3.0)
    assert ["p ContainerDied c1", "p ContainerRemoved c1"] == scene.told()


def test_pl26_what_an_event_has_brought_meanwhile_is_not_replaced_and_the_list_tries_again():
    scene = Scene(newest_wins=True)
    scene.show(p="c1=r")
    newer = made("p", "c1=x")
    scene.cache.set(newer, None, 5.0)
    scene.relist.relist(4.0)
    assert (newer, []) == (scene.cache.get("p").pod, scene.told())
    scene.relist.relist(6.0)
    assert (made("p", "c1=r"), ["p ContainerStarted c1"]) == (scene.cache.get("p").pod, scene.told())


def test_thousands_of_pods_are_told_of_once():
    scene = Scene(room=100_000)
    scene.show(**{f"p{n}": "c1=r c2=r s1=S" for n in range(3000)})
    scene.relist.relist(1.0)
    scene.relist.relist(2.0)
    assert (9000, 3000) == (len(scene.told()), len(scene.cache.uids()))


def test_a_runtime_that_lists_a_pod_twice_or_a_strange_one_breaks_nothing():
    scene = Scene()
    scene.runtime.list_pods = lambda _uid="": (made("p", "c1=r"), made("p", "c1=x"), made("", ""))
    scene.relist.relist(1.0)
    scene.relist.relist_pod("q", 2.0)
    assert ["p ContainerDied c1"] == scene.told()


@cases(
    "shown, pods, containers",
    ("nothing", {}, 0, {}),
    ("a pod with one that has ended", {"p": "c1=r c2=x s1=S"}, 1, {"running": 1, "exited": 1}),
    ("a pod counts once, one without a sandbox not", {"p": "c1=r s1=S s2=S", "q": "c2=r"}, 1, {"running": 2}),
    ("one whose sandbox has ended", {"p": "c1=x c2=u s1=s"}, 0, {"exited": 1, "unknown": 1}),
)
def test_pl52_what_runs_by_the_last_list(shown, pods, containers):
    scene = Scene()
    scene.show(p="c1=r c9=r s1=S")
    scene.relist.relist(1.0)
    scene.show(**{"p": "", **shown})
    scene.relist.relist(2.0)
    none = {"created": 0, "running": 0, "exited": 0, "unknown": 0}
    counted = {phase.value: count for phase, count in scene.relist.running.containers.items()}
    assert (pods, {**none, **containers}) == (scene.relist.running.pods, counted)


def test_pl52_a_list_that_fails_leaves_the_counts():
    scene = Scene()
    scene.show(p="c1=r s1=S")
    scene.relist.relist(1.0)
    scene.runtime.breaks = {"list": GONE}
    scene.relist.relist(2.0)
    assert 1 == scene.relist.running.pods
