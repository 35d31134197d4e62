"""A reflector's thread and clock: silence, stopping, health, age, and what it costs a dead server."""

import math
import threading
import time

import pytest

from kube import paths
from kube.client import Client
from kube.listing import ListerWatcher
from kube.reflector import Reflector
from tests.scripted.following import Node, Recorder, following, node
from tools.fakes.api_server import FakeApiServer
from tools.kit.clock import Clock
from tools.kit.waiting import wait_until


@pytest.fixture
def api():
    with FakeApiServer() as server:
        yield server


def test_a_list_tells_what_the_clock_of_the_server_shows_more_than_ours(api):
    with following(api) as it:
        assert it.reflector.list_ahead_s == pytest.approx(time.time() - time.monotonic(), abs=10.0)


def test_a_silent_watch_is_opened_again_at_the_last_version_without_a_list(api):
    with following(api, silence_limit_s=0.2) as it:
        api.wait_requests(2, lambda r: r.is_watch)
        assert (len(it.lists), it.pauses, it.watches[1].query["resourceVersion"]) == (1, [], "1000")


def test_any_line_keeps_a_watch_from_counting_as_silent(api):
    with following(api, silence_limit_s=2.0) as it:
        for _ in range(6):
            time.sleep(0.5)
            api.bookmark()
        wait_until(lambda: it.reflector.counters["bookmarks"] == 6, "the last bookmark")
        assert (len(it.watches), it.reflector.counters["bookmarks"]) == (1, 6)


def quiet(_) -> None:
    return


def unanswered_watch(api) -> None:
    api.stall_next(watch=True)
    api.error_watches(429, "TooManyRequests")
    api.wait_requests(2, lambda r: r.is_watch)


def unanswered_list(api) -> None:
    api.stall_next(watch=False)
    api.error_watches(410, "Expired")
    api.wait_requests(2, lambda r: not r.is_watch)


@pytest.mark.parametrize("situation", [quiet, unanswered_watch, unanswered_list, FakeApiServer.refuse])
def test_stop_takes_less_than_a_second_with(api, situation):
    with following(api) as it:
        situation(api)
        began = time.monotonic()
        it.reflector.stop()
        it.reflector.stop()
        alive = any(t.name == "reflector-nodes" and t.is_alive() for t in threading.enumerate())
        assert (alive, time.monotonic() - began < 1.0) == (False, True)


def test_stop_interrupts_the_back_off(api):
    api.answer_next(500, times=100)
    with following(api, started=False, pause_s=60) as it:
        it.reflector.start()
        wait_until(lambda: it.pauses, "the back-off")
        it.reflector.stop()
        assert not it.reflector.healthy(time.monotonic())


def test_stop_before_start_and_twice_is_quiet(api):
    with following(api, started=False) as it:
        it.reflector.stop()
        it.reflector.stop()
        assert not it.reflector.synced


def test_stopping_one_reflector_leaves_the_client_of_the_others_alone(api):
    client = Client(api.connection(), user_agent="test")
    reflector = Reflector(ListerWatcher(client, paths.nodes(), Node), Recorder(), name="nodes")
    reflector.start()
    assert reflector.wait_synced(30)
    reflector.stop()
    assert client.get(paths.nodes())
    client.close()


def test_age_counts_from_the_last_answer_and_is_infinite_before_the_first(api):
    clock = Clock(100.0)
    with following(api, started=False, monotonic=clock) as it:
        before = it.reflector.age_s(100.0)
        it.reflector.start()
        it.reflector.wait_synced(30)
        after_list = it.reflector.age_s(130.0)
        api.wait_watchers(1)
        clock.time = 160.0
        api.bookmark()
        wait_until(lambda: it.reflector.counters["bookmarks"], "the bookmark")
        assert (before, after_list, it.reflector.age_s(170.0)) == (math.inf, 30.0, 10.0)


def test_an_opened_watch_is_an_answer(api):
    """A silent watch of 70 s and the 60 s until the next one's bookmark would make 130, and 120 is stale."""
    clock = Clock(100.0)
    with following(api, monotonic=clock) as it:
        clock.time = 170.0
        api.end_watches()
        api.wait_requests(2, lambda r: r.is_watch)
        wait_until(lambda: it.reflector.age_s(170.0) == 0.0, "the opened watch to count")
        assert it.reflector.last_word == 100.0


def test_each_page_of_a_list_is_an_answer(api):
    """Time stands still until it lists again, so that nothing but the first page of that is heard later."""

    def clock() -> float:
        return 200.0 if len([r for r in api.requests if not r.is_watch]) > 1 else 100.0

    with following(api, monotonic=clock) as it:
        first = b'{"kind":"NodeList","metadata":{"resourceVersion":"1000","continue":"more"},"items":[]}'
        api.answer_next(200, body=first, watch=False)
        api.stall_next(watch=False)
        api.error_watches(410, "Expired")
        wait_until(lambda: len(it.lists) == 3, "the second page to be asked for")
        assert it.reflector.age_s(200.0) == 0.0


