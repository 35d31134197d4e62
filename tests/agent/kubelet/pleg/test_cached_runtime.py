"""The runtime as the sync loop sees it: from memory, and with what the loop has just done (rows PL43-PL46)."""

import pytest

from agent.kubelet.pleg.cache import Cache
from agent.kubelet.pleg.cached_runtime import CachedRuntime
from agent.kubelet.pleg.events import EventType
from agent.kubelet.pleg.generator import EventGenerator
from agent.kubelet.runtime.base import StartError
from agent.processes.command import RuntimeUnavailable
from agent.wire.containers import RuntimePod
from agent.wire.model import Container
from agent.wire.semantics import Semantics
from tests.agent.kubelet.status.builders import make_pod
from tools.fakes.runtime import FakeRuntime

POD = make_pod("c")
UID = POD.uid
C = Container("c")


class View:
    """A runtime that tells nothing by itself. `woken`: pods that the loop was told to look at."""

    def __init__(self):
        self.time = 0.0
        self.runtime = FakeRuntime(self.clock)
        self.woken = []
        self.generator = EventGenerator(
            self.runtime,
            Cache(newest_wins=True),
            lambda event: self.woken.append(event.type) is None,
            events_come=None,
            semantics=Semantics(),
            monotonic=self.clock,
        )
        self.seen = CachedRuntime(self.runtime, self.generator, wake=self.woken.append)

    def clock(self):
        self.time += 0.001
        return self.time

    def names(self):
        return [container.name for container in self.seen.pod(UID).containers]


def test_pl43_before_the_first_list_nothing_is_known_and_the_loop_is_woken_when_it_is():
    view = View()
    assert not view.seen.ready(UID)
    assert [] == view.woken
    view.generator.turn()
    assert ([UID], True) == (view.woken, view.seen.ready(UID))


def test_pl44_what_the_loop_did_itself_is_seen_at_once():
    view = View()
    view.generator.turn()
    view.seen.prepare_pod(POD)
    assert "127.0.1.2" == view.seen.pod(UID).ip
    container_id = view.seen.start_container(POD, C, 0)
    assert ["c"] == view.names()
    view.runtime.end("c")
    view.seen.remove_container(container_id)
    assert [] == view.names()
    view.seen.remove_pod(UID)
    assert (RuntimePod(UID), frozenset()) == (view.seen.pod(UID), view.seen.known_pods())


def test_pl44_so_is_what_came_of_a_start_that_failed():
    view = View()
    view.generator.turn()
    view.runtime.pods[UID] = RuntimePod(UID)
    view.runtime.refuse["c"] = StartError("RunContainerError", "no")

    def leaves_a_record(pod, container, restart_count):
        view.runtime.refuse.clear()
        FakeRuntime.start_container(view.runtime, pod, container, restart_count)
        view.runtime.end("c", 128)
        raise StartError("RunContainerError", "no")

    view.runtime.start_container = leaves_a_record
    with pytest.raises(StartError):
        view.seen.start_container(POD, C, 0)
    assert ["c"] == view.names()


def test_pl45_what_others_do_is_seen_when_it_is_told():
    view = View()
    view.generator.turn()
    view.seen.start_container(POD, C, 0)
    view.runtime.end("c")
    assert 1 == len(view.seen.pod(UID).running)
    view.generator.request(UID)
    view.generator.turn()
    assert (0, True) == (len(view.seen.pod(UID).running), EventType.DIED in view.woken)


def test_pl46_a_pod_that_cannot_be_inspected_after_it_was_changed_is_looked_at_soon():
    view = View()
    view.generator.turn()
    pod_of = view.runtime.pod

    def away(_uid):
        raise OSError("runtime away")

    view.runtime.pod = away
    view.seen.start_container(POD, C, 0)
    with pytest.raises(RuntimeUnavailable, match="runtime away"):
        view.seen.pod(UID)
    view.runtime.pod = pod_of
    view.generator.turn()
    assert (["c"], True) == (view.names(), EventType.STARTED in view.woken)


def test_pl44_at_the_end_what_has_ended_is_seen():
    view = View()
    view.generator.turn()
    view.seen.start_container(POD, C, 0)
    assert view.seen.end_all(0.4, wait_s=0.7)
    assert () == view.seen.pod(UID).running


def test_an_older_look_does_not_hide_what_the_loop_has_started():
    """It began before the start and came behind it: the container would be started twice."""
    view = View()
    view.runtime.prepare_pod(POD)
    look = view.runtime.pod

    def started_meanwhile(uid):
        view.runtime.pod = look
        seen = look(uid)
        view.seen.start_container(POD, C, 0)
        return seen

    view.runtime.pod = started_meanwhile
    view.generator.turn()
    assert ["c"] == view.names()
