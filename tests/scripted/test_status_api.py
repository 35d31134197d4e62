"""The process of the people beside the real extender: what it shows, while that one lives, hangs, dies and returns."""

import http.client
import json
import os
import signal
import socket
import time

import pytest

from extender.web.schema import NO_BROWSER_HEADER
from tests.contract.go_types import read_filter_result
from tests.extender.builders import node_json, pod_json
from tests.scripted.extender_process import ORDINARY_POD, ExtenderProcess
from tests.scripted.status_api_process import StatusApiProcess
from tools.fakes.api_server import FakeApiServer
from tools.kit.pid import children
from tools.kit.ports import free_port
from tools.kit.waiting import wait_until


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """(extender, people, API server): h1 is healthy, u1 is not."""
    folder = tmp_path_factory.mktemp("status-api")
    with FakeApiServer() as api:
        api.put(node_json("h1", Ready="True"))
        api.put(node_json("u1", Ready="True"))
        api.put(pod_json("h1"))
        api.put(pod_json("u1", Ready="False"))
        with (
            ExtenderProcess(api, folder) as extender,
            StatusApiProcess(extender.settings, folder) as status_api,
        ):
            status_api.wait_follows()
            yield extender, status_api, api
            assert "Traceback" not in status_api.log


def nodes(status_api):
    page = json.loads(status_api.get("/api/v1/nodes")[1])
    return page["notAnswering"], {node["node"]: node["open"] for node in page["nodes"]}


def post(status_api, body, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", status_api.port, timeout=10)
    try:
        connection.request("POST", "/filter", body, {"Content-Type": "application/json"} | headers)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def question(*names):
    return json.dumps({"Pod": ORDINARY_POD, "Nodes": None, "NodeNames": names}).encode()


def test_what_the_extender_decides_is_shown(both):
    _, status_api, api = both
    assert nodes(status_api) == ("", {"h1": True, "u1": False})
    api.put(pod_json("u1"))
    wait_until(lambda: nodes(status_api)[1]["u1"], "the change")
    api.put(pod_json("u1", Ready="False"))
    wait_until(lambda: not nodes(status_api)[1]["u1"], "the change back")


def test_the_verb_is_answered_as_kube_scheduler_is_answered(both):
    extender, status_api, _ = both
    status, body = post(status_api, question("h1", "u1", "x1"))
    assert (status, read_filter_result(body)) == (200, extender.filter(["h1", "u1", "x1"]))


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        pytest.param({}, 200, id="the address"),
        pytest.param({"Host": "localhost"}, 200, id="localhost"),
        pytest.param({"Host": "evil.example"}, 421, id="a name of somebody else"),
        pytest.param(
            {"Host": "api.example:6443", NO_BROWSER_HEADER: "readygate"}, 200, id="the API server's name, by no browser"
        ),
    ],
)
def test_whose_requests_are_answered(both, headers, expected):
    assert post(both[1], question("h1"), **headers)[0] == expected


def test_counts_of_the_verb_are_those_of_the_other_process(both):
    extender, status_api, _ = both

    def answered():
        lines = status_api.get("/metrics")[1].splitlines()
        counted = 'readygate_requests_total{result="answered",verb="filter"}'
        return next(float(line.split()[-1]) for line in lines if line.startswith(counted))

    before = answered()
    extender.filter(["h1"])
    wait_until(lambda: answered() > before, "the count")
    assert "readygate_feed_connected 1.0" in status_api.get("/metrics")[1]


@pytest.mark.parametrize("of", ["requests", "status_api_requests"])
def test_verbs_are_counted_apart_and_each_port_for_itself(both, of):
    extender, status_api, _ = both
    asked = status_api if of == "status_api_requests" else extender
    for path in ("/preempt", "/prioritize", "/bind"):
        asked.post(b"{", path=path)
    results = {"preempt": "malformed", "prioritize": "malformed", "bind": "unanswerable"}
    wanted = {f'readygate_{of}_total{{result="{result}",verb="{verb}"}} 1.0' for verb, result in results.items()}
    status_api.wait(lambda: wanted <= set(status_api.get("/metrics")[1].splitlines()))


