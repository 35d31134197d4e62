"""Rules LW1 to LW9 and LW12 of a watch cache, each as a dialogue with a scripted server over a real socket."""

import itertools
import json

import pytest

from kube.watching import REWIND_LIMIT_S
from tests.scripted.following import following, node
from tools.fakes.api_server import FakeApiServer
from tools.kit.waiting import wait_until


@pytest.fixture
def api():
    with FakeApiServer() as server:
        yield server


def page_query(request) -> dict:
    return {name: value for name, value in request.query.items() if name != "continue"}


def test_lw1_every_list_is_a_quorum_read_in_pages_of_500_and_then_of_100(api):
    with following(api) as it:
        api.error_watches(410, "Expired")
        wait_until(lambda: len(it.lists) == 2, "the second list")
    assert [page_query(r) for r in it.lists] == [{"limit": "500"}, {"limit": "100"}]


def test_lw2_all_pages_of_a_list_make_one_replacement(api):
    for i in range(1003):
        api.put(node(f"n{i:04}"))
    with following(api) as it:
        pass
    assert (len(it.lists), [(verb, len(names)) for verb, names in it.store.calls]) == (3, [("replace", 1003)])


def test_lw2_a_page_that_expired_is_followed_by_one_list_in_one_piece(api):
    for i in range(501):
        api.put(node(f"n{i:03}"))
    api.answer_next(200, body=api_page(api, 500, "token-of-old"))
    with following(api) as it:
        pass
    queries = [r.query for r in it.lists]
    assert (
        queries,
        len(it.store.versions),
        it.pauses,
    ) == ([{"limit": "500"}, {"limit": "500", "continue": "token-of-old"}, {}], 501, [])


def test_lw2_a_page_that_goes_on_with_itself_is_no_list(api):
    """As a proxy gives it that knows no queries: it would be read without a pause, and kept, for ever."""
    for i in range(3):
        api.put(node(f"n{i}"))
    for _ in range(2):
        api.answer_next(200, body=api_page(api, 2, "the same"))
    with following(api) as it:
        pass
    queries = [r.query for r in it.lists]
    assert (
        queries,
        [(verb, len(names)) for verb, names in it.store.calls],
        it.pauses,
    ) == ([{"limit": "500"}, {"limit": "500", "continue": "the same"}, {"limit": "500"}], [("replace", 3)], [0.8])


def api_page(api: FakeApiServer, count: int, more: str) -> bytes:
    """A first page with this continue token, which the server does not know."""
    meta = {"resourceVersion": str(api.version), "continue": more}
    return json.dumps({"kind": "NodeList", "metadata": meta, "items": api.objects("Node")[:count]}).encode()


def test_lw3_what_was_deleted_while_cut_off_is_gone_after_the_next_list_in_one_step(api):
    api.put(node("kept"))
    api.put(node("lost"))
    with following(api) as it:
        api.hold_events()
        api.delete("Node", "lost")
        api.error_watches(410, "Expired")
        wait_until(lambda: len(it.store.calls) == 2, "the second list")
    assert it.store.calls == [("replace", ["kept", "lost"]), ("replace", ["kept"])]


def test_lw4_the_watch_starts_at_the_list_and_asks_for_bookmarks_and_a_spread_end(api):
    with following(api, random=lambda: 0.5) as it:
        pass
    wanted = {"watch": "1", "resourceVersion": "1000", "allowWatchBookmarks": "true", "timeoutSeconds": "450"}
    assert wanted == it.watches[0].query


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(lambda api: api.end_watches(), id="the server ends it"),
        pytest.param(lambda api: api.cut_watches(), id="the connection is closed in mid-stream"),
        pytest.param(lambda api: api.cut_watches(reset=True), id="the connection is reset"),
        pytest.param(
            lambda api: (api.emit_bytes(None, b'{"type":"ADD'), api.cut_watches()), id="half a line, then cut"
        ),
    ],
)
def test_lw4_a_watch_that_ends_goes_on_at_the_last_version_at_once(api, end):
    with following(api) as it:
        last = api.put(node("a"))["metadata"]["resourceVersion"]
        it.wait_version(int(last))
        end(api)
        api.wait_requests(2, lambda r: r.is_watch)
    assert (1, [], last) == (len(it.lists), it.pauses, it.watches[1].query["resourceVersion"])


def unknown_type(api, _):
    api.emit(None, "RENAMED", {"kind": "Node", "metadata": {"name": "x", "resourceVersion": "2000"}})


def bookmark(api, _):
    api.emit(None, "BOOKMARK", {"kind": "Node", "metadata": {"resourceVersion": "2000"}})


def refused_by_the_store(api, it):
    it.store.refused.add("x")
    api.emit(None, "ADDED", {"kind": "Node", "metadata": {"name": "x", "resourceVersion": "2000"}})


