"""When a kick is due, played in virtual time against a server that answers as a test says."""

import heapq
from collections.abc import Callable, Sequence

import pytest

from extender.outlets.schedule import FEW, Schedule

NODES = [f"n{i}" for i in range(1000)]
HOUR_S = 3600.0

Answer = Callable[[float, str], str | float | None]


def taken(_at: float, _node: str) -> None:
    """A server that takes each write."""


def play(
    releases: Sequence[tuple[float, Sequence[str]]],
    answer: Answer = taken,
    *,
    until_s: float = HOUR_S,
    repeat_after_s: float = 2.0,
) -> list[tuple[float, str]]:
    """The writes, as (second, node). answer: None if it is taken, else "gone", "forbidden", "failed" or Retry-After."""
    schedule = Schedule(repeat_after_s=repeat_after_s, random=lambda: 0.0)
    events = list(releases)
    heapq.heapify(events)
    writes = []
    while True:
        at = min(events[0][0] if events else until_s, schedule.next_at())
        if at >= until_s:
            return writes
        while events and events[0][0] <= at:
            released_at, nodes = heapq.heappop(events)
            schedule.request(nodes, released_at)
        schedule.give_up(at)
        node = schedule.take(at)
        if node is None:
            continue
        writes.append((round(at, 6), node))
        result = answer(at, node)
        if result is None:
            schedule.sent()
        elif result == "gone":
            schedule.gone(node)
        elif result == "forbidden":
            schedule.forbidden(at)
        else:
            schedule.failed(at, result if isinstance(result, float) else None)


def seconds(writes: Sequence[tuple[float, str]]) -> list[float]:
    return [at for at, _ in writes]


@pytest.mark.parametrize(
    ("releases", "expected"),
    [
        pytest.param([(10.0, ["n1"])], [10.0, 12.0], id="X55: at once, and once more two seconds later"),
        pytest.param([(10.0, NODES)], [10.0, 12.0], id="a thousand nodes released together are one node"),
        pytest.param(
            [(10.0 + i / 300, [NODES[i]]) for i in range(300)],
            [10.0, 11.0, 13.0],
            id="three hundred nodes released within a second: the first at once, the others together",
        ),
        pytest.param([(10.0, ["n1"]), (10.1, ["n2"])], [10.0, 11.0, 13.0], id="never two within a second"),
        pytest.param([(10.0, ["n1"]), (11.9, ["n2"])], [10.0, 11.9, 13.9], id="a kick is the repeat of the one before"),
        pytest.param([(10.0, ["n1"]), (12.1, ["n2"])], [10.0, 12.0, 13.0, 15.0], id="soon after a repeat"),
        pytest.param([(10.0, ["n1"]), (20.0, ["n2"])], [10.0, 12.0, 20.0, 22.0], id="at once after a quiet time"),
    ],
)
def test_releases_and_the_kicks_that_follow(releases, expected) -> None:
    assert expected == seconds(play(releases))


def test_without_a_repeat() -> None:
    assert [10.0] == seconds(play([(10.0, ["n1"])], repeat_after_s=0.0))


def test_a_release_every_fifth_of_a_second_is_one_kick_a_second_and_waits_no_longer() -> None:
    releases = [(i / 5, [f"n{i}"]) for i in range(300)]
    kicks = seconds(play(releases))
    assert 60 + 2 >= len(kicks)
    assert all(any(0 <= kick - at <= 1.0 for kick in kicks) for at, _ in releases)


# Nodes that flap.

FLAPS = [(float(i), ["n1"]) for i in range(20)]


def test_twenty_releases_of_one_node_in_twenty_seconds_are_few_kicks() -> None:
    assert [0.0, 2.0, 4.0, 10.0, 12.0, 18.0, 20.0, 26.0, 28.0] == seconds(play(FLAPS))


def test_a_flapping_node_holds_up_no_other_one() -> None:
    kicks = seconds(play([*FLAPS, (5.5, ["n2"])]))
    assert 5.5 in kicks


def test_no_release_of_a_flapping_node_waits_longer_than_its_limit() -> None:
    kicks = seconds(play(FLAPS))
    assert all(any(0 <= kick - at <= 8.0 for kick in kicks) for at, _ in FLAPS)


def test_a_node_that_was_calm_for_ten_seconds_is_kicked_at_once_again() -> None:
    assert 40.0 in seconds(play([*FLAPS, (40.0, ["n1"])]))


