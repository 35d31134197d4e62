"""How new what the runtime said is, and who waits for newer (rows PL20-PL27)."""

import threading

import pytest

from agent.kubelet.pleg.cache import Cache, Entry
from agent.wire.containers import RuntimePod
from tests.agent.kubelet.pleg.builders import made

SINCE = 100.0
POD = made("p", "c1=r")


def waited(cache, uid="p", since=SINCE):
    got = []
    now = cache.newer_than(uid, since, got.append)
    return now, got


@pytest.mark.parametrize(
    ("listed_at", "modified", "newer"),
    [
        pytest.param(SINCE + 1, SINCE, True, id="PL20 listed after"),
        pytest.param(SINCE + 1, SINCE - 10, True, id="PL20 listed after, whatever the entry's time"),
        pytest.param(SINCE - 1, SINCE + 3, True, id="PL20 the entry is from after"),
        pytest.param(SINCE - 1, SINCE - 1, False, id="PL20 both from before"),
        pytest.param(SINCE, SINCE, False, id="PL21 exactly then is not newer"),
        pytest.param(None, SINCE + 1, True, id="PL20 never listed, the entry is from after"),
        pytest.param(None, SINCE - 1, False, id="PL20 never listed, the entry is from before"),
    ],
)
def test_pl20_pl21_what_is_newer(listed_at, modified, newer):
    cache = Cache()
    cache.set(POD, None, modified)
    if listed_at is not None:
        cache.update_time(listed_at)
    now, got = waited(cache)
    assert (newer, []) == (now is not None and now.pod is POD, got)


def test_pl20_a_pod_that_was_looked_at_is_newer():
    cache = Cache()
    cache.set(POD, None, SINCE - 5)
    cache.observe("p", SINCE + 1)
    assert Entry(POD, None, SINCE - 5, SINCE + 1) == waited(cache)[0]


@pytest.mark.parametrize(("listed_at", "known"), [(SINCE + 1, True), (SINCE - 1, False), (None, False)])
def test_pl22_a_pod_that_is_not_there_is_as_new_as_the_last_list(listed_at, known):
    cache = Cache()
    if listed_at is not None:
        cache.update_time(listed_at)
    now, _ = waited(cache)
    assert (Entry(RuntimePod("p")) if known else None) == now


def test_pl23_get_of_an_unknown_or_deleted_pod_is_an_empty_one():
    cache = Cache()
    assert Entry(RuntimePod("p")) == cache.get("p")
    cache.set(POD, None, 1.0)
    assert POD == cache.get("p").pod
    cache.delete("p")
    assert (Entry(RuntimePod("p")), frozenset()) == (cache.get("p"), cache.uids())


@pytest.mark.parametrize(
    "bring",
    [
        pytest.param(lambda cache, at: cache.set(POD, None, at), id="set"),
        pytest.param(lambda cache, at: cache.observe("p", at), id="observe"),
        pytest.param(lambda cache, at: cache.update_time(at), id="update_time"),
    ],
)
def test_pl24_who_waits_is_called_once_by_what_is_not_older_than_it_asked_for(bring):
    cache = Cache()
    cache.set(POD, None, 1.0)
    _, got = waited(cache)
    bring(cache, SINCE - 0.1)
    assert [] == got
    bring(cache, SINCE)
    bring(cache, SINCE + 1)
    assert [POD] == [entry.pod for entry in got]


def test_pl24_each_waits_for_its_own_time_and_its_own_pod():
    cache = Cache()
    (_, early), (_, late), (_, other) = waited(cache), waited(cache, since=SINCE + 10), waited(cache, uid="q")
    cache.set(POD, None, SINCE + 1)
    assert (1, 0, 0) == (len(early), len(late), len(other))
    cache.update_time(SINCE + 11)
    assert (1, 1, 1) == (len(early), len(late), len(other))


def test_pl25_an_error_is_kept_as_what_is_known():
    cache, error = Cache(), OSError("gone")
    _, got = waited(cache)
    cache.set(RuntimePod("p"), error, SINCE)
    assert [error] == [entry.error for entry in got]
    assert error is cache.get("p").error


@pytest.mark.parametrize(("newest_wins", "kept"), [(False, "older"), (True, "newer")])
def test_pl26_whether_what_is_older_replaces_the_entry(newest_wins, kept):
    cache = Cache(newest_wins=newest_wins)
    entries = {"newer": made("p", "c1=x"), "older": made("p", "c1=r")}
    assert cache.set(entries["newer"], None, 20.0)
    assert cache.set(entries["older"], None, 10.0) is not newest_wins
    assert entries[kept] == cache.get("p").pod
    assert cache.set(POD, None, 20.0), "of one time the last"


def test_pl27_who_is_called_may_ask_again():
    cache, got = Cache(), []
    cache.newer_than("p", SINCE, lambda _entry: cache.newer_than("p", SINCE + 1, got.append))
    cache.update_time(SINCE)
    cache.update_time(SINCE + 1)
    assert 1 == len(got)


def test_many_threads_each_get_their_call():
    cache, got = Cache(), []

    def ask(number):
        for turn in range(200):
            if cache.newer_than(f"p{number}", float(turn), got.append) is not None:
                got.append(None)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for turn in range(200):
        cache.update_time(float(turn))
        cache.set(RuntimePod(f"p{turn % 4}"), None, float(turn))
    for thread in threads:
        thread.join()
    cache.update_time(1000.0)
    assert 800 == len(got)
