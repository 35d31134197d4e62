"""The thread around lists and events: what comes first, and what it falls back to (rows PL32-PL42, PL49, PL50)."""

import threading

import pytest

from agent.kubelet.pleg.cache import Cache
from agent.kubelet.pleg.events import EventType
from agent.kubelet.pleg.generator import MOST_REQUESTS, EventGenerator
from agent.wire.containers import ContainerEvent, EventKind, RuntimePod
from agent.wire.semantics import Semantics
from tests.agent.kubelet.pleg.builders import ScriptedRuntime, made
from tools.kit.waiting import wait_until

GONE = OSError("runtime away")


def refuse(_uid):
    raise GONE


class Stage:
    """A generator whose turns a test takes. `events`: does the runtime tell by itself? None: never."""

    def __init__(self, events=None, semantics=None):
        self.monotonic = 0.0
        self.events = events
        self.runtime = ScriptedRuntime()
        self.told = []
        self.generator = EventGenerator(
            self.runtime,
            Cache(newest_wins=True),
            self._deliver,
            events_come=None if events is None else lambda _monotonic: self.events,
            semantics=semantics or Semantics(),
            monotonic=lambda: self.monotonic,
        )
        self.runtime.pods = {"p": made("p", "c1=r s1=S"), "q": made("q", "c2=r s2=S")}

    def _deliver(self, event):
        self.told.append(f"{event.uid} {event.type} {event.container_id}".rstrip())
        return True

    def turns(self):
        """Until it would wait: for how long."""
        return next(pause_s for _ in range(1000) if (pause_s := self.generator.turn()) > 0)

    def take(self, kind, uid="p", container_id="c1"):
        self.generator.take(ContainerEvent(kind, uid, container_id))


def test_pl32_the_first_list_comes_at_once_the_next_a_period_after_the_end_of_one():
    stage = Stage()
    lists = stage.runtime.list_pods

    def slow(uid=""):
        stage.monotonic += 4.0
        return lists(uid)

    stage.runtime.list_pods = slow
    assert 1.0 == stage.turns()
    assert (0.0, 4.0) == (stage.generator.listed_at, stage.monotonic)


def test_pl33_a_list_that_is_due_goes_before_pods_that_were_asked_for_and_answers_them():
    stage = Stage()
    stage.turns()
    stage.monotonic = 1.0
    stage.generator.request("q")
    stage.runtime.inspected.clear()
    stage.generator.reinspect("p")
    stage.turns()
    assert (["p"], "p PodSync") == (stage.runtime.inspected, stage.told[-1])


def test_pl33_a_pod_that_was_asked_for_after_the_last_list_is_looked_at_at_once():
    stage = Stage()
    stage.turns()
    stage.monotonic = 0.5
    stage.runtime.pods["p"] = made("p", "c1=x s1=S")
    stage.generator.request("p")
    assert 0.5 == stage.turns()
    assert "p ContainerDied c1" == stage.told[-1]


def test_pl34_what_is_asked_for_behind_two_hundred_others_is_left_to_the_next_list():
    stage = Stage()
    stage.turns()
    stage.monotonic = 0.5
    for _ in range(MOST_REQUESTS):
        stage.generator.request("q")
    stage.runtime.pods["p"] = made("p", "c1=x s1=S")
    stage.generator.request("p")
    stage.told.clear()
    stage.turns()
    assert [] == stage.told
    stage.monotonic = 1.0
    stage.turns()
    assert ["p ContainerDied c1"] == stage.told