def not_decodable(api, _):
    poison = {"kind": "Node", "metadata": {"name": "x", "resourceVersion": "2000"}, "spec": {"unschedulable": "yes"}}
    api.emit(None, "MODIFIED", poison)


@pytest.mark.parametrize("event", [unknown_type, bookmark, refused_by_the_store, not_decodable])
def test_lw5_the_version_moves_on_with(api, event):
    with following(api) as it:
        event(api, it)
        it.wait_version(2000)
        api.end_watches()
        api.wait_requests(2, lambda r: r.is_watch)
    assert (it.watches[1].query["resourceVersion"], it.pauses) == ("2000", [])


AGAIN, ANEW = "watches again from the same version", "lists again"


def next_step(it) -> str:
    """What came after the first list and the first watch."""
    it.api.wait_requests(3)
    return AGAIN if it.api.requests[2].is_watch else ANEW


@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [
        pytest.param(410, "Expired", ANEW, id="expired"),
        pytest.param(410, "Gone", ANEW, id="gone"),
        pytest.param(500, "Expired", ANEW, id="expired by its reason alone"),
        pytest.param(429, "TooManyRequests", AGAIN, id="too many requests"),
        pytest.param(500, "InternalError", ANEW, id="internal error"),
        pytest.param(403, "Forbidden", ANEW, id="anything else"),
    ],
)
def test_lw6_after_an_error_event_it_backs_off_and(api, code, reason, expected):
    with following(api) as it:
        api.error_watches(code, reason)
        assert (expected, [0.8]) == (next_step(it), it.pauses[:1])


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        pytest.param(410, ANEW, id="gone"),
        pytest.param(429, AGAIN, id="too many requests"),
        pytest.param(500, ANEW, id="internal error"),
        pytest.param(403, ANEW, id="forbidden"),
        pytest.param(301, ANEW, id="a redirect"),
    ],
)
def test_lw6_a_watch_refused_on_opening_backs_off_and(api, code, expected):
    api.answer_next(code, watch=True)
    with following(api) as it:
        assert (expected, [0.8]) == (next_step(it), it.pauses)


def test_lw6_a_refused_connection_leads_to_no_list(api):
    with following(api) as it:
        api.put(node("a"))
        it.wait_version(api.version)
        api.refuse()
        wait_until(lambda: len(it.pauses) >= 2, "two refused attempts")
        api.listen()
        api.wait_watchers(1)
        assert len(it.lists) == 1


def test_lw6_what_the_server_asked_for_is_waited_for(api):
    api.answer_next(503, retry_after="7", watch=False)
    with following(api) as it:
        api.error_watches(429, "TooManyRequests", retry_after_s=9)
        api.wait_requests(2, lambda r: r.is_watch)
    assert it.pauses == [7.0, 9.0]


def test_lw7_the_pauses_grow_to_a_second_and_after_a_minute_to_four(api):
    api.answer_next(500, watch=False, times=6)
    with following(api, monotonic=itertools.count(step=10).__next__) as it:
        pass
    assert it.pauses == [0.8, 1.0, 4.0, 4.0, 4.0, 4.0]


def test_lw8_a_watch_that_ends_at_once_with_no_event_backs_off_and_lists(api):
    with following(api) as it:
        api.end_watches()
        assert (next_step(it), it.pauses[:1], it.reflector.counters["errors.VeryShortWatch"]) == (ANEW, [0.8], 1)


@pytest.mark.parametrize(
    "value",
    [
        pytest.param({"kind": "Pod", "metadata": {"name": "x", "resourceVersion": "2000"}}, id="another kind"),
        pytest.param({"kind": "Table", "metadata": {"resourceVersion": "2000"}, "rows": []}, id="a table"),
        pytest.param({"kind": "Node"}, id="no metadata"),
        pytest.param({"kind": "Node", "metadata": {"name": "x"}}, id="no version"),
        pytest.param({"kind": "Node", "metadata": "x"}, id="metadata of another type"),
        pytest.param(None, id="null"),
        pytest.param([], id="a list"),
    ],
)
def test_lw9_an_event_is_skipped_and_the_stream_goes_on_when_its_object_is(api, value):
    with following(api) as it:
        api.emit(None, "ADDED", value)
        api.put(node("good"))
        it.wait_version(1001)
    assert (
        it.store.versions,
        it.reflector.counters["skipped"],
        len(it.watches),
        it.pauses,
    ) == ({"good": "1001"}, 1, 1, [])


def test_lw9_an_object_of_a_list_that_cannot_be_decoded_is_left_out(api):
    api.put(node("good"))
    api.put(node("bad", spec={"unschedulable": "yes"}))
    with following(api) as it:
        pass
    assert (it.store.versions, it.reflector.counters["skipped"]) == ({"good": "1001"}, 1)


