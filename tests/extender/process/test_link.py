import signal

import pytest

from extender.process import link
from extender.process.link import Word, make_link


@pytest.fixture
def pair():
    master, worker = make_link()
    yield master, worker
    master.close()
    worker.close()


def test_words_arrive_in_order_and_once(pair):
    master, worker = pair
    assert [] == worker.read()
    for word in (Word.ACCEPT, Word.RETIRE, Word.STOP):
        master.tell(word)
    assert [Word.ACCEPT, Word.RETIRE, Word.STOP] == worker.read()
    assert [] == worker.read()


def test_a_master_that_has_gone_is_read_each_time(pair):
    master, worker = pair
    master.tell(Word.RETIRE)
    master.close()
    assert [[Word.RETIRE], [Word.GONE], [Word.GONE]] == [worker.read() for _ in range(3)]


def test_a_worker_tells_once_that_it_has_synced_and_wakes_the_master(pair, monkeypatch):
    master, worker = pair
    woken = []
    monkeypatch.setattr(link.os, "kill", lambda _pid, number: woken.append(number))
    master.listen()
    assert not master.synced
    worker.tell_synced()
    master.listen()
    master.listen()
    assert (True, [signal.SIGCHLD]) == (master.synced, woken)


def test_what_is_said_to_nobody_is_no_error(pair, monkeypatch):
    master, worker = pair
    monkeypatch.setattr(link.os, "kill", lambda *_: None)
    worker.close()
    master.tell(Word.STOP)
    master.listen()
    assert not master.synced
    master.close()
    assert [Word.GONE] == worker.read()
    worker.tell_synced()
