"""One call of the client over a real socket: what is sent again, what is not, and when it gives up."""

import threading
import time
from contextlib import suppress

import pytest
import urllib3

from kube import errors, paths
from kube.auth import TokenFile
from kube.client import Client
from kube.media_types import MERGE_PATCH, STRATEGIC_MERGE_PATCH
from tests.scripted.following import node
from tools.fakes.api_server import FakeApiServer
from tools.kit.waiting import wait_until


@pytest.fixture
def api():
    with FakeApiServer() as server:
        server.put(node("n"))
        yield server


class Waiting:
    """Notes the pauses and does not wait; the clock goes on by them."""

    def __init__(self) -> None:
        self.pauses: list[float] = []
        self.passed_s = 0.0

    def wait(self, seconds: float) -> bool:
        self.pauses.append(seconds)
        self.passed_s += seconds
        return False

    def monotonic(self) -> float:
        return time.monotonic() + self.passed_s


@pytest.fixture
def waiting():
    return Waiting()


@pytest.fixture
def client(api, waiting):
    client = Client(api.connection(), user_agent="readygate/test", monotonic=waiting.monotonic, wait=waiting.wait)
    yield client
    client.close()


READ = pytest.param(lambda c: c.get(paths.node("n")), id="read")
WRITE = pytest.param(lambda c: c.patch(paths.node("n"), b"{}"), id="write")


def test_what_is_sent(api, client):
    client.get(paths.nodes(), query={"labelSelector": "a=b,c in (d)"})
    client.patch(paths.node("n"), b"{}", content_type=STRATEGIC_MERGE_PATCH)
    sent = [(r.method, r.path, dict(r.query), r.body, r.headers.get("Content-Type")) for r in api.requests]
    assert sent == [
        ("GET", "/api/v1/nodes", {"labelSelector": "a=b,c in (d)"}, b"", None),
        ("PATCH", "/api/v1/nodes/n", {}, b"{}", STRATEGIC_MERGE_PATCH),
    ]


def test_one_connection_serves_one_call_after_the_other(api, client):
    for _ in range(5):
        client.get(paths.nodes())
        with pytest.raises(errors.NotFound):
            client.get(paths.node("missing"))
    assert len(api._connections) == 1


@pytest.mark.parametrize("content_type", [MERGE_PATCH, STRATEGIC_MERGE_PATCH])
def test_create_replace_patch_and_delete_reach_the_object(api, client, content_type):
    client.create(paths.nodes(), b'{"metadata":{"name":"new"}}')
    client.patch(paths.node("new"), b'{"metadata":{"labels":{"a":"1"}}}', content_type=content_type)
    labels = api.get("Node", "new")["metadata"]["labels"]
    client.patch(
        paths.node("new"), b'[{"op":"remove","path":"/metadata/labels"}]', content_type="application/json-patch+json"
    )
    client.replace(paths.node("new"), b'{"metadata":{"name":"new"},"spec":{"unschedulable":true}}')
    spec = api.get("Node", "new")["spec"]
    client.delete(paths.node("new"))
    assert (labels, spec, api.get("Node", "new")) == ({"a": "1"}, {"unschedulable": True}, None)


@pytest.mark.parametrize(
    ("status", "reason", "expected"),
    [
        (400, "BadRequest", errors.Invalid),
        (401, "Unauthorized", errors.Unauthorized),
        (403, "Forbidden", errors.Forbidden),
        (404, "NotFound", errors.NotFound),
        (409, "Conflict", errors.Conflict),
        (409, "AlreadyExists", errors.AlreadyExists),
        (410, "Expired", errors.Gone),
        (415, "UnsupportedMediaType", errors.Invalid),
        (422, "Invalid", errors.Invalid),
        (429, "TooManyRequests", errors.TooManyRequests),
        (500, "InternalError", errors.ServerError),
        (504, "Timeout", errors.ServerError),
        (307, "", errors.MalformedReply),
    ],
)
def test_each_status_has_its_error(api, client, status, reason, expected):
    api.answer_next(status, reason=reason, message="because", times=2)
    with pytest.raises(errors.KubeError) as caught:
        client.patch(paths.node("n"), b"{}")
    e = caught.value
    assert (type(e), e.status, e.path, e.message) == (expected, status, "/api/v1/nodes/n", "because")