# Servers that do not take it.


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param("failed", [0.0, 0.2, 0.6, 1.4, 3.0, 6.2, 12.6, 22.6, 32.6], id="doubling up to a limit"),
        pytest.param(5.0, [0.0, 5.0, 10.0, 15.0, 20.0, 25.0, 31.4], id="not before the server wants it"),
    ],
)
def test_what_was_not_taken_is_tried_again(answer, expected) -> None:
    assert expected == seconds(play([(0.0, ["n1"])], lambda *_: answer, until_s=40.0))


def test_a_release_does_not_shorten_the_pause_after_a_failure() -> None:
    writes = play([(at / 10, ["n1"]) for at in range(300)], lambda *_: "failed", until_s=30.0)
    assert [0.0, 0.2, 0.6, 1.4, 3.0, 6.2, 12.6, 22.6] == seconds(writes)


def test_a_repeat_that_failed_stays_one() -> None:
    answers = iter([None, "failed", None])
    assert [0.0, 2.0, 2.2] == seconds(play([(0.0, ["n1"])], lambda *_: next(answers)))


def test_tried_for_five_minutes_after_the_last_release_and_never_again() -> None:
    writes = seconds(play([(0.0, ["n1"]), (60.0, ["n2"])], lambda *_: "failed"))
    assert (350.0 < writes[-1] < 360.0, len(writes)) == (True, 41)


def test_forbidden_is_not_tried_again() -> None:
    assert [0.0] == seconds(play([(0.0, NODES)], lambda *_: "forbidden"))


def test_an_hour_of_releases_that_are_all_forbidden_is_one_write_a_minute() -> None:
    writes = play([(float(at), [f"n{at % 50}"]) for at in range(3600)], lambda *_: "forbidden")
    assert 60 == len(writes)


def test_a_release_soon_after_a_refusal_is_not_lost_when_the_right_is_given() -> None:
    answers = iter(["forbidden", None, None])
    assert [0.0, 60.0, 62.0] == seconds(play([(0.0, ["n1"]), (30.0, ["n2"])], lambda *_: next(answers)))


def test_a_right_that_was_there_is_asked_for_again_while_an_api_server_loads_its_rules() -> None:
    """One that comes back answers 403 for some seconds. Were it given up at once, pods would wait for five minutes."""
    writes = play([(0.0, ["n1"]), (100.0, ["n2"])], lambda at, _: "forbidden" if 100.0 <= at < 112.0 else None)
    assert [0.0, 2.0] == seconds(writes)[:2]
    *again, kicked, repeated = [at for at in seconds(writes) if at >= 100.0]
    assert 112.0 <= kicked <= 122.0
    assert kicked + 2.0 == repeated
    assert len(again) <= 8


def test_a_right_that_was_taken_away_is_given_up_after_half_a_minute_and_then_asked_for_once_a_minute() -> None:
    releases = [(float(at), [f"n{at % 50}"]) for at in range(3600)]
    writes = seconds(play(releases, lambda at, _: "forbidden" if at >= 600.0 else None))
    refused = [at for at in writes if at >= 600.0]
    assert len([at for at in refused if at < 650.0]) <= 12
    assert len(refused) <= 60


def test_where_a_node_has_gone_another_of_the_batch_is_written_to() -> None:
    writes = play([(0.0, ["n1", "n2", "n3"])], lambda _, node: "gone" if node != "n1" else None)
    assert [(0.0, "n3"), (0.0, "n2"), (0.0, "n1"), (2.0, "n1")] == writes


def test_where_all_have_gone_it_ends_after_a_few() -> None:
    assert FEW == len(play([(0.0, NODES)], lambda *_: "gone"))


def test_it_remembers_few_nodes() -> None:
    schedule = Schedule(repeat_after_s=2.0, random=lambda: 0.0)
    for at in range(1000):
        schedule.request([f"n{at}"], float(at))
        schedule.failed(float(at), None)
    assert FEW == len(schedule._nodes)


def test_those_that_flapped_are_forgotten() -> None:
    schedule = Schedule(repeat_after_s=2.0, random=lambda: 0.0)
    schedule.request(NODES, 0.0)
    for at in (0.0, 20.0):
        schedule.request(["n1"], at)
        schedule.take(at)
        schedule.sent()
    assert ["n1"] == list(schedule._flaps)


def test_what_is_released_while_an_answer_is_late_is_kicked_when_it_comes() -> None:
    schedule = Schedule(repeat_after_s=2.0, random=lambda: 0.0)
    schedule.request(["n1"], 0.0)
    assert "n1" == schedule.take(0.0)
    schedule.request(["n2"], 0.1)
    schedule.sent()  # five seconds later
    assert "n2" == schedule.take(5.0)
