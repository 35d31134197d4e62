"""How the extender behaves on the wire, by the cases X of the contract: methods, paths, sizes, connections, metrics."""

import json
import re
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from extender.verbs.wire import BODY_LIMIT_BYTES, TOO_LARGE
from tests.scripted.extender_process import checked

GOOD = json.dumps({"Pod": {}, "Nodes": None, "NodeNames": ["h1"]}).encode()


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"])
@pytest.mark.parametrize("verb", ["filter", "preempt", "prioritize", "bind"])
def test_x31_only_post(extender, method, verb):
    status, headers, _ = extender.request(method, f"/{verb}")
    assert (status, headers["Allow"]) == (405, "POST")


@pytest.mark.parametrize(
    "content_type",
    ["application/json; charset=utf-8", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "?"],
)
def test_x32_the_content_type_is_not_looked_at(extender, content_type):
    status, _, body = extender.request("POST", "/filter", GOOD, {"Content-Type": content_type})
    assert (status, checked(body).NodeNames) == (200, ["h1"])


def test_x32_a_request_without_a_content_type_is_answered(extender):
    answer = extender.raw(
        b"POST /filter HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b"
        % (len(GOOD), GOOD)
    )
    assert answer.startswith(b"HTTP/1.1 200 OK")


@pytest.mark.parametrize("path", ["//filter", "/filter/", "///filter//", "/filter?a=b"])
def test_x33_slashes_do_not_redirect(extender, path):
    status, _, body = extender.post(GOOD, path=path)
    assert (status, checked(body).NodeNames) == (200, ["h1"])


@pytest.mark.parametrize("path", ["/", "/filters", "/filter/x", "/preempts", "/%2e%2e/filter"])
def test_paths_that_are_not_ours_are_not_found(extender, path):
    assert extender.post(GOOD, path=path)[0] == 404


def padded(size):
    head = b'{"Pod":{},"NodeNames":["h1"],"X":"'
    return head + b"x" * (size - len(head) - 2) + b'"}'


@pytest.mark.parametrize(
    ("size", "error"),
    [
        pytest.param(BODY_LIMIT_BYTES, "", id="up to 8 MiB"),
        pytest.param(BODY_LIMIT_BYTES + 1, TOO_LARGE, id="beyond"),
        pytest.param(57_000_000, TOO_LARGE, id="as whole nodes are, 5,000 of them"),
    ],
)
def test_x34_a_body_that_is_too_large_is_answered_so_that_a_user_can_read_it(extender, size, error):
    connection = extender.connection()
    connection.request("POST", "/filter", padded(size))
    response = connection.getresponse()
    assert (200, error) == (response.status, checked(response.read()).Error)
    connection.request("POST", "/filter", GOOD)
    assert connection.getresponse().status == 200
    connection.close()


def test_x34_a_huge_length_is_refused_at_once(extender):
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", extender.port), timeout=5) as sock:
        sock.sendall(b"POST /filter HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000000\r\n\r\n{")
        assert b" 413 " in sock.recv(100)
    assert time.monotonic() - began < 2


def test_x34_chunked_bodies_count_too(extender):
    connection = extender.connection()
    connection.request("POST", "/filter", (b" " * 2**20 for _ in range(65)), encode_chunked=True)
    assert checked(connection.getresponse().read()).Error == TOO_LARGE
    connection.close()
    assert extender.post(GOOD)[0] == 200


def test_chunked_body(extender):
    connection = extender.connection()
    connection.request("POST", "/filter", iter([GOOD[:7], GOOD[7:]]), encode_chunked=True)
    assert checked(connection.getresponse().read()).NodeNames == ["h1"]
    connection.close()


def test_x35_an_encoded_body_is_refused(extender):
    assert extender.post(GOOD, headers={"Content-Encoding": "gzip"})[0] == 415


def test_x36_a_client_that_leaves_within_its_body_frees_the_thread(extender):
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", extender.port)) as sock:
            sock.sendall(b"POST /filter HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n\r\n{")
    assert extender.post(GOOD)[0] == 200


@pytest.mark.parametrize(
    "head",
    [b"POST /filter HTTP/1.0\r\n", b"POST /filter HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"],
    ids=["X41 HTTP/1.0", "X41 Connection: close"],
)
def test_answered_and_closed(extender, head):
    answer = extender.raw(head + b"Content-Length: %d\r\n\r\n%b" % (len(GOOD), GOOD))
    assert checked(answer.partition(b"\r\n\r\n")[2]).NodeNames == ["h1"]


def test_x38_many_at_once_get_the_same_answer(extender):
    names = ["h1", *(f"x{i}" for i in range(811))]
    body = json.dumps({"Pod": {}, "Nodes": None, "NodeNames": names}).encode()
    with ThreadPoolExecutor(32) as pool:
        answers = list(pool.map(lambda _: extender.post(body)[2], range(64)))
    assert len(set(answers)) == 1
    checked(answers[0], names)


def test_x58_metrics_can_be_read_under_load(extender, status_api):
    stop = threading.Event()

    def load():
        while not stop.is_set():
            extender.post(GOOD)

    thread = threading.Thread(target=load)
    thread.start()
    try:
        texts = [status_api.get("/metrics")[1] for _ in range(5)]
    finally:
        stop.set()
        thread.join()
    assert len({len(re.findall(r"^readygate_", text, re.MULTILINE)) for text in texts[1:]}) == 1
    assert 'readygate_request_duration_seconds_bucket{le="0.002",verb="filter"}' in texts[-1]
    for result in ("answered", "malformed", "too_large", "not_synced"):
        assert f'readygate_requests_total{{result="{result}",verb="filter"}}' in texts[-1]
    assert not [line for line in texts[-1].splitlines() if "h1" in line]


def test_x59_a_strange_name_in_the_path_is_one_escaped_line(extender):
    before = len(extender.lines)
    extender.raw(b'GET /\x1b[31m"\xc3\xa9 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
    extender.raw(b"GE\x1bT / HTTP/1.1\r\n\r\n")
    assert extender.get("/livez")[0] == 200
    assert not [line for line in extender.lines[before:] if "\x1b" in line or not line[:4].isdigit()]


def test_two_requests_in_one_packet_are_both_answered(extender):
    head = b"POST /filter HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n" % len(GOOD)
    answers = extender.raw(head + b"\r\n" + GOOD + head + b"Connection: close\r\n\r\n" + GOOD)
    assert answers.count(b"HTTP/1.1 200 OK") == 2


def test_more_kept_connections_than_threads_are_all_served(extender):
    connections = [extender.connection() for _ in range(40)]
    for _ in range(2):
        for connection in connections:
            connection.request("POST", "/filter", GOOD)
        assert [connection.getresponse().read()[:1] for connection in connections] == [b"{"] * len(connections)
    for connection in connections:
        connection.close()