@pytest.mark.parametrize("call", [READ, WRITE])
def test_429_with_retry_after_is_sent_again_after_that_time(api, client, waiting, call):
    api.answer_next(429, retry_after="3", times=2)
    call(client)
    assert (waiting.pauses, len(api.requests)) == ([3.0, 3.0], 3)


@pytest.mark.parametrize(
    ("fault", "reads", "writes"),
    [
        pytest.param(lambda api: api.answer_next(503, retry_after="1"), 2, 1, id="503 with Retry-After"),
        pytest.param(lambda api: api.answer_next(503), 1, 1, id="503 without"),
        pytest.param(lambda api: api.answer_next(429), 1, 1, id="429 without"),
        pytest.param(lambda api: api.answer_next(429, retry_after="60"), 1, 1, id="429 beyond the deadline"),
        pytest.param(lambda api: api.answer_next(429, retry_after="0", times=50), 5, 5, id="429 for ever"),
        pytest.param(lambda api: api.reset_next(), 2, 1, id="one reset"),
        pytest.param(lambda api: api.reset_next(times=2), 2, 1, id="two resets"),
        pytest.param(lambda api: api.answer_next(404), 1, 1, id="an answer that stays"),
    ],
)
def test_how_often_a_call_is_sent(api, client, fault, reads, writes):
    counts = []
    for call in (READ.values[0], WRITE.values[0]):
        api._faults.clear()
        api.requests.clear()
        fault(api)
        with suppress(errors.KubeError):
            call(client)
        counts.append(len(api.requests))
    assert counts == [reads, writes]


@pytest.mark.parametrize("call", [READ, WRITE])
def test_a_refused_connection_is_tried_again_until_the_server_is_back(api, call):
    api.refuse()
    client = Client(api.connection(), user_agent="t", wait=lambda _: api.listen())
    call(client)
    client.close()
    assert len(api.requests) == 1


@pytest.mark.parametrize("call", [READ, WRITE])
def test_a_server_that_stays_away_is_named_with_a_remedy(api, client, call):
    api.refuse()
    with pytest.raises(errors.ConnectionRefused) as caught:
        call(client)
    assert str(caught.value).endswith(f"nothing listens at {api.url}: is the API server running?")


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 40\r\n\r\n"


@pytest.mark.parametrize(
    "stall",
    [
        pytest.param(lambda api: api.stall_next(), id="no answer"),
        pytest.param(lambda api: api.stall_next(sent=HEAD[:30]), id="half a head"),
        pytest.param(lambda api: api.stall_next(sent=HEAD + b'{"kind":'), id="half a body"),
        pytest.param(lambda api: api.drip_next(HEAD, 0.02), id="a head byte by byte"),
        pytest.param(lambda api: api.drip_next(HEAD + b"{" * 39, 0.02), id="a body byte by byte"),
    ],
)
def test_the_deadline_holds_over_the_whole_call_with(api, client, stall):
    stall(api)
    began = time.monotonic()
    with pytest.raises(errors.DeadlineExceeded):
        client.get(paths.nodes(), deadline_s=0.3)
    assert time.monotonic() - began < 20.0  # for ever, or as long as bytes come, were it not for it


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(b"SSH-2.0-OpenSSH_9.2\r\n\r\n", errors.MalformedReply, id="not HTTP"),
        pytest.param(HEAD + b"{}", errors.Unreachable, id="a body cut short"),
    ],
)
def test_a_broken_answer_is_told_apart(api, client, answer, expected):
    api.drip_next(answer, 0, times=2)
    with pytest.raises(expected):
        client.get(paths.nodes())


