import signal

import pytest

from extender.process import control_socket
from extender.process.control_socket import Message, make_link


@pytest.fixture
def pair():
    master, worker = make_link()
    yield master, worker
    master.close()
    worker.close()


def test_words_arrive_in_order_and_once(pair):
    master, worker = pair
    assert [] == worker.read()
    for word in (Message.ACCEPT, Message.RETIRE, Message.STOP):
        master.tell(word)
    assert [Message.ACCEPT, Message.RETIRE, Message.STOP] == worker.read()
    assert [] == worker.read()


def test_a_master_that_has_gone_is_read_each_time(pair):
    master, worker = pair
    master.tell(Message.RETIRE)
    master.close()
    assert [[Message.RETIRE], [Message.GONE], [Message.GONE]] == [worker.read() for _ in range(3)]


def test_a_worker_tells_once_that_it_has_synced_and_wakes_the_master(pair, monkeypatch):
    master, worker = pair
    woken = []
    monkeypatch.setattr(control_socket.os, "kill", lambda _pid, number: woken.append(number))
    master.listen()
    assert not master.synced
    worker.tell_synced()
    master.listen()
    master.listen()
    assert (True, [signal.SIGCHLD]) == (master.synced, woken)


def test_what_is_said_to_nobody_is_no_error(pair, monkeypatch):
    master, worker = pair
    monkeypatch.setattr(control_socket.os, "kill", lambda *_: None)
    worker.close()
    master.tell(Message.STOP)
    master.listen()
    assert not master.synced
    master.close()
    assert [Message.GONE] == worker.read()
    worker.tell_synced()