@pytest.mark.parametrize("name", [b'"\xff"', b"7"], ids=["not UTF-8", "a number"])
def test_lw9_an_object_of_a_list_whose_name_is(api, name):
    good = b'{"metadata":{"name":"good","resourceVersion":"7"}}'
    bad = b'{"metadata":{"name":' + name + b',"resourceVersion":"8"}}'
    api.answer_next(
        200, body=b'{"kind":"NodeList","metadata":{"resourceVersion":"1000"},"items":[%b,%b]}' % (bad, good)
    )
    with following(api) as it:
        pass
    assert (it.store.versions, it.reflector.counters["skipped"]) == ({"good": "7"}, 1)


def test_lw9_a_table_in_answer_to_a_list_is_an_error(api):
    api.answer_next(200, body=b'{"kind":"Table","metadata":{"resourceVersion":"7"},"rows":[]}')
    with following(api) as it:
        pass
    assert (it.reflector.counters["errors.MalformedReply"], len(it.lists)) == (1, 2)


def test_lw9_a_deletion_that_cannot_be_decoded_is_not_forgotten(api):
    api.put(node("bad"))
    with following(api) as it:
        api.hold_events()
        api.delete("Node", "bad")
        gone = {"kind": "Node", "metadata": {"name": "bad", "resourceVersion": "1002"}, "spec": {"unschedulable": 1}}
        api.emit(None, "DELETED", gone)
        wait_until(lambda: it.store.versions == {}, "the deletion")
    assert it.pauses == [0.8]


def test_lw9_a_line_that_is_not_json_leads_to_a_new_list(api):
    with following(api) as it:
        api.emit_bytes(None, b'{"type":"ADDED","object":{"kind":"No\xff\n')
        assert (next_step(it), it.pauses) == (ANEW, [0.8])


def test_lw12_an_event_from_the_past_changes_nothing(api):
    api.put(node("a"))
    with following(api) as it:
        api.emit(None, "DELETED", {"kind": "Node", "metadata": {"name": "a", "resourceVersion": "999"}})
        api.put(node("b"))
        it.wait_version(1002)
    assert it.store.versions == {"a": "1001", "b": "1002"}


def test_lw12_a_list_from_the_past_is_not_taken_over(api):
    api.put(node("a"))
    with following(api) as it:
        api.rewind(500)
        api.error_watches(410, "Expired")
        wait_until(lambda: it.reflector.counters.get("errors.OlderList", 0) > 1, "refused lists")
        assert (it.reflector.resource_version, len(it.store.calls)) == ("1001", 1)


def test_lw12_a_server_set_back_for_good_is_believed_in_the_end(api):
    with following(api, monotonic=itertools.count(step=REWIND_LIMIT_S / 20).__next__) as it:
        api.rewind(500)
        api.error_watches(410, "Expired")
        it.wait_version(500)
    assert it.reflector.counters["rewinds"] == 1


def expired_at_the_list(api) -> None:
    api.answer_next(410, reason="Expired", watch=False)
    api.error_watches(410, "Expired")


def expired_on_page_two(api) -> None:
    more = json.dumps({"kind": "NodeList", "metadata": {"resourceVersion": "1000", "continue": "old"}, "items": []})
    api.answer_next(200, body=more.encode(), watch=False)
    api.answer_next(410, reason="Expired", watch=False)
    api.error_watches(410, "Expired")


def expired_at_the_watch(api) -> None:
    api.answer_next(410, reason="Expired", watch=True)
    api.end_watches()


def expired_twice(api) -> None:
    api.answer_next(410, reason="Expired", watch=True)
    api.error_watches(410, "Expired")


@pytest.mark.parametrize(
    ("fault", "lists", "pauses"),
    [
        pytest.param(expired_at_the_list, 2, [0.8, 1.0], id="at the list that follows an expired watch"),
        pytest.param(expired_on_page_two, 3, [0.8], id="on page two"),
        pytest.param(expired_at_the_watch, 1, [0.8], id="when the watch is opened"),
        pytest.param(lambda api: api.error_watches(410, "Expired"), 1, [0.8], id="in mid-stream"),
        pytest.param(expired_twice, 2, [0.8, 1.0], id="twice in a row"),
    ],
)
def test_an_expired_version_costs_one_list_each_and_no_hurry(api, fault, lists, pauses):
    """Each pause is followed by two requests at most but where a list has pages: so many in the first second."""
    with following(api) as it:
        api.put(node("a"))
        it.wait_version(1001)
        fault(api)
        wait_until(lambda: len(it.lists) == 1 + lists and api.watchers() == 1, "the watch after the lists")
        assert (it.pauses, it.store.versions) == (pauses, {"a": "1001"})
