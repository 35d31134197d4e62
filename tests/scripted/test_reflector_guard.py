"""What keeps a store right, and a server unharmed, where client-go's rules would not: doubts, bookmarks, lag."""

import itertools
import json

import pytest

from kube import listing, paths, reflector
from kube.client import Client
from kube.reflector import ListerWatcher, Reflector
from kube.server_health import ServerHealth
from tests.scripted.following import Node, Recorder, cut_short, following, node
from tools.fakes.api_server import FakeApiServer
from tools.kit.clock import Clock
from tools.kit.waiting import wait_until


@pytest.fixture
def api():
    with FakeApiServer() as server:
        yield server


@pytest.fixture(autouse=True)
def _looks_often(monkeypatch):
    monkeypatch.setattr(reflector, "LOOK_S", 0.02)


def refused_once(api, it) -> None:
    it.store.refused.add("x")
    api.put(node("x"))
    it.wait_version(1001)
    it.store.refused.clear()


def poisoned_for_a_while(api, it) -> None:
    api.put(node("x", spec={"unschedulable": "yes"}))
    it.wait_version(1001)
    api.hold_events()
    api.put(node("x"))


@pytest.mark.parametrize("trouble", [refused_once, poisoned_for_a_while])
def test_lw11_what_was_left_out_is_there_half_a_minute_later_on_a_watch_that_is_otherwise_silent(api, trouble):
    clock = Clock(100.0)
    with following(api, monotonic=clock) as it:
        trouble(api, it)
        clock.time = 129.9
        it.wait_looks()
        early = dict(it.store.versions)
        clock.time = 130.0
        wait_until(lambda: "x" in it.store.versions, "the list")
        assert (early, it.pauses, len(it.lists)) == ({}, [], 2)


def test_a_page_that_is_too_large_to_be_held_is_asked_for_in_smaller_ones_and_so_are_those_after_it(api, monkeypatch):
    monkeypatch.setattr(listing, "PAGE_LIMIT_BYTES", 50_000)
    for number in range(50):
        api.put(node(f"n{number}", annotations={"a": "b" * 2000}))
    with following(api) as it:
        api.error_watches(410, "Expired")
        wait_until(lambda: len(it.store.calls) == 2, "the second list")
    assert [("replace", 50)] * 2 == [(verb, len(names)) for verb, names in it.store.calls]
    assert ["500", "100", *["20"] * 6] == limits_of(it.lists)


def test_a_list_with_an_object_that_is_too_large_alone_fails_and_pages_grow_again_when_it_has_gone(api, monkeypatch):
    monkeypatch.setattr(listing, "PAGE_LIMIT_BYTES", 50_000)
    api.put(node("huge", annotations={"a": "b" * 60_000}))
    for number in range(30):
        api.put(node(f"n{number}", annotations={"a": "b" * 1500}))
    with following(api, started=False) as it:
        it.reflector.start()
        wait_until(lambda: it.pauses, "the end of the first try")
        api.delete("Node", "huge")
        wait_until(lambda: it.store.calls, "a list")
    limits = limits_of(it.lists)
    assert (["500", "100", "20", "4", "1"], ["1", "5", "25"]) == (limits[:5], limits[-3:])
    assert [("replace", 30)] == [(verb, len(names)) for verb, names in it.store.calls]


def test_a_list_that_is_too_large_for_one_page_is_never_asked_for_in_one_piece(api, monkeypatch):
    """Not when a page has expired either, for which a list without pages is the remedy."""
    monkeypatch.setattr(listing, "PAGE_LIMIT_BYTES", 50_000)
    for number in range(30):
        api.put(node(f"n{number}", annotations={"a": "b" * 2000}))
    with following(api) as it:
        meta = {"resourceVersion": str(api.version), "continue": "token-of-old"}
        page = {"kind": "NodeList", "metadata": meta, "items": api.objects("Node")[:20]}
        api.answer_next(200, body=json.dumps(page).encode(), watch=False)
        api.error_watches(410, "Expired")
        wait_until(lambda: len(it.store.calls) == 2, "the second list")
    assert [("replace", 30)] * 2 == [(verb, len(names)) for verb, names in it.store.calls]
    assert ["500", "100", "20", "20", "20", "20", "20", "20"] == limits_of(it.lists)