SHORT = b"HTTP/1.1 200 OK\r\nConnection: close\r\n"
LIMIT = 2**20


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(SHORT + b"\r\n" + b"x" * LIMIT, LIMIT, id="as large as it may be, without a length"),
        pytest.param(SHORT + b"Content-Length: %d\r\n\r\n" % LIMIT + b"x" * LIMIT, LIMIT, id="with one"),
        pytest.param(SHORT + b"\r\n" + b"x" * (LIMIT + 1), errors.TooLarge, id="larger"),
        pytest.param(SHORT + b"Content-Length: 9999999999\r\n\r\n" + b"x" * 2 * LIMIT, errors.TooLarge, id="far"),
        pytest.param(SHORT + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", 5, id="in chunks"),
        pytest.param(SHORT + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", errors.Unreachable, id="cut chunks"),
        pytest.param(SHORT + b"Content-Length: 40\r\n\r\n{}", errors.Unreachable, id="cut short"),
    ],
)
def test_an_answer_that_is_larger_than_it_may_be(api, answer, expected):
    client = Client(api.connection(), user_agent="t", answer_limit_bytes=LIMIT, attempts=1)
    api.drip_next(answer, 0, size=65_536)
    try:
        found = len(client.get(paths.nodes()))
    except errors.KubeError as e:
        found = type(e)
    client.close()
    assert expected == found


def test_close_ends_a_call_that_waits(api):
    client = Client(api.connection(), user_agent="t", deadline_s=30)
    caught: list[BaseException] = []

    def call() -> None:
        try:
            client.get(paths.nodes())
        except errors.KubeError as e:
            caught.append(e)

    api.stall_next()
    thread = threading.Thread(target=call)
    thread.start()
    api.wait_requests(1)
    client.close()
    thread.join(20)
    assert [e.reason for e in caught] == ["Closed"]


def test_a_client_that_is_closed_sends_nothing(api, client):
    client.close()
    client.close()
    with pytest.raises(errors.Unreachable):
        client.get(paths.nodes())
    wait_until(lambda: not api._connections, "the connections to close")
    assert api.requests == []


def test_a_token_that_is_refused_is_read_again_and_the_call_sent_once_more(api, tmp_path):
    token = tmp_path / "token"
    token.write_text("old")
    client = Client(api.connection(TokenFile(token)), user_agent="t")
    api.tokens = {"old"}
    client.get(paths.nodes())
    api.tokens = {"new"}
    token.write_text("new")
    client.patch(paths.node("n"), b"{}")
    client.close()
    sent = [r.headers["Authorization"] for r in api.requests]
    assert sent == ["Bearer old", "Bearer old", "Bearer new"]


def test_a_token_that_stays_refused_is_tried_twice(api, tmp_path):
    (tmp_path / "token").write_text("old")
    client = Client(api.connection(TokenFile(tmp_path / "token")), user_agent="t")
    api.tokens = {"new"}
    with pytest.raises(errors.Unauthorized):
        client.get(paths.nodes())
    client.close()
    assert len(api.requests) == 2


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        pytest.param(lambda api: api.reset_next(times=2), urllib3.exceptions.HTTPError, id="reset"),
        pytest.param(lambda api: api.refuse(), urllib3.exceptions.HTTPError, id="refused"),
    ],
)
def test_an_error_is_chained_to_what_raised_it(api, client, fault, cause):
    fault(api)
    with pytest.raises(errors.Unreachable) as caught:
        client.get(paths.nodes(), deadline_s=5.0)
    assert isinstance(caught.value.__cause__, cause)


def test_thirty_rotations_of_the_token_and_a_wall_clock_that_jumps_cost_no_call(api, tmp_path, monkeypatch):
    """An hour each; the server knows the newest only, so that each first call is refused once and sent again."""
    token, clock = tmp_path / "token", [0.0]
    token.write_text("t0")
    client = Client(api.connection(TokenFile(token)), user_agent="t", monotonic=lambda: clock[0])
    jumps_s = (0.0, 7200.0, -7200.0, 86400.0, -86400.0, 0.0)  # the last: it stands still
    real, tried = time.time, []
    for rotation in range(30):
        monkeypatch.setattr(time, "time", lambda rotation=rotation: real() + jumps_s[rotation % 6])
        token.write_text(f"t{rotation}")
        api.tokens = {f"t{rotation}"}
        for passed_s in (1.0, 61.0, 3538.0):
            before = len(api.requests)
            clock[0] += passed_s
            client.get(paths.node("n"))
            tried.append(len(api.requests) - before)
    client.close()
    assert (max(tried), tried.count(2) <= 30, sum(tried) <= 120) == (2, True, True)