def test_a_client_that_sends_half_a_request_is_let_go(both):
    """Eight of them have all threads for some seconds, and then no more."""
    _, status_api, _ = both
    clients = [socket.create_connection(("127.0.0.1", status_api.port)) for _ in range(8)]
    for client in clients:
        client.sendall(b"POST /filter HTTP/1.1\r\nHost: 127.0.0.1\r\n")
    wait_until(lambda: status_api.get("/livez")[0] == 200, "an answer", timeout_s=20)
    for client in clients:
        client.close()


def test_while_the_extender_hangs_people_are_told(both):
    extender, status_api, _ = both
    workers = children(extender.process.pid)
    for pid in workers:
        os.kill(pid, signal.SIGSTOP)
    try:
        wait_until(lambda: "silent" in nodes(status_api)[0], "the word", timeout_s=15)
        answered = status_api.get("/readyz")[0], status_api.get("/livez")[0], set(nodes(status_api)[1])
        assert answered == (503, 200, {"h1", "u1"})
    finally:
        for pid in workers:
            os.kill(pid, signal.SIGCONT)
    wait_until(status_api.ready, "the feed", timeout_s=10)


def test_a_worker_that_is_killed_is_followed_again(both):
    extender, status_api, _ = both
    (worker,) = children(extender.process.pid)
    os.kill(worker, signal.SIGKILL)
    wait_until(lambda: nodes(status_api)[0] != "", "the word")
    assert status_api.get("/livez")[0] == 200
    extender.wait_ready(timeout_s=20)
    began = time.monotonic()
    wait_until(status_api.ready, "the feed", timeout_s=10)
    assert time.monotonic() - began < 2.0


def test_after_a_reload_the_new_worker_is_followed(both):
    extender, status_api, _ = both
    (before,) = children(extender.process.pid)
    os.kill(extender.process.pid, signal.SIGHUP)
    wait_until(lambda: before not in children(extender.process.pid), "the reload", timeout_s=30)
    (after,) = children(extender.process.pid)
    wait_until(lambda: f"peer_pid={after}" in status_api.log, "the new one", timeout_s=10)
    wait_until(status_api.ready, "the feed", timeout_s=10)


def test_a_reload_with_other_gates_reaches_the_people_too(both):
    """By one signal to the extender; the rules and the decisions of a worker come over one connection."""
    extender, status_api, _ = both
    before = dict(extender.settings)
    extender.settings |= {
        "mode": "enforce",
        "gates": [{"name": "gpu", "for": {"resources": ["nvidia.com/gpu"]}}],
    }

    def told():
        answer = json.loads(status_api.get("/api/v1/gates")[1])
        return [(gate["gate"], gate["for"]) for gate in answer["gates"]], answer["scheduler"]["mode"]

    try:
        extender.write()
        os.kill(extender.process.pid, signal.SIGHUP)
        expected = [("gpu", "pods that request nvidia.com/gpu")], "enforce"
        wait_until(lambda: told() == expected, "the other gates", timeout_s=30)
        assert read_filter_result(post(status_api, question("h1", "u1"))[1]) == extender.filter(["h1", "u1"])
        assert extender.filter(["h1", "u1"]).FailedNodes == {}, "the gate is not for ordinary pods"
    finally:
        extender.settings = before
        extender.write()
        os.kill(extender.process.pid, signal.SIGHUP)
        wait_until(lambda: told() == ([("health", "every pod")], ""), "the gates of before", timeout_s=30)


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(b"", id="a silent connection"),
        pytest.param(b"POST /filter HTTP/1.1\r\nHos", id="half a header"),
        pytest.param(b"POST /filter HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n\r\n{", id="half a body"),
        pytest.param(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n", id="an answered connection that is kept"),
    ],
)
def test_it_stops_in_a_second_and_cleanly_with(both, tmp_path, words):
    """A loaded machine gets four times that."""
    extender, _, _ = both
    with StatusApiProcess(extender.settings, tmp_path) as status_api:
        status_api.wait_follows()
        with socket.create_connection(("127.0.0.1", status_api.port)) as client:
            client.sendall(words)
            status_api.wait_follows()
            code, seconds = status_api.stop()
    assert (code, seconds < 4.0) == (0, True)


def test_a_worker_ends_by_itself_before_it_would_be_killed(both, tmp_path):
    """Half a request has a thread for five seconds."""
    extender, _, _ = both
    with StatusApiProcess(extender.settings, tmp_path) as status_api:
        status_api.wait_follows()
        (worker,) = children(status_api.process.pid)
        with socket.create_connection(("127.0.0.1", status_api.port)) as client:
            client.sendall(b"POST /filter HTTP/1.1\r\nHos")
            status_api.wait_follows()
            os.kill(worker, signal.SIGTERM)
            wait_until(lambda: worker not in children(status_api.process.pid), "its end", timeout_s=2.5)


