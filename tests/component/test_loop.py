"""The thread that turns: no wake is lost, no failure ends it, it stops soon, and it knows whether it turns."""

import logging
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from component.loop import LOG_AGAIN_S, Loop
from tools.kit.waiting import wait_until

SOON_S = 5.0  # beyond this something hangs; no test waits for it when all is well


def no_pause() -> float:
    return math.inf


@pytest.fixture
def made() -> Iterator[Callable[..., Loop]]:
    """Makes loops that end with the test."""
    loops: list[Loop] = []

    def make(turn: Callable[[], float] = no_pause, **options: object) -> Loop:
        loop = Loop("loop", turn, **{"stuck_after_s": 10.0, **options})  # type: ignore[arg-type]
        loops.append(loop)
        return loop

    yield make
    for loop in loops:
        loop.stop()


class Turns:
    """A turn that counts, and asks for what it was given; a failure among it is raised."""

    def __init__(self, *pauses: float | Exception) -> None:
        self.count = 0
        self._pauses = list(pauses)
        self._changed = threading.Condition()

    def __call__(self) -> float:
        with self._changed:
            self.count += 1
            self._changed.notify_all()
        pause = self._pauses.pop(0) if self._pauses else math.inf
        if isinstance(pause, Exception):
            raise pause
        return pause

    def reached(self, count: int) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self.count >= count, SOON_S)


def test_the_first_turn_comes_at_once_and_the_next_after_what_it_returned(made: Callable[..., Loop]) -> None:
    turns = Turns(0.0, 0.001, -1.0)
    made(turns).start()
    assert turns.reached(4)


def test_the_first_turn_can_wait_for_a_pause_or_a_wake(made: Callable[..., Loop]) -> None:
    turns = Turns()
    loop = made(turns, first_pause_s=3600.0)
    loop.start()
    assert (0, True) == (turns.count, loop.healthy(time.monotonic()))
    loop.wake()
    assert turns.reached(1)


def test_a_wake_before_the_start_counts(made: Callable[..., Loop]) -> None:
    turns = Turns()
    loop = made(turns, first_pause_s=3600.0)
    loop.wake()
    loop.start()
    assert turns.reached(1)


def test_a_wake_during_a_turn_makes_another_one(made: Callable[..., Loop]) -> None:
    turns = Turns()

    def turn() -> float:
        if turns.count == 0:
            loop.wake()
        return turns()

    loop = made(turn)
    loop.start()
    assert turns.reached(2)


