"""Which Events are written: the rows EV, as client-go's events_cache_test.go has them."""

import pytest

from agent.kubelet.events.correlate import COMBINED, NAME_MAX, Correlator, event_name
from agent.kubelet.events.event import NORMAL, WARNING, About, Event

POD = About("Pod", "web-0", "shop", "u1", "spec.containers{c}")
OTHER = About("Pod", "web-1", "shop", "u2")
AT = 1_000.0


def unhealthy(text: str = "probe failed", about: About = POD, type_: str = WARNING, reason: str = "Unhealthy") -> Event:
    return Event(about, type_, reason, text)


def written(correlator: Correlator, events: list[tuple[float, Event]]) -> list[tuple[str, int] | None]:
    """Message and count of each, None for one that is not written; times in seconds after the first."""
    found = [correlator.correlate(event, monotonic=at, wall=AT + at) for at, event in events]
    return [None if one is None else (one.event.message, one.count) for one in found]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param([(0, unhealthy())], [("probe failed", 1)], id="EV1: the first one is created"),
        pytest.param(
            [(0, unhealthy()), (1, unhealthy()), (5_000, unhealthy())],
            [("probe failed", 1), ("probe failed", 2), ("probe failed", 3)],
            id="EV2: the same again is counted, however late",
        ),
        pytest.param(
            [
                (0, unhealthy("a")),
                (0, unhealthy("b")),
                (0, unhealthy("a", OTHER)),
                (0, unhealthy("a", reason="BackOff")),
            ],
            [("a", 1), ("b", 1), ("a", 1), ("a", 1)],
            id="EV3: another text, object or reason is another Event",
        ),
        pytest.param(
            [(i, unhealthy(f"text {i}")) for i in range(12)],
            [
                *((f"text {i}", 1) for i in range(9)),
                (f"{COMBINED}text 9", 1),
                (f"{COMBINED}text 10", 2),
                (f"{COMBINED}text 11", 3),
            ],
            id="EV4: from the tenth text of one reason on they are one, with the newest text",
        ),
        pytest.param(
            [*((i, unhealthy(f"text {i}")) for i in range(9)), (8 + 600, unhealthy("late"))],
            [*((f"text {i}", 1) for i in range(9)), (f"{COMBINED}late", 1)],
            id="EV5: ten minutes after the last they still are similar",
        ),
        pytest.param(
            [*((i, unhealthy(f"text {i}")) for i in range(9)), (8 + 601, unhealthy("late"))],
            [*((f"text {i}", 1) for i in range(9)), ("late", 1)],
            id="EV5: later they are not",
        ),
        pytest.param(
            [*((0, unhealthy()) for _ in range(27)), (299, unhealthy()), (300, unhealthy())],
            [*(("probe failed", i) for i in range(1, 26)), None, None, None, ("probe failed", 29)],
            id="EV6: of one object 25 at once, then one in five minutes; the others are in its count",
        ),
        pytest.param(
            [*((0, unhealthy()) for _ in range(26)), (0, unhealthy(type_=NORMAL)), (0, unhealthy(about=OTHER))],
            [*(("probe failed", i) for i in range(1, 26)), None, ("probe failed", 1), ("probe failed", 1)],
            id="EV7: another type, and another object, have their own 25",
        ),
    ],
)
def test_what_is_written(events: list[tuple[float, Event]], expected: list[tuple[str, int] | None]) -> None:
    assert expected == written(Correlator(), events)


def test_ev2_what_is_counted_keeps_its_name_and_its_first_time() -> None:
    correlator = Correlator()
    first, again = (correlator.correlate(unhealthy(), monotonic=at, wall=AT + at) for at in (0.0, 7.0))
    assert first is not None
    assert again is not None
    assert (first.name, AT, AT + 7) == (again.name, again.first_at, again.last_at)


def test_ev8_who_was_used_longest_ago_is_forgotten() -> None:
    correlator = Correlator(entries=2)
    one, two, three = (unhealthy(about=About("Pod", name, "shop", name)) for name in "abc")
    assert [("probe failed", count) for count in (1, 1, 2, 1, 3, 1)] == written(
        correlator, [(0, one), (0, two), (0, one), (0, three), (0, one), (0, two)]
    )


def test_ten_thousand_texts_of_ten_thousand_pods_are_remembered_within_bounds() -> None:
    correlator = Correlator(entries=16)
    for number in range(10_000):
        correlator.correlate(unhealthy(f"t{number}", About("Pod", f"p{number}")), monotonic=0.0, wall=AT)
    sizes = [len(one._entries) for one in (correlator._similar, correlator._written, correlator._spam)]
    assert [16, 16, 16] == sizes


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("web-0", "web-0.e8d4a51000", id="a pod's"),
        pytest.param("a" * 253, "a" * (NAME_MAX - 11) + ".e8d4a51000", id="the longest there is"),
        pytest.param("a" * 241 + "." + "b" * 11, "a" * 241 + ".e8d4a51000", id="cut at a dot"),
    ],
)
def test_the_name_of_an_event(name: str, expected: str) -> None:
    assert expected == event_name(name, AT)
