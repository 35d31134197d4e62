"""A watch of the client over a real socket."""

import socket
import threading
import time
from contextlib import ExitStack

import pytest

from kube import errors, paths
from kube.auth import Connection, TokenFile
from kube.client import Client
from tests.scripted.following import node
from tools.fakes.anonymous import Anonymous
from tools.fakes.api_server import FakeApiServer


@pytest.fixture
def api():
    with FakeApiServer() as server:
        yield server


@pytest.fixture
def client(api):
    client = Client(api.connection(), user_agent="t", deadline_s=20)
    yield client
    client.close()


def test_lines_come_as_bytes_without_their_newline(api, client):
    with client.watch(paths.nodes(), query={"resourceVersion": "1000"}) as stream:
        api.wait_watchers(1)
        api.emit_bytes(None, b'{"a":')
        api.emit_bytes(None, b"1}\n\n{}\n{")
        api.end_watches()
        assert list(stream) == [b'{"a":1}', b"{}"]


def test_a_flood_comes_in_few_batches_and_loses_nothing(api, client):
    lines = [f'{{"number":{number}}}'.encode() for number in range(500)]
    with client.watch(paths.nodes(), query={"resourceVersion": "1000"}) as stream:
        api.wait_watchers(1)
        for line in lines:
            api.emit_bytes(None, line + b"\n")
        api.end_watches()
        batches = list(stream.batches(rest_s=0.1))
    assert (lines, len(batches) < 50) == ([line for batch in batches for line in batch], True)


def test_the_first_line_after_a_pause_does_not_wait_and_close_ends_the_rest(api, client):
    with client.watch(paths.nodes(), query={"resourceVersion": "1000"}) as stream:
        api.wait_watchers(1)
        began = time.monotonic()
        api.emit_bytes(None, b"{}\n")
        batches = stream.batches(rest_s=30)
        first = next(batches)
        threading.Timer(0.1, stream.close).start()
        assert (first, list(batches), time.monotonic() - began < 3) == ([b"{}"], [], True)


def test_a_quiet_stream_can_be_looked_at(api, client):
    with client.watch(paths.nodes(), query={"resourceVersion": "1000"}) as stream:
        api.wait_watchers(1)
        batches = stream.batches(look_s=0.01)
        quiet = [next(batches) for _ in range(3)]
        api.emit_bytes(None, b"{}\n")
        assert (quiet, next(batch for batch in batches if batch)) == ([[], [], []], [b"{}"])


def test_what_came_before_a_line_that_is_too_long_is_given_first(api, client):
    with client.watch(paths.nodes(), query={"resourceVersion": "1000"}) as stream:
        api.wait_watchers(1)
        api.emit_bytes(None, b"{}\n")
        api.emit_bytes(None, b"x" * 9 * 2**20)
        batches = stream.batches(rest_s=0.1)
        first = next(batches)
        with pytest.raises(errors.MalformedReply, match="LineTooLong"):
            list(batches)
    assert first == [b"{}"]


@pytest.mark.parametrize("how", ["stream", "client"])
def test_close_from_another_thread_ends_the_reading_at_once(api, client, how):
    stream = client.watch(paths.nodes(), query={"resourceVersion": "1000"})
    read: list[list[bytes]] = []
    thread = threading.Thread(target=lambda: read.append(list(stream)))
    thread.start()
    api.wait_watchers(1)
    (stream if how == "stream" else client).close()
    stream.close()
    thread.join(20)
    assert (read, thread.is_alive()) == ([[]], False)


def test_silence_is_told(api, client):
    with client.watch(paths.nodes(), query={}, silence_limit_s=0.1) as stream, pytest.raises(errors.DeadlineExceeded):
        list(stream)
    api.wait_watchers(0)


def test_bytes_without_a_newline_do_not_break_the_silence(api, client):
    stop = threading.Event()

    def drip() -> None:
        while not stop.wait(0.02):
            api.emit_bytes(None, b" ")

    with client.watch(paths.nodes(), query={}, silence_limit_s=0.2) as stream:
        thread = threading.Thread(target=drip)
        thread.start()
        with pytest.raises(errors.DeadlineExceeded):
            list(stream)
        stop.set()
        thread.join()


def test_a_watch_that_is_not_answered_ends_at_the_deadline(api):
    client = Client(api.connection(), user_agent="t", deadline_s=0.5)
    api.stall_next()
    with pytest.raises(errors.DeadlineExceeded):
        client.watch(paths.nodes(), query={})
    client.close()


def test_a_watch_refused_for_its_token_is_opened_again_with_the_new_one(api, tmp_path):
    (tmp_path / "token").write_text("old")
    credentials = TokenFile(tmp_path / "token")
    credentials.headers(time.monotonic())
    (tmp_path / "token").write_text("new")
    api.tokens = {"new"}
    client = Client(api.connection(credentials), user_agent="t")
    with client.watch(paths.nodes(), query={}):
        pass
    client.close()
    assert [r.headers["Authorization"] for r in api.requests] == ["Bearer old", "Bearer new"]


def test_nothing_stays_open_after_many_watches(api, client):
    for _ in range(20):
        with client.watch(paths.nodes(), query={"timeoutSeconds": "0.01"}) as stream:
            list(stream)
    api.wait(lambda: not api._connections, 2, "the connections to close")
    api.put(node("n"))
    assert api.watchers() == 0


def test_a_peer_that_vanishes_is_noticed_by_the_kernel(client):
    with client.watch(paths.nodes(), query={"resourceVersion": "1000"}) as stream:
        sock = stream._connection.sock
        level = socket.IPPROTO_TCP
        found = [sock.getsockopt(level, o) for o in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)]
        kept_alive = sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert (kept_alive, found, sock.getsockopt(level, socket.TCP_USER_TIMEOUT)) == (1, [20, 3, 3], 25_000)


@pytest.fixture
def full():
    """The address of a listener whose queue is full: connecting to it neither succeeds nor fails."""
    with socket.socket() as listener, ExitStack() as waiting:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(3):
            other = waiting.enter_context(socket.socket())
            other.setblocking(False)
            other.connect_ex(listener.getsockname())
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_the_deadline_holds_while_connecting(full):
    client = Client(Connection(full, None, Anonymous()), user_agent="t", deadline_s=0.3)
    began = time.monotonic()
    with pytest.raises(errors.DeadlineExceeded):
        client.get(paths.nodes())
    client.close()
    assert time.monotonic() - began < 20.0


def test_close_unblocks_who_is_connecting(full):
    client = Client(Connection(full, None, Anonymous()), user_agent="t", deadline_s=30)
    caught: list[errors.KubeError] = []

    def connect() -> None:
        try:
            client.watch(paths.nodes(), query={})
        except errors.KubeError as e:
            caught.append(e)

    thread = threading.Thread(target=connect)
    thread.start()
    time.sleep(0.1)
    client.close()
    thread.join(20)
    assert [e.reason for e in caught] == ["Closed"]