def test_no_wake_is_lost(made: Callable[..., Loop]) -> None:
    """Four threads put and wake at the shortest switch interval; what was put before a wake is seen by a turn after."""
    each, producers, seen = 5_000, 4, [0]
    put: list[int] = []
    all_seen = threading.Event()

    def turn() -> float:
        seen[0] = len(put)
        if seen[0] == each * producers:
            all_seen.set()
        return math.inf

    loop = made(turn)
    loop.start()

    def produce() -> None:
        for number in range(each):
            put.append(number)
            loop.wake()

    threads = [threading.Thread(target=produce) for _ in range(producers)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all_seen.wait(SOON_S), f"{seen[0]} of {each * producers} seen"
    finally:
        sys.setswitchinterval(interval)


def test_a_failure_is_logged_once_per_kind_and_place_and_the_loop_goes_on(
    made: Callable[..., Loop], caplog: pytest.LogCaptureFixture
) -> None:
    turns = Turns(ValueError("a\nb"), ValueError("again"), KeyError("k"), ValueError("a third"))
    made(turns, error_pause_s=0.0).start()
    assert turns.reached(5)
    assert ["turn failed", "turn failed"] == [record.getMessage() for record in caplog.records]
    facts = [(vars(record)["loop"], vars(record)["cause"], vars(record)["error"]) for record in caplog.records]
    assert [("loop", "ValueError", "a b"), ("loop", "KeyError", "'k'")] == facts
    assert [True, True] == [bool(record.exc_info) for record in caplog.records]


def test_a_failure_that_lasts_is_logged_again_after_ten_minutes(
    made: Callable[..., Loop], caplog: pytest.LogCaptureFixture
) -> None:
    clock = [0.0]
    turns = Turns(*[ValueError("x")] * 10)

    def turn() -> float:
        clock[0] += LOG_AGAIN_S / 4
        return turns()

    made(turn, error_pause_s=0.0, monotonic=lambda: clock[0]).start()
    assert turns.reached(11)
    assert len(caplog.records) == 3  # of ten: the first, the fifth, the ninth


def test_after_a_failure_wakes_do_not_shorten_the_pause(made: Callable[..., Loop]) -> None:
    turns = Turns(ValueError("x"))
    loop = made(turns, error_pause_s=3600.0)
    logging.getLogger("component.loop").disabled = True
    try:
        loop.start()
        assert turns.reached(1)
        for _ in range(100):
            loop.wake()
        time.sleep(0.01)
        assert turns.count == 1
        began = time.monotonic()
        loop.stop()  # but a stop does
        assert (False, True) == (loop.healthy(began), time.monotonic() - began < SOON_S)
    finally:
        logging.getLogger("component.loop").disabled = False


def test_healthy_is_whether_the_thread_lives_and_turns(made: Callable[..., Loop]) -> None:
    clock, inside, go_on = [100.0], threading.Event(), threading.Event()

    def turn() -> float:
        inside.set()
        go_on.wait(SOON_S)
        return math.inf

    loop = made(turn, stuck_after_s=10.0, monotonic=lambda: clock[0])
    assert not loop.healthy(100.0)  # not started
    loop.start()
    assert inside.wait(SOON_S)
    assert (True, False) == (loop.healthy(110.0), loop.healthy(110.1))
    clock[0] = 105.0
    loop.progressed()
    assert (True, False) == (loop.healthy(115.0), loop.healthy(115.1))
    loop.progressed(pause_s=30.0)
    assert (True, False) == (loop.healthy(145.0), loop.healthy(145.1))
    go_on.set()
    loop.stop()
    assert not loop.healthy(100.0)  # ended


def test_its_first_turn_finds_it_healthy(made: Callable[..., Loop], monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where the thread that starts it comes to nothing more until then."""
    seen: list[bool] = []

    def turn() -> float:
        seen.append(loop.healthy(time.monotonic()))
        return math.inf

    begin = threading.Thread.start

    def start_and_be_late(thread: threading.Thread) -> None:
        begin(thread)
        wait_until(lambda: seen)

    monkeypatch.setattr(threading.Thread, "start", start_and_be_late)
    loop = made(turn)
    loop.start()
    assert [True] == seen


def test_a_thread_that_cannot_be_had_fails_the_start_and_not_the_stop(
    made: Callable[..., Loop], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    loop = made()
    with pytest.raises(RuntimeError, match="new thread"):
        loop.start()
    assert not loop.healthy(time.monotonic())
    loop.stop()


def test_a_pause_on_purpose_is_no_hang(made: Callable[..., Loop]) -> None:
    turns = Turns(3600.0)
    loop = made(turns, stuck_after_s=10.0, monotonic=lambda: 0.0)
    loop.start()
    assert turns.reached(1)
    wait_until(lambda: loop.healthy(3610.0), "it pauses on purpose")
    assert (True, False) == (loop.healthy(3610.0), loop.healthy(3611.0))


def test_a_pause_that_is_over_already_is_no_hang(made: Callable[..., Loop]) -> None:
    loop = made(first_pause_s=math.inf, monotonic=lambda: 100.0)
    loop.start()
    loop.progressed(-60.0)  # what a turn returns that has more to do than it could
    assert (True, False) == (loop.healthy(100.0), loop.healthy(110.1))


def test_a_failure_that_cannot_say_what_it_is_does_not_end_the_loop(
    made: Callable[..., Loop], caplog: pytest.LogCaptureFixture
) -> None:
    class SilentError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    turns = Turns(SilentError())
    loop = made(turns, error_pause_s=0.0)
    loop.start()
    assert (True, True) == (turns.reached(2), loop.healthy(time.monotonic()))
    assert ["turn failed"] == [record.getMessage() for record in caplog.records]


def test_a_thread_is_made_by_start_and_not_before(made: Callable[..., Loop]) -> None:
    """The extender builds before its fork and starts after it: a Thread made before it would count as dead."""
    before = threading.active_count()
    loop = made()
    assert before == threading.active_count()
    loop.start()
    loop.start()  # once more is harmless
    assert before + 1 == threading.active_count()


def test_what_was_stopped_stays_so(made: Callable[..., Loop]) -> None:
    turns = Turns()
    loop = made(turns)
    loop.stop()
    loop.stop()
    loop.start()
    loop.wake()
    assert (0, False, True) == (turns.count, loop.healthy(time.monotonic()), loop.stopping)


def test_stop_from_a_turn_of_its_own(made: Callable[..., Loop]) -> None:
    ended = threading.Event()

    def turn() -> float:
        loop.stop()
        return 0.0

    loop = made(turn, at_end=ended.set)
    loop.start()
    assert ended.wait(SOON_S)


def test_stop_unblocks_a_turn_that_waits_and_lets_it_end_its_work(made: Callable[..., Loop]) -> None:
    journal, inside, bell = [], threading.Event(), threading.Event()

    def turn() -> float:
        inside.set()
        bell.wait(SOON_S)
        journal.append("turn")
        return 0.0

    loop = made(turn, unblock=bell.set, at_end=lambda: journal.append("end"), join_limit_s=SOON_S)
    loop.start()
    assert inside.wait(SOON_S)
    loop.stop()
    assert ["turn", "end"] == journal


def test_stop_does_not_wait_for_a_turn_that_hangs(made: Callable[..., Loop], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    inside, go_on = threading.Event(), threading.Event()

    def turn() -> float:
        inside.set()
        go_on.wait(SOON_S)
        return 0.0

    loop = made(turn, join_limit_s=0.01)
    loop.start()
    assert inside.wait(SOON_S)
    began = time.monotonic()
    loop.stop()
    assert time.monotonic() - began < SOON_S / 2
    assert "thread did not end in time" in caplog.text
    go_on.set()


def test_a_failure_at_the_end_is_logged_and_ends_the_thread(
    made: Callable[..., Loop], caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise OSError("disk full")

    loop = made(at_end=fail)
    loop.start()
    loop.stop()
    assert (["turn failed"], False) == ([r.getMessage() for r in caplog.records], loop.healthy(time.monotonic()))


def test_started_and_stopped_at_the_same_time_it_always_ends(made: Callable[..., Loop]) -> None:
    for _ in range(200):
        loop = made()
        threads = [threading.Thread(target=call) for call in (loop.start, loop.stop)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        loop.stop()
        assert not loop.healthy(0.0)


def test_wakes_of_many_threads_at_once_are_one_and_none_fails(made: Callable[..., Loop]) -> None:
    loop, failed = made(lambda: math.inf), []

    def wake() -> None:
        try:
            for _ in range(2000):
                loop.wake()
        except RuntimeError as e:
            failed.append(e)

    threads = [threading.Thread(target=wake) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ([], True, False) == (failed, *(loop._asleep.acquire(blocking=False) for _ in range(2)))