@pytest.mark.parametrize(
    ("kind", "told", "after"),
    [
        pytest.param(EventKind.CREATED, [], "c1=c s1=S", id="PL35 created: the cache alone"),
        pytest.param(EventKind.STARTED, ["p ContainerStarted c1"], "c1=r s1=S", id="PL35 started"),
        pytest.param(EventKind.STOPPED, ["p ContainerDied c1"], "c1=x s1=S", id="PL35 stopped"),
        pytest.param(EventKind.DELETED, ["p ContainerDied c1", "p ContainerRemoved c1"], "s1=S", id="PL36 removed"),
    ],
)
def test_pl35_pl36_what_the_runtime_tells_by_itself(kind, told, after):
    stage = Stage(events=True)
    stage.turns()
    stage.told.clear()
    stage.monotonic = 2.0
    stage.runtime.pods["p"] = made("p", after)
    stage.take(kind)
    assert (told, made("p", after)) == (stage.told, stage.generator.cache.get("p").pod)


@pytest.mark.parametrize(("after", "known"), [("s1=s", "sandbox"), ("", "nothing")])
def test_pl36_a_pod_whose_sandbox_is_removed_is_forgotten(after, known):
    stage = Stage(events=True)
    stage.turns()
    stage.runtime.pods["p"] = made("p", after)
    stage.take(EventKind.DELETED, container_id="s1")
    assert RuntimePod("p") == stage.generator.cache.get("p").pod, known


def test_pl36_without_the_fix_a_removed_container_stays_known_until_the_next_list():
    stage = Stage(events=True, semantics=Semantics(fix_removed_container_stays_known=False))
    stage.turns()
    stage.runtime.pods["p"] = made("p", "s1=S")
    stage.take(EventKind.DELETED)
    assert made("p", "c1=r s1=S") == stage.generator.cache.get("p").pod


def test_pl37_with_events_lists_come_every_five_minutes():
    stage = Stage(events=True)
    stage.turns()
    for second in range(1, 300):
        stage.monotonic = float(second)
        assert 0.0 < stage.turns() <= 1.0, "it looks at the stream"
    assert 0.0 == stage.generator.listed_at
    stage.monotonic = 300.0
    stage.turns()
    assert 300.0 == stage.generator.listed_at


def test_pl38_after_five_failures_lists_are_all_that_is_believed():
    stage = Stage(events=True)
    stage.turns()
    stage.events = False
    listed = []
    for second in range(1, 9):
        stage.monotonic = float(second)
        stage.turns()
        listed.append((stage.generator.listed_at, stage.generator.evented))
    assert [(float(s), s < 5) for s in range(1, 9)] == listed, "each failure makes a list"
    stage.events = True
    stage.monotonic = 9.0
    stage.turns()
    assert not stage.generator.evented
    stage.runtime.breaks["list"] = GONE
    stage.monotonic = 189.5
    stage.turns()
    assert "pleg was last seen active 3m0.5s ago; threshold is 3m0s" == stage.generator.unhealthy(189.5)


def test_pl38_fewer_failures_are_borne():
    stage = Stage(events=True)
    for second in range(20):
        stage.events = second % 5 != 0
        stage.monotonic = float(second)
        stage.turns()
    assert stage.generator.evented


def test_pl39_an_event_of_a_pod_that_cannot_be_shown_makes_it_be_looked_at():
    stage = Stage(events=True)
    stage.turns()
    stage.told.clear()
    stage.runtime.breaks["p"] = GONE
    stage.monotonic = 2.0
    stage.take(EventKind.STOPPED)
    assert ([], made("p", "c1=r s1=S")) == (stage.told, stage.generator.cache.get("p").pod)
    stage.runtime.breaks.clear()
    stage.turns()
    assert ["p PodSync"] == stage.told


@pytest.mark.parametrize("looks", ["list", "on demand"])
def test_pl48_a_pod_that_could_not_be_inspected_and_that_is_not_there_is_synced_again(looks):
    """A runtime goes away while a pod is begun: its sandbox was not made, and nobody could look whether it was."""
    stage = Stage()
    stage.turns()
    inspect, stage.runtime.pod = stage.runtime.pod, refuse
    stage.monotonic = 5.0
    if looks == "list":
        stage.generator.request = lambda _uid: None  # as with too many that wait
    stage.generator.inspect("new")
    assert GONE is stage.generator.cache.get("new").error
    stage.runtime.pod = inspect
    stage.monotonic = 5.5 if looks == "on demand" else 6.5
    stage.turns()
    assert ("new PodSync", None) == (stage.told[-1], stage.generator.cache.get("new").error)
    told = len(stage.told)
    stage.monotonic = 60.0
    stage.turns()
    assert (told, frozenset({"p", "q"})) == (len(stage.told), stage.generator.cache.uids())


