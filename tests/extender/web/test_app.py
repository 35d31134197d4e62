"""The pages, without a server or a feed: what they show is set by hand."""

import pytest

from extender.config.settings import parse
from extender.feed import wire
from extender.policy.decision import CapState, Decision, GateState, HeldBy, Storm
from extender.policy.exempt import Rules
from extender.policy.orders import Orders, parse_orders
from extender.policy.reasons import CLOSED_NOT_READY
from extender.policy.snapshot import Board, Snapshot
from extender.verbs.counts import Counts, Lately
from extender.verbs.source import Sync
from extender.web import api
from extender.web.app import create_app
from extender.why.journal import Journal
from tests.extender.feed.test_wire import status
from tests.extender.snapshots import with_decisions
from tools.kit.clock import Clock


class Shown:
    """A View that a test sets."""

    orders = Orders()
    connected = True
    settings = parse("")
    exemptions = Rules(frozenset({("readygate-system", None)}))
    attempts = None

    def __init__(self):
        self.journal = Journal()
        self.board = Board(lambda _: None)
        self.counts = Counts()
        self.calls = Lately()
        self.monotonic = Clock(10.0)
        self.said = status()
        self.stuck = []
        self.why = ""
        self.decide({"n1": Decision("", since_monotonic=4.0), "n2": Decision("closed", "ns/p", "e", 9.5)})

    def decide(self, decisions):
        self.board.swap(with_decisions(self.board.snapshot, "health", decisions))

    def sync(self):
        return Sync.OK

    def status(self):
        return self.said

    def beats(self):
        return {"n1": 9.0}

    def why_not(self):
        return self.why

    def unhealthy(self):
        return self.stuck


@pytest.fixture
def shown():
    return Shown()


@pytest.fixture
def client(shown):
    return create_app(shown, is_ours=lambda host: host == "localhost").test_client()


def test_the_nodes(client):
    nodes = client.get("/api/v1/nodes").json["nodes"]
    assert [(n["node"], n["open"], n["sinceSeconds"], n["heartbeatAgeSeconds"]) for n in nodes] == [
        ("n1", True, 6.0, 1.0),
        ("n2", False, 0.5, None),
    ]


def test_the_answer_is_made_once_until_something_changes_or_a_second_is_over(client, shown, monkeypatch):
    made = []
    nodes = api.Api._all_nodes
    monkeypatch.setattr(api.Api, "_all_nodes", lambda *arguments: (made.append(1), nodes(*arguments))[1])
    counts = []
    for change in (
        lambda: None,
        lambda: None,
        lambda: shown.decide({"n3": Decision("")}),
        lambda: setattr(shown, "why", "the feed is not connected"),
        lambda: setattr(shown.monotonic, "time", 11.0),
    ):
        change()
        client.get("/api/v1/nodes")
        counts.append(len(made))
    assert counts == [1, 1, 2, 3, 4]
    assert client.get("/api/v1/nodes").json["notAnswering"] == "the feed is not connected"


@pytest.mark.parametrize(
    ("path", "changes", "expected"),
    [
        pytest.param("/livez", {}, 200, id="threads that live"),
        pytest.param("/livez", {"stuck": ["replica"]}, 503, id="one that does not"),
        pytest.param(
            "/livez", {"why": "the feed is not connected"}, 200, id="another process that is away is no reason"
        ),
        pytest.param("/readyz", {}, 200, id="verdicts are given"),
        pytest.param("/readyz", {"why": "the feed is not connected"}, 503, id="nobody knows whether"),
        pytest.param("/readyz", {"said": None, "why": "x"}, 503, id="nothing was ever heard"),
    ],
)
def test_probes(client, shown, path, changes, expected):
    for name, value in changes.items():
        setattr(shown, name, value)
    assert client.get(path).status_code == expected


def test_metrics_before_anything_was_heard_and_after(client, shown):
    shown.connected, said, shown.said = False, shown.said, None
    text = client.get("/metrics").text
    assert ("readygate_feed_connected 0.0" in text, "readygate_requests_total" in text) == (True, False)
    shown.connected, shown.said = True, said
    text = client.get("/metrics").text
    assert 'readygate_requests_total{result="answered",verb="filter"} 1.0' in text
    assert 'readygate_cache_age_seconds{cache="pods"} 4.5' in text
    assert 'readygate_status_api_requests_total{result="answered",verb="filter"} 0.0' in text


@pytest.mark.parametrize(
    ("method", "path", "host", "expected", "allow"),
    [
        pytest.param("POST", "/filter", "evil.example", 421, None, id="the name of somebody else"),
        pytest.param("GET", "/api/v1/nodes", "evil.example", 421, None, id="the name of somebody else, to read"),
        pytest.param("GET", "/filter", "localhost", 405, "POST", id="a verb that is read"),
        pytest.param("DELETE", "/livez", "localhost", 405, "GET, HEAD", id="a probe that is deleted"),
        pytest.param("GET", "/binds", "localhost", 404, None, id="no such path"),
        pytest.param("GET", "/livez//", "localhost", 200, None, id="another spelling"),
    ],
)
def test_who_asks_for_what(client, method, path, host, expected, allow):
    response = client.open(path, method=method, headers={"Host": host})
    found = response.headers.get("Allow")
    assert (response.status_code, found and ", ".join(sorted(found.split(", ")))) == (expected, allow)


def test_the_feeds_own_status_is_what_is_shown(shown):
    (frame,) = wire.Reader().feed(wire.write(wire.Said(shown.said)))
    assert frame.status == shown.said


def test_metrics_of_gates_and_orders(client, shown):
    held = Decision("", verdict=CLOSED_NOT_READY, held_by=HeldBy.CAP)
    decisions = {"n1": Decision(""), "n2": held, "n3": Decision(CLOSED_NOT_READY), "n4": Decision(CLOSED_NOT_READY)}
    closed = {"n3": CLOSED_NOT_READY, "n4": CLOSED_NOT_READY}
    states = [
        GateState("health", decisions, closed, cap=CapState(2, 2, 1), storms=(Storm(CLOSED_NOT_READY, "R", 1),)),
        GateState("cni", {}, armed=False),
    ]
    shown.board.swap(Snapshot({state.name: state for state in states}, frozenset(decisions)))
    expired = '{"order": "hold", "expires": "2026-01-01T00:00:00Z"}'
    shown.orders = parse_orders({"a": '{"order": "pause"}', "b": "rubbish", "c": expired})
    lines = client.get("/metrics").text.splitlines()
    for expected in (
        'readygate_gate_nodes{decision="open",gate="health",held_by=""} 1.0',
        'readygate_gate_nodes{decision="open",gate="health",held_by="cap"} 1.0',
        'readygate_gate_nodes{decision="closed",gate="health",held_by=""} 2.0',
        'readygate_gate_nodes{decision="closed",gate="cni",held_by=""} 0.0',
        'readygate_gate_armed{gate="health"} 1.0',
        'readygate_gate_armed{gate="cni"} 0.0',
        'readygate_gate_cap_nodes{gate="health"} 2.0',
        'readygate_gate_storms{gate="health"} 1.0',
        'readygate_orders{order="pause"} 1.0',
        'readygate_orders{order="hold"} 0.0',
        "readygate_order_faults 1.0",
    ):
        assert expected in lines
    assert not [line for line in lines if line.startswith('readygate_gate_cap_nodes{gate="cni"')]