def half_a_list(api, _store) -> None:
    first = b'{"kind":"NodeList","metadata":{"resourceVersion":"1000","continue":"more"},"items":[]}'
    for _ in range(500):
        api.answer_next(200, body=first, watch=False)
        api.answer_next(500, watch=False)


def refused_by_the_store(_api, store) -> None:
    def refuse(_) -> None:
        raise ValueError("not these")

    store.replace = refuse


@pytest.mark.parametrize("fails", [half_a_list, refused_by_the_store])
def test_a_list_of_which_nothing_came_into_the_store_is_no_answer(api, fails):
    """However often it is begun: what the store holds becomes older, and nobody is to go by it for ever."""
    clock = Clock(100.0)
    with following(api, monotonic=clock) as it:
        fails(api, it.store)
        api.error_watches(410, "Expired")
        wait_until(lambda: it.pauses, "a list in vain")
        clock.time, tried = 190.0, len(it.pauses)
        wait_until(lambda: len(it.pauses) >= tried + 3, "more of them")
        it.reflector.stop()  # in the middle of a list its first page counts until the list has failed
        assert it.reflector.age_s(190.0) == 90.0


def test_a_reflector_is_healthy_while_the_server_is_away_and_not_when_its_store_hangs(api):
    hung, release = threading.Event(), threading.Event()

    def hang(_) -> None:
        hung.set()
        release.wait(5)

    clock = Clock(100.0)
    with following(api, monotonic=clock) as it:
        api.refuse()
        wait_until(lambda: len(it.pauses) > 2, "refused attempts")
        away = it.reflector.healthy(clock())
        it.store.upsert = it.store.replace = hang
        api.put(node("a"))
        api.listen()
        assert hung.wait(30)
        later = it.reflector.healthy(clock.time + 1000)
        release.set()
        assert (away, later) == (True, False)


def test_a_store_that_fails_on_a_list_is_given_the_next_one(api):
    with following(api, started=False) as it:
        good, it.store.replace = it.store.replace, None
        it.reflector.start()
        wait_until(lambda: it.reflector.counters.get("errors.TypeError"), "the failure")
        it.store.replace = good
        assert it.reflector.wait_synced(30)


def test_a_line_of_two_mebibytes_arrives_and_one_past_the_cap_leads_to_a_list(api):
    with following(api) as it:
        api.put(node("big", text="x" * 2 * 2**20))
        it.wait_version(1001)
        big = dict(it.store.versions)
        api.emit_bytes(None, b'{"type":"' + b"x" * 9 * 2**20)
        wait_until(lambda: len(it.lists) == 2, "the list")
        assert (big, it.reflector.counters["errors.LineTooLong"]) == ({"big": "1001"}, 1)


def test_slices_of_one_byte_make_the_same_events(api):
    line = b'{"type":"ADDED","object":{"kind":"Node","metadata":{"name":"\xc3\xa9","resourceVersion":"2000"}}}\n'
    with following(api) as it:
        for i in range(len(line)):
            api.emit_bytes(None, line[i : i + 1])
        it.wait_version(2000)
        assert it.store.versions == {"é": "2000"}


def test_a_failure_is_logged_once_and_its_end_once(api, caplog):
    caplog.set_level("INFO", "kube.reflector")
    api.answer_next(503, watch=False, times=4)
    with following(api):
        pass
    told = [(record.message, getattr(record, "cause", "")) for record in caplog.records]
    assert told.count(("watch failed", "ServerError")) == 1


@pytest.mark.parametrize(
    ("lived_s", "expected"),
    [
        pytest.param(9.0, [0.8, 1.0, 1.0, 1.0], id="nine seconds: the outage goes on"),
        pytest.param(10.0, [0.8, 1.0, 0.8, 1.0], id="ten seconds: it is over, and a second one begins anew"),
    ],
)
def test_after_a_watch_that_lived(api, lived_s, expected):
    clock = Clock(100.0)
    api.answer_next(503, watch=False, times=2)
    with following(api, monotonic=clock) as it:
        api.put(node("a"))
        it.wait_version(1001)  # only now is the watch open on our side too
        clock.time += lived_s
        api.answer_next(503, watch=False, times=1)
        api.error_watches(410, "Expired")
        wait_until(lambda: len(it.pauses) == 4, "the second outage")
    assert it.pauses == expected


def test_a_watch_that_takes_long_to_open_has_not_lived(api):
    clock = Clock(100.0)
    with following(api, monotonic=clock, started=False) as it:
        opened = it.reflector._lister_watcher.watch

        def slow(*arguments, **options):
            clock.time += 60.0
            return opened(*arguments, **options)

        it.reflector._lister_watcher.watch = slow
        api.answer_next(503, times=3)
        it.reflector.start()
        wait_until(lambda: len(it.pauses) == 3, "three failures")
    assert it.pauses == [0.8, 1.0, 1.0]
