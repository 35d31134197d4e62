"""Clients that break off, dawdle, frame wrongly or send nonsense: they get a 4xx, and nobody else notices.

The extender's own fixture proves at its end that none of this left a traceback.
"""

import json
import socket
import threading
import time
from contextlib import ExitStack, contextmanager

import pytest

from tests.scripted.extender_process import checked

GOOD = json.dumps({"Pod": {}, "Nodes": None, "NodeNames": ["h1"]}).encode()
POST = b"POST /filter HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
WHOLE = b"Content-Length: %d\r\n\r\n%b" % (len(GOOD), GOOD)


def is_answered_at_once(extender):
    began = time.monotonic()
    assert checked(extender.post(GOOD)[2]).NodeNames == ["h1"]
    assert time.monotonic() - began < 3  # a machine with other work; who waits for another's limit waits for 5


@contextmanager
def clients(extender, count, data):
    """Connections that have sent `data` and stay open."""
    with ExitStack() as stack:
        socks = []
        for _ in range(count):
            sock = stack.enter_context(socket.create_connection(("127.0.0.1", extender.port), timeout=15))
            sock.sendall(data)
            socks.append(sock)
        yield socks


@pytest.mark.parametrize(
    "header",
    [b"SCRIPT_NAME: /x", b"PATH_INFO: /x", b"X-Forwarded-Proto: https\r\nX-Forwarded-Ssl: off"],
    ids=["a script name", "a path", "schemes that differ"],
)
def test_headers_of_proxies_are_not_believed(extender, header):
    answer = extender.raw(POST + header + b"\r\nConnection: close\r\n" + WHOLE)
    assert answer.startswith(b"HTTP/1.1 200 OK")


def test_who_waits_to_be_told_to_send_a_body_is_told(extender):
    with clients(extender, 1, POST + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(GOOD)) as (sock,):
        assert b"HTTP/1.1 100 Continue\r\n\r\n" == sock.recv(100)
        sock.sendall(GOOD)
        assert sock.recv(1000).startswith(b"HTTP/1.1 200 OK\r\n")


def test_who_has_sent_its_body_is_not_told_to(extender):
    answer = extender.raw(POST + b"Expect: 100-continue\r\nConnection: close\r\n" + WHOLE)
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")


def test_head_is_a_header_and_not_worth_a_line_of_log(extender):
    before = len(extender.lines)
    answer = extender.raw(b"HEAD /filter HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert (answer[:12], answer[-4:], extender.lines[before:]) == (b"HTTP/1.1 405", b"\r\n\r\n", [])


def test_clients_that_do_not_close_after_the_last_answer_hold_nobody_up(extender):
    with clients(extender, 12, b"POST /filter HTTP/1.0\r\n" + WHOLE):
        is_answered_at_once(extender)


def test_clients_that_leave_without_their_answer(extender):
    names = json.dumps({"Pod": {}, "NodeNames": [f"node-{i}-{'x' * 60}" for i in range(20_000)]}).encode()
    with clients(extender, 4, POST + b"Content-Length: %d\r\n\r\n%b" % (len(names), names)):
        pass
    is_answered_at_once(extender)


def test_x40_what_stalls_is_cut_and_who_only_rests_is_kept(extender):
    """X37 and X40. Rests past gunicorn's default of two seconds; the whole minute of X40
    is tests/scripted/test_extender_keepalive.py."""
    resting = extender.connection()
    resting.request("POST", "/filter", GOOD)
    assert resting.getresponse().read()
    before = resting.sock.getsockname()
    with (
        clients(extender, 1, POST + b"Content-Length: 5000\r\n\r\n{") as (body,),
        clients(extender, 15, b"POST /filter HT") as heads,
    ):
        assert b" 408 " in body.recv(100)
        for head in heads:
            assert head.recv(1) == b""
            head.close()
        is_answered_at_once(extender)
    resting.request("POST", "/filter", GOOD)
    assert (resting.getresponse().status, resting.sock.getsockname()) == (200, before)
    resting.close()


def test_one_more_client_is_served_while_more_than_there_are_threads_ask_without_a_pause(extender):
    stop = threading.Event()

    def ask():
        connection = extender.connection()
        while not stop.is_set():
            connection.request("POST", "/filter", GOOD)
            connection.getresponse().read()
        connection.close()

    threads = [threading.Thread(target=ask) for _ in range(20)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(5):
            is_answered_at_once(extender)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