def test_pl40_events_that_still_come_after_the_fall_back_are_taken():
    stage = Stage(events=False)
    for second in range(6):
        stage.monotonic = float(second)
        stage.turns()
    stage.told.clear()
    stage.monotonic = 5.5
    stage.runtime.pods["p"] = made("p", "c1=x s1=S")
    stage.take(EventKind.STOPPED)
    assert (["p ContainerDied c1"], made("p", "c1=x s1=S")) == (stage.told, stage.generator.cache.get("p").pod)


def test_pl41_a_list_that_fails_is_said_once_and_so_is_its_end(caplog):
    caplog.set_level("INFO")
    stage = Stage()
    stage.runtime.breaks["list"] = GONE
    for second in range(10):
        stage.monotonic = float(second)
        stage.turns()
    stage.runtime.breaks.clear()
    stage.runtime.breaks["q"] = GONE
    for second in range(10, 20):
        stage.monotonic = float(second)
        stage.turns()
    assert ["pods not listed", "pods listed again", "pod not inspected"] == sorted(
        (record.message for record in caplog.records),
        key=["pods not listed", "pods listed again", "pod not inspected"].index,
    )


def test_pl42_a_runtime_that_hangs_stops_neither_events_nor_health_nor_the_end():
    stage, hangs, listing = Stage(events=True), threading.Event(), threading.Event()

    def hang(_uid=""):
        listing.set()
        hangs.wait()
        return ()

    stage.runtime.list_pods = hang
    stage.generator.start()
    try:
        assert listing.wait(20.0)
        stage.take(EventKind.STARTED)
        assert ["p ContainerStarted c1"] == stage.told
        assert "pleg has yet to be successful" == stage.generator.unhealthy(1e9)
        stage.generator.stop()
    finally:
        hangs.set()


def test_its_thread_lists_and_looks_at_what_is_asked_for():
    runtime, told = ScriptedRuntime(), []
    runtime.pods = {"p": made("p", "c1=r")}
    generator = EventGenerator(
        runtime,
        Cache(newest_wins=True),
        lambda event: told.append(event.type) is None,
        events_come=lambda _monotonic: True,
        semantics=Semantics(),
    )
    generator.start()
    try:
        wait_until(lambda: told == [EventType.STARTED], timeout_s=20.0)
        runtime.pods = {"p": made("p", "c1=x")}
        generator.request("p")
        wait_until(lambda: told == [EventType.STARTED, EventType.DIED], timeout_s=20.0)
    finally:
        generator.stop()
        generator.stop()


def test_pl49_pl50_how_long_lists_took_and_how_far_they_are_apart():
    stage = Stage()
    lists = stage.runtime.list_pods

    def slow(uid=""):
        stage.monotonic += 0.2 if uid else 2.0
        stage.runtime._maybe_break("slow")
        return lists(uid)

    stage.runtime.list_pods = slow
    stage.turns()  # from 0 to 2
    stage.generator.request("p")
    stage.turns()  # to 2.2
    stage.monotonic = 3.0
    stage.runtime.breaks = {"slow": GONE}
    stage.turns()  # to 5; 3 after the last one, and there is none
    stage.monotonic = 6.0
    stage.runtime.breaks = {}
    stage.turns()
    told = stage.generator.durations()
    assert [(3, 6.0), (1, 0.2), (2, 9.0)] == [summed(h) for h in (told.lists, told.looks, told.intervals)]


def summed(histogram):
    (_, _, total), (_, _, count) = histogram.samples()[-2:]
    return count, pytest.approx(total)