LIMIT = 2 * 2**20
LENGTH = b"Content-Length: %d\r\n\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
CHUNK = b"10000\r\n" + b" " * 0x10000 + b"\r\n"


@pytest.mark.parametrize(
    ("head", "sent"),
    [
        pytest.param(b"POST /filter", LENGTH % (LIMIT + 1), id="a verb"),
        pytest.param(b"POST /preempt", LENGTH % 8_000_000, id="another verb, of a size that kube-scheduler may send"),
        pytest.param(b"GET /api/v1/nodes", LENGTH % (LIMIT + 1), id="a page"),
        pytest.param(b"GET /metrics", LENGTH % (LIMIT + 1), id="metrics"),
        pytest.param(b"GET /livez", LENGTH % (LIMIT + 1), id="a probe"),
        pytest.param(b"PUT /nothing", LENGTH % (LIMIT + 1), id="a path that is not there"),
        pytest.param(b"POST /filter", CHUNKED + CHUNK * 33, id="chunks, as soon as they are too many"),
    ],
)
def test_a_body_above_2_mib_is_refused_without_its_rest(both, head, sent):
    """Nothing more comes: an answer that waited for the body would not come."""
    answer = both[1].raw(head + b" HTTP/1.1\r\nHost: localhost\r\n" + sent)
    assert (b"HTTP/1.1 413 ", True) == (answer[:13], b"connection: close" in answer.lower())


def test_a_body_of_2_mib_is_answered(both):
    _, status_api, _ = both
    body = question("h1", "u1")
    assert post(status_api, body + b" " * (LIMIT - len(body)))[0] == 200


def test_large_body_is_refused_with_503_while_another_one_is_read(both):
    _, status_api, _ = both
    with socket.create_connection(("127.0.0.1", status_api.port)) as other:
        other.sendall(b"POST /filter HTTP/1.1\r\nHost: localhost\r\n" + LENGTH % 100_000)
        body = question("h1") + b" " * 100_000

        def refused():
            status, headers, _ = status_api.request("POST", "/filter", body)
            return (status, headers["Retry-After"]) == (503, "1")

        wait_until(refused, "the refusal")
        assert post(status_api, question("h1"))[0] == 200, "a small one"
    wait_until(lambda: post(status_api, body)[0] == 200, "the other one has gone")


@pytest.mark.parametrize("after_s", [0.1, 0.2, 0.3, 0.4, 0.5, 0.7])
def test_a_stop_while_it_starts(both, tmp_path, after_s):
    status_api = StatusApiProcess(both[0].settings, tmp_path)
    status_api.start()
    time.sleep(after_s)
    code, seconds = status_api.stop()
    assert seconds < 4.0
    # Before Python has come to our first line, the signal ends it.
    assert code in {0, -signal.SIGTERM}, status_api.log
    assert "Traceback" not in status_api.log


def test_without_an_extender_it_serves_and_says_so(tmp_path):
    with StatusApiProcess({"feed": {"socket": str(tmp_path / "feed" / "socket")}}, tmp_path) as status_api:
        wait_until(lambda: "sends nothing" in nodes(status_api)[0], "the word")
        assert (status_api.get("/livez")[0], status_api.get("/readyz")[0]) == (200, 503)
        assert b"not synced" in post(status_api, question("h1"))[1]
        assert status_api.stop(signal.SIGINT)[0] == 130


def test_it_serves_at_several_addresses(tmp_path, monkeypatch):
    """As in a pod with extender.statusApi.address: on loopback for probes, and at the host's address."""
    monkeypatch.setenv("HOST_IP", "127.0.0.2")
    port = free_port("127.0.0.2")
    serves = {"port": port, "moreAddresses": ["$(HOST_IP)", "127.0.0.1"]}
    config = {"feed": {"socket": str(tmp_path / "feed" / "socket")}}
    with StatusApiProcess(config, tmp_path, status_api=serves) as status_api:
        for address in ("127.0.0.1", "127.0.0.2"):
            connection = http.client.HTTPConnection(address, port, timeout=10)
            connection.request("GET", "/livez")
            assert connection.getresponse().status == 200
            connection.close()
        assert status_api.stop()[0] == 0
