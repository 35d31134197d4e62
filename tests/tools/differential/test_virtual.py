"""Threads that take turns: who runs when, whose wait is over, and how those end that would go on."""

import pytest

from tools.differential.virtual import MOST_TURNS, Virtual


def test_time_passes_when_all_wait_and_no_further_than_it_is_told() -> None:
    said: list[tuple[str, float]] = []
    with Virtual(100.0) as virtual:

        def run() -> None:
            for seconds in (0.0, 2.0, 3.0):
                virtual.sleep(seconds)
                said.append((virtual.name, virtual.monotonic))

        for name in ("a", "b"):
            virtual.Thread(target=run, name=name, daemon=True).start()
        virtual.advance(104.0)
        assert ([("a", 100.0), ("b", 100.0), ("a", 102.0), ("b", 102.0)], 104.0) == (said, virtual.monotonic)
        virtual.advance(200.0)
        assert ([("a", 105.0), ("b", 105.0)], 200.0) == (said[4:], virtual.monotonic)


def test_who_is_told_waits_no_longer_and_who_is_not_has_waited_in_vain() -> None:
    said: list[tuple[float, bool]] = []
    with Virtual(0.0) as virtual:
        condition = virtual.Condition()

        def run() -> None:
            with condition:
                said.extend((virtual.monotonic, condition.wait(5.0)) for _ in range(2))
            said.append((virtual.monotonic, True))

        virtual.Thread(target=run, name="a", daemon=True).start()
        virtual.advance(1.0)
        condition.notify()
        virtual.advance(10.0)
        assert [(0.0, True), (1.0, False), (6.0, True)] == said


def test_an_event_that_is_set_is_not_waited_for() -> None:
    said: list[bool] = []
    with Virtual(0.0) as virtual:
        event = virtual.Event()

        def run() -> None:
            said.extend((event.wait(1.0), event.wait(), event.is_set()))

        virtual.Thread(target=run, name="a", daemon=True).start()
        virtual.advance(3.0)
        event.set()
        virtual.advance(3.0)
        assert [False, True, True] == said


def test_who_still_waits_at_the_end_is_ended_with_what_it_has_to_do_last() -> None:
    said: list[str] = []
    with Virtual(0.0) as virtual:

        def run() -> None:
            try:
                virtual.Event().wait()
            finally:
                said.append("ended")

        thread = virtual.Thread(target=run, name="a", daemon=True)
        thread.start()
        virtual.advance(1.0)
        assert thread.is_alive()
    assert (["ended"], False) == (said, thread.is_alive())


def test_what_a_thread_ends_with_is_told() -> None:
    def run() -> None:
        raise ValueError("a mistake")

    with Virtual(0.0) as virtual:
        virtual.Thread(target=run, name="a", daemon=True).start()
        with pytest.raises(ValueError, match="a mistake"):
            virtual.advance(1.0)


def test_one_that_never_waits_is_no_history() -> None:
    with Virtual(0.0) as virtual:

        def run() -> None:
            while True:
                virtual.sleep(0.0)

        virtual.Thread(target=run, name="a", daemon=True).start()
        with pytest.raises(RuntimeError, match="never waits"):
            virtual.advance(1.0)
        assert virtual._turns == MOST_TURNS + 1
