"""The bounded channel of pod events (rows PL10, PL53, PL54)."""

import pytest

from agent.kubelet.pleg.cache import Cache
from agent.kubelet.pleg.channel import CAPACITY, EventChannel
from agent.kubelet.pleg.events import EventType, PodEvent
from agent.kubelet.pleg.generator import EventGenerator
from agent.wire.semantics import Semantics
from tests.agent.kubelet.pleg.builders import ScriptedRuntime, made


def event(number: int) -> PodEvent:
    return PodEvent("p", EventType.STARTED, f"c{number}")


def test_pl53_the_capacity_is_that_of_a_kubelet() -> None:
    """plegChannelCapacity of pkg/kubelet/kubelet.go, v1.36.3; no setting, as upstream (kubernetes/kubernetes#104117,
    #103732)."""
    assert 1000 == CAPACITY


def test_pl10_the_oldest_events_stay_and_the_new_one_is_discarded() -> None:
    channel = EventChannel(2)
    assert [True, True, False] == [channel.put(event(number)) for number in range(3)]
    assert ([event(0), event(1)], []) == (channel.take(), channel.take())


def test_pl10_there_is_room_again_after_a_take() -> None:
    channel = EventChannel(1)
    channel.put(event(0))
    channel.put(event(1))
    channel.take()
    assert channel.put(event(2))


def test_pl53_that_events_are_discarded_is_logged_once_until_the_consumer_takes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A kubelet writes a line for each: ten in the same millisecond in kubernetes/kubernetes#103732."""
    channel = EventChannel(1)
    for _ in range(2):
        for number in range(5):
            channel.put(event(number))
        channel.take()
    assert ["event channel is full, events are discarded"] * 2 == [record.message for record in caplog.records]


@pytest.mark.parametrize(
    ("capacity", "expected"),
    [(3, ""), (2, "EventedPLEG: pleg event channel capacity is full with 2 events")],
)
def test_pl54_health_of_the_channel(capacity: int, expected: str) -> None:
    channel = EventChannel(capacity)
    channel.put(event(0))
    channel.put(event(1))
    assert expected == channel.full()


@pytest.mark.parametrize("stuck_s", [0.0, 600.0])
def test_pl10_a_full_channel_stops_neither_lists_nor_health(stuck_s: float) -> None:
    """A generator that waits for room makes the node not ready, and then nobody takes: kubernetes/kubernetes#72482."""
    runtime, channel, times = ScriptedRuntime(), EventChannel(1), [0.0]
    runtime.pods = {"p": made("p", "c1=r c2=r c3=r s1=S")}
    generator = EventGenerator(
        runtime, Cache(), channel.put, events_come=None, semantics=Semantics(), monotonic=lambda: times[0]
    )
    generator.turn()
    times[0] += stuck_s + 1.0
    generator.turn()
    assert ("", 3, 3) == (
        generator.unhealthy(times[0]),
        generator.discarded,
        len(generator.cache.get("p").pod.running),
    )


def test_pl10_what_was_discarded_is_not_found_again_by_a_list() -> None:
    """As in a kubelet (kubernetes/kubernetes#136408 was closed): the pod's next sync is of the cache, which is true."""
    runtime, channel = ScriptedRuntime(), EventChannel(0)
    runtime.pods = {"p": made("p", "c1=r")}
    times = iter(range(100))
    generator = EventGenerator(
        runtime, Cache(), channel.put, events_come=None, semantics=Semantics(), monotonic=lambda: float(next(times) * 2)
    )
    for _ in range(6):
        generator.turn()
    assert (1, ["p"]) == (generator.discarded, runtime.inspected)
