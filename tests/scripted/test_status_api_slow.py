"""Clients that are slow at the people's port, each in its way: whoever comes beside them is answered all the same. On
both lines of gunicorn, whose own worker gives its threads, or its only loop, to such clients.
"""

import resource
import select
import socket
import struct
import threading
from contextlib import ExitStack, contextmanager, suppress

import pytest

from tests.scripted.status_api_process import StatusApiProcess
from tools.kit.pid import children
from tools.kit.waiting import wait_until

ASKED = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n"
BODY = b"POST /filter HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n\r\n"


@pytest.fixture(scope="module")
def status_api(gunicorn, tmp_path_factory):
    folder = tmp_path_factory.mktemp("slow")
    config = {"feed": {"socket": str(folder / "feed" / "socket")}}
    with StatusApiProcess(config, folder, environ=gunicorn.environ) as status_api:
        wait_until(lambda: status_api.get("/livez")[0] == 200, "the first answer", timeout_s=20)
        yield status_api
        assert "Traceback" not in status_api.log


@contextmanager
def clients(status_api, *words):
    """One for each of these, which it says and then waits."""
    with ExitStack() as stack:
        at = ("127.0.0.1", status_api.port)
        found = [stack.enter_context(socket.create_connection(at, timeout=20)) for _ in words]
        for client, said in zip(found, words, strict=True):
            client.sendall(said)
        yield found


@contextmanager
def dripping(clients):
    """A byte of each twice a second: none of them is ever silent for long."""
    over = threading.Event()

    def drip():
        while not over.wait(0.5):
            for client in clients:
                with suppress(OSError):
                    client.send(b"a")

    thread = threading.Thread(target=drip)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def answers(status_api):
    """By a page that needs a thread, as any but /livez does."""
    return status_api.get("/metrics")[0] == 200


def test_those_that_keep_a_connection_which_is_to_end_keep_nobody_waiting(status_api):
    """gunicorn's own worker waits two seconds for each of them to close, in the thread that takes connections."""
    with clients(status_api, *[ASKED + b"Connection: close\r\n\r\n"] * 40):
        wait_until(lambda: answers(status_api), "an answer", timeout_s=30)


def test_those_that_say_nothing_have_no_thread(status_api):
    """They have one for five seconds each in gunicorn's own, so 56 of them have all for 35."""
    with clients(status_api, *[b""] * 56):
        wait_until(lambda: answers(status_api), "an answer", timeout_s=15)


def test_those_that_say_nothing_have_no_place_either_once_there_is_none_left(status_api):
    """64 of them have all, and were waited for in turn: 640 would keep everybody for 50 seconds."""
    with clients(status_api, *[b""] * 640):
        wait_until(lambda: answers(status_api), "an answer", timeout_s=15)


def test_those_that_send_a_byte_now_and_then_have_a_thread_for_a_while(status_api):
    """As many as there are threads, which would be theirs for as long as they like: half are within a head."""
    with clients(status_api, *[ASKED + b"X: ", BODY] * 4) as slow, dripping(slow):
        wait_until(lambda: not answers(status_api), "all threads are taken", timeout_s=15)
        wait_until(lambda: answers(status_api), "an answer", timeout_s=30)


def test_the_kubelets_probe_is_answered_while_all_threads_are_taken(status_api):
    """Within 5 s, half of the timeout of its liveness probe."""
    with clients(status_api, *[ASKED + b"X: ", BODY] * 8) as slow, dripping(slow):
        wait_until(lambda: not answers(status_api), "all threads are taken", timeout_s=15)
        assert status_api.get("/livez")[0] == 200


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(ASKED + b"Content-Length: 9\r\n\r\n", id="with a body that does not come"),
        pytest.param(ASKED + b"Expect: 100-continue\r\nContent-Length: 9\r\n\r\n", id="that asks whether to send one"),
        pytest.param(ASKED + b"Transfer-Encoding: chunked\r\n\r\n", id="with chunks that do not come"),
        pytest.param(ASKED, id="that does not end"),
        pytest.param(ASKED + b"\r\n", id="that keeps its connection and does not read"),
        pytest.param((ASKED + b"\r\n") * 500, id="by the hundred, not read"),
    ],
)
def test_no_request_for_livez_keeps_another_one_waiting(status_api, said):
    """They are answered by the thread that accepts connections, which may wait for no client."""
    with clients(status_api, *[said] * 3):
        assert status_api.get("/livez")[0] == 200


def reset(port):
    """A connection that asks for a page and is reset at once."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5) as client:
        client.sendall(b"GET /api/v1/nodes HTTP/1.1\r\nHost: localhost\r\n\r\n")
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def test_the_kubelets_probe_is_answered_during_a_flood_of_connections(status_api):
    over = threading.Event()

    def pour():
        while not over.is_set():
            reset(status_api.port)

    threads = [threading.Thread(target=pour) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        assert [200] * 50 == [status_api.get("/livez")[0] for _ in range(50)]
    finally:
        over.set()
        for thread in threads:
            thread.join()
    wait_until(lambda: answers(status_api), "an answer", timeout_s=30)


def test_beyond_as_many_requests_as_may_wait_each_is_refused_at_once(status_api):
    with clients(status_api, *[ASKED + b"X: "] * 60) as found:
        readable, _, _ = select.select(found, [], [], 20)
        answer = readable[0].recv(65536)
        assert answer.startswith(b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n")
        assert answer.endswith(b'\r\n\r\n{"Error":"Service Unavailable"}')
        assert status_api.get("/livez")[0] == 200
    wait_until(lambda: answers(status_api), "an answer", timeout_s=30)


@pytest.mark.parametrize("said", [b"Content-Length: 100000\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n8000\r\n"])
def test_large_body_that_drips_keeps_its_turn_for_seconds_only(status_api, said):
    """It used to have the turn for as long as a thread, which is a minute while another thread is free."""
    head = b"POST /filter HTTP/1.1\r\nHost: localhost\r\n"
    body = b'{"Pod":{},"NodeNames":["h1"]}' + b" " * 100_000
    with clients(status_api, head + said) as slow, dripping(slow):
        wait_until(lambda: status_api.request("POST", "/filter", body)[0] == 503, "the body has the turn", timeout_s=15)
        wait_until(lambda: status_api.request("POST", "/filter", body)[0] == 200, "another has the turn", timeout_s=30)
        slow[0].settimeout(20)
        assert slow[0].recv(65536).startswith(b"HTTP/1.1 408 ")


def test_worker_without_descriptors_goes_on_when_it_has_some_again(status_api):
    (worker,) = children(status_api.process.pid)
    before = resource.prlimit(worker, resource.RLIMIT_NOFILE)
    resource.prlimit(worker, resource.RLIMIT_NOFILE, (4, before[1]))  # open ones stay, and those below are taken
    try:
        with clients(status_api, ASKED + b"\r\n") as waiting:
            waiting[0].settimeout(2)
            with pytest.raises(TimeoutError):
                waiting[0].recv(65536)
            resource.prlimit(worker, resource.RLIMIT_NOFILE, before)
            waiting[0].settimeout(20)
            assert waiting[0].recv(65536).startswith(b"HTTP/1.1 200 ")
    finally:
        resource.prlimit(worker, resource.RLIMIT_NOFILE, before)
    assert [worker] == children(status_api.process.pid)
    wait_until(lambda: answers(status_api), "an answer", timeout_s=30)