def limits_of(lists):
    return [request.query.get("limit") for request in lists]


def test_lw11_a_list_with_an_object_that_cannot_be_read_is_taken_again_ever_more_seldom(api):
    api.put(node("x", spec={"unschedulable": "yes"}))
    clock = Clock(100.0)
    with following(api, monotonic=clock) as it:
        taken = []
        for clock.time in (129.0, 130.0, 189.0, 190.0, 309.0, 310.0):
            it.wait_looks()
            taken.append(len(it.lists))
        assert taken == [1, 2, 2, 3, 3, 4]


def test_lw8_three_watches_in_a_row_with_nothing_but_a_bookmark_lead_to_a_pause(api):
    def bookmark_and_end(handler) -> None:
        line = b'{"type":"BOOKMARK","object":{"kind":"Node","metadata":{"resourceVersion":"1000"}}}\n'
        handler.send_body(200, line, {})

    api._add_fault(bookmark_and_end, None, "", True, 5)
    with following(api) as it:
        assert (it.pauses, [r.is_watch for r in api.requests]) == ([0.8, 1.0, 1.0], [False, *[True] * 6])


def test_lw8_an_event_that_has_come_before_is_nothing_new(api):
    """A proxy that repeats one answer for ever would be asked hundreds of times a second."""
    line = b'{"type":"MODIFIED","object":{"kind":"Node","metadata":{"name":"a","resourceVersion":"1000"}}}\n'
    api.answer_next(200, body=line, watch=True, times=3)
    with following(api) as it:
        assert it.pauses == [0.8, 1.0, 1.0]


def test_an_empty_200_in_answer_to_a_watch_is_a_watch_that_ended_at_once(api):
    api.answer_next(200, body=b"", watch=True)
    with following(api) as it:
        assert (it.pauses, it.reflector.counters["errors.VeryShortWatch"]) == ([0.8], 1)


def test_one_who_hears_from_the_server_wakes_the_others(api):
    """The other would wait for minutes: each look at its clock is past the first minute, and its server asks anew."""
    peers, clock = ServerHealth(), itertools.count(step=100)
    client = Client(api.connection(), user_agent="t")
    other = Reflector(
        ListerWatcher(client, paths.nodes(), Node), Recorder(), name="other", peers=peers, monotonic=clock.__next__
    )
    peers._free_at = 1e9
    api.answer_next(500, times=2)
    other.start()
    wait_until(lambda: peers._waiting, "the other to wait")
    with following(api, peers=peers, started=False) as it:
        it.reflector.start()
        assert other.wait_synced(30)
    other.stop()
    client.close()


def lease(name: str, renewed: str) -> dict:
    meta = {"name": name, "namespace": "kube-node-lease"}
    return {"kind": "Lease", "metadata": meta, "spec": {"renewTime": renewed}}


def test_the_lag_is_the_age_of_the_news_when_they_come_and_one_wrong_clock_does_not_matter(api):
    from extender.cluster.observed import Lease

    wall = Clock(0.0)
    api.put(lease("a", "1970-01-01T00:00:00.000000Z"))
    client = Client(api.connection(), user_agent="t")
    leases = Reflector(
        ListerWatcher(client, paths.leases("kube-node-lease"), Lease),
        Recorder(),
        name="leases",
        stated=lambda item: item.spec.renew_time,
        wall=wall,
    )
    cut_short(leases, 0.01)
    leases.start()
    api.wait_watchers(1)
    before = leases.lag_s
    for number, renewed in enumerate(("00:00:10", "00:00:20", "11:11:11", "00:00:30", "00:00:40"), start=1):
        wall.time = 10.0 * number + 2.5
        api.put(lease("a", f"1970-01-01T{renewed}.000000Z"))
        wait_until(lambda version=1001 + number: leases.resource_version == str(version), "the renewal")
    leases.stop()
    client.close()
    assert (before, leases.lag_s) == (None, 2.5)
