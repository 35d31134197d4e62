"""/api/v1: every answer is what docs/openapi.yaml says, and what it says is true."""

import pytest

from extender.policy.decision import Decision, GateState
from extender.verbs.counts import Counts
from extender.why.entries import Event
from tests.extender.feed.test_wire import status
from tests.extender.snapshots import with_decisions
from tests.extender.web.showing import NODES
from tests.extender.why.attempting import UNHEALTHY, snapshot_of

# Nodes


def test_the_head_of_every_answer(client, shown):
    shown.why = "stopping"
    head = {
        "notAnswering": "stopping",
        "at": "2027-01-15T08:00:00.000000Z",
        "lastWordSeconds": None,
        "sinceStartSeconds": 8.0,
        "droppedAttempts": 0,
    }
    for path in ("nodes", "nodes/n1", "gates", "pods/a/b", "history", "impact"):
        answer = client.json(f"/api/v1/{path}")
        assert head == {name: answer[name] for name in head}


def test_a_node_is_open_unless_an_armed_gate_refuses_it(client):
    nodes = client.json("/api/v1/nodes")["nodes"]
    assert [
        ("n1", True, "", 6.0, "ns/agent"),
        ("n2", False, UNHEALTHY, 5.0, "ns/agent-2"),
        ("n3", False, "lost", 1.0, ""),
        ("n4", True, "", 4.0, ""),
        ("n5", False, "held", 3.0, ""),
        ("n6", True, "", 6.0, "ns/agent"),
    ] == [(one["node"], one["open"], one["reason"], one["sinceSeconds"], one["pod"]) for one in nodes]


def test_what_each_gate_decided_of_a_node(client):
    decided = {one["node"]: one["gates"] for one in client.json("/api/v1/nodes")["nodes"]}
    assert [("base", False), ("gpu", False)] == [(one["gate"], one["open"]) for one in decided["n2"]]
    assert {"verdict": UNHEALTHY, "heldBy": "cap", "note": "cap of 1", "untilSeconds": None}.items() <= decided["n4"][
        0
    ].items()
    assert {"heldBy": "hold", "untilSeconds": 50.0, "verdict": "", "open": False}.items() <= decided["n5"][0].items()
    assert ["not-gated", "preferNot"] == [decided["n1"][1]["heldBy"], decided["n1"][2]["severity"]]
    assert [True, False] == [one["armed"] for one in decided["n6"]]


def test_what_the_cluster_says_comes_as_one_line_that_is_cut(client):
    evidence = client.json("/api/v1/nodes/n2")["node"]["evidence"]
    assert (256, "dns: timed out [31mxxx") == (len(evidence), evidence[:22])


def test_one_node_with_what_happened_to_it_and_who_was_refused_it(client):
    answer = client.json("/api/v1/nodes/n2")
    assert ("n2", False) == (answer["node"]["node"], answer["node"]["open"])
    assert [("closed", 5.0, "2027-01-15T07:59:55Z")] == [
        (one["kind"], one["agoSeconds"], one["wall"]) for one in answer["transitions"]
    ]
    assert [("train-8", "base", 1, 1.0), ("train-7", "base", 1, 2.0)] == [
        (one["name"], one["gate"], one["times"], one["lastSeconds"]) for one in answer["refusedPods"]
    ]
    assert [] == client.json("/api/v1/nodes/n1")["refusedPods"]


def test_the_pods_of_a_node_are_not_all_told(client, shown):
    for number in range(50):
        shown.scheduler.asks(["n2"], pod=f"p{number}", at=9.9)
    assert [f"p{number}" for number in range(49, 29, -1)] == [
        one["name"] for one in client.json("/api/v1/nodes/n2")["refusedPods"]
    ]


def pages(client, path, key, limit):
    """All pages, each as the list under the key."""
    found, more = [], ""
    while True:
        answer = client.json(f"{path}?limit={limit}" + (f"&continue={more}" if more else ""))
        found.append([one.get("node") for one in key(answer)])
        more = answer["continue"]
        if not more:
            return found


@pytest.mark.parametrize("limit", [1, 2, 5, 6, 7, 1000])
def test_nodes_come_in_pages(client, limit):
    found = pages(client, "/api/v1/nodes", lambda answer: answer["nodes"], limit)
    assert NODES == [name for page in found for name in page]
    assert {limit} >= {len(page) for page in found[:-1]}


def test_a_page_is_not_moved_by_nodes_that_come_and_go(client, shown):
    first = client.json("/api/v1/nodes?limit=3")
    shown.board.swap(
        with_decisions(shown.board.snapshot, "base", {"n1": None, "n3": None, "n0": Decision(""), "n45": Decision("")})
    )
    second = client.json(f"/api/v1/nodes?limit=9&continue={first['continue']}")
    assert ["n1", "n2", "n3"] == [one["node"] for one in first["nodes"]]
    assert ["n4", "n45", "n5", "n6"] == [one["node"] for one in second["nodes"]]


# Gates


def test_the_gates(client):
    answer = client.json("/api/v1/gates")
    base, gpu, dns, disk = answer["gates"]
    assert {
        "for": "every pod",
        "nodes": 6,
        "open": 4,
        "closed": 2,
        "heldOpen": 1,
        "refused10m": 5,
    }.items() <= base.items()
    assert {"limit": 1, "closed": 1, "held": 1} == base["cap"]
    assert [
        {
            "cause": f"{UNHEALTHY}: dns",
            "nodes": 3,
            "suspect": "10.96.0.10 timed out",
            "untilSeconds": 10.0,
            "note": "began 7 s ago",
        }
    ] == base["storms"]
    assert ("closed", "n2") == (base["lastChange"]["kind"], base["lastChange"]["node"])
    assert {
        "for": "pods that request nvidia.com/gpu",
        "nodes": 2,
        "notGated": 1,
        "lastChange": None,
    }.items() <= gpu.items()
    assert {"armed": False, "closed": 1, "refused10m": 0, "wouldRefuse10m": 6}.items() <= dns.items()
    assert "preferNot" == disk["severity"]
    assert {"limit": 2, "closed": 3, "held": 1} == answer["cap"]


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        pytest.param({}, (0, 0, 0.0, None, None), id="never asked"),
        pytest.param({"answered": 60, "exempt": 20, "stale": 4}, (84, 4, 1.4, 0.002, 2.0), id="asked for a minute"),
    ],
)
def test_what_kube_scheduler_asks(client, shown, results, expected):
    shown.said = status(counts=Counts())
    shown.calls.note(shown.said.counts, 10.0)
    shown.monotonic.time += 58.0
    for result, number in results.items():
        shown.said.counts.results[result] += number
        shown.said.counts.durations[3] += number
    shown.calls.note(shown.said.counts, 68.0)
    shown.monotonic.time += 2.0
    told = client.json("/api/v1/gates")["scheduler"]
    assert "protect" == told["mode"]
    fields = ("calls", "unanswered", "perSecond", "p99Seconds", "lastCallSeconds")
    assert expected == tuple(told[field] for field in fields)


@pytest.mark.parametrize(
    ("issued_s", "ends_s", "expected"),
    [
        pytest.param(None, None, (None, None), id="no token that states it"),
        pytest.param(-3600.0, 82_800.0, (82_800, 86_400), id="issued an hour ago for a day"),
        pytest.param(-3600.0, -5.0, (-5, 3595), id="it has ended"),
        pytest.param(None, 60.0, (60, None), id="when it was issued is not known"),
    ],
)
def test_gates_report_how_long_the_extenders_token_lives(client, shown, issued_s, ends_s, expected):
    at = 1_800_000_000.0  # 2027-01-15T08:00:00Z
    times = [None if seconds is None else at + seconds for seconds in (issued_s, ends_s)]
    shown.said = status(credentials_issued=times[0], credentials_expire=times[1])
    answer = client.json("/api/v1/gates")
    assert expected == (answer["credentialsLeftSeconds"], answer["credentialsLifeSeconds"])


def test_the_orders_in_force_and_what_is_wrong_with_others(client):
    answer = client.json("/api/v1/gates")
    assert [
        {
            "id": "rma",
            "order": "hold",
            "scope": {"gate": "", "pool": "", "node": "n5"},
            "author": "ana",
            "reason": "RMA 4711",
            "expires": "2099-01-01T00:00:00Z",
        }
    ] == answer["orders"]
    assert (1, True) == (len(answer["faults"]), "bad" in answer["faults"][0])


# Pods


def test_a_pod_and_the_nodes_that_readygate_alone_kept_it_off(client):
    answer = client.json("/api/v1/pods/team-a/train-7")
    assert ("u1", 1, 0, 1, 2.0) == tuple(
        answer[name] for name in ("uid", "attempts", "unanswered", "refusedTimes", "firstSeconds")
    )
    last = answer["last"]
    assert (2.0, 6, 3, 3, 1, True, "") == tuple(
        last[name] for name in ("agoSeconds", "asked", "passed", "refusedCount", "shadowCount", "complete", "exempt")
    )
    assert [("n2", "base", UNHEALTHY, 5.0), ("n3", "gpu", "lost", 1.0), ("n5", "base", "held", 3.0)] == [
        (one["node"], one["gate"], one["reason"], one["sinceSeconds"]) for one in last["refused"]
    ]
    assert [("n6", "dns", True)] == [(one["node"], one["gate"], one["nodeOpen"]) for one in last["shadow"]]


def test_a_node_that_has_opened_since_or_was_not_known_yet(client, shown):
    for gate in ("base", "gpu"):
        shown.board.swap(with_decisions(shown.board.snapshot, gate, {"n2": Decision("")}))
    last = client.json("/api/v1/pods/team-a/train-8?limit=1")["last"]
    assert (2, 1, 1) == (last["refusedCount"], len(last["refused"]), last["openCount"])
    last = client.json("/api/v1/pods/team-a/train-8?limit=1&continue=n2")["last"]
    assert 1 == last["openCount"], "of all, not of the page"
    refused = client.json("/api/v1/pods/team-a/train-8")["last"]["refused"]
    assert [("n2", "base", None, True), ("new", "", None, False)] == [
        (one["node"], one["gate"], one["sinceSeconds"], one["nodeOpen"]) for one in refused
    ]


def test_a_pod_that_was_never_answered_and_one_that_was_never_asked_about(client):
    answer = client.json("/api/v1/pods/team-b/etl-3")
    assert (0, 1, "stale", None) == tuple(answer[name] for name in ("attempts", "unanswered", "unansweredWhy", "last"))
    answer = client.json("/api/v1/pods/team-b/unheard-of")
    assert (0, 0, "", None, None) == tuple(
        answer[name] for name in ("attempts", "unanswered", "uid", "last", "firstSeconds")
    )


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 1000])
def test_the_nodes_of_a_pod_come_in_pages(client, limit):
    path = "/api/v1/pods/team-a/train-7"
    found = pages(client, path, lambda answer: [*answer["last"]["refused"], *answer["last"]["shadow"]], limit)
    assert ["n2", "n3", "n5", "n6"] == [name for page in found for name in page]


def test_a_pod_of_65_536_nodes_is_told_in_pages(client, shown):
    nodes = [f"node-{number:05}" for number in range(65_536)]
    decisions = dict.fromkeys(nodes, Decision("lost", verdict="lost"))
    shown.board.swap(snapshot_of(GateState("base", decisions, dict.fromkeys(nodes, "lost"))))
    shown.scheduler.asks(nodes, pod="large", namespace="team-a")
    answer = client.json("/api/v1/pods/team-a/large")
    assert (500, 65_536, "node-00499") == (
        len(answer["last"]["refused"]),
        answer["last"]["refusedCount"],
        answer["continue"],
    )


# History and impact


def test_history_is_told_the_newest_first_in_pages_that_nothing_moves(client, shown):
    for serial in range(3, 10):
        shown.journal.write(Event(serial, 8.0, "closed", "gpu", f"n{serial}", "lost"))
    first = client.json("/api/v1/history?limit=4")
    shown.journal.write(Event(10, 9.0, "opened", "gpu", "n9"))
    second = client.json(f"/api/v1/history?limit=4&continue={first['continue']}")
    third = client.json(f"/api/v1/history?limit=4&continue={second['continue']}")
    assert [["n9", "n8", "n7", "n6"], ["n5", "n4", "n3", ""], ["n2"]] == [
        [one["node"] for one in answer["events"]] for answer in (first, second, third)
    ]
    assert ("", 0) == (third["continue"], third["forgotten"])


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("node=n2", ["closed"], id="of a node"),
        pytest.param("gate=base", ["storm", "closed"], id="of a gate"),
        pytest.param("kind=storm", ["storm"], id="of a kind"),
        pytest.param("kind=storm&node=n2", [], id="of both"),
        pytest.param("gate=unknown", [], id="of a gate that is not there"),
    ],
)
def test_history_of_something(client, query, expected):
    assert expected == [one["kind"] for one in client.json(f"/api/v1/history?{query}")["events"]]


def test_what_a_gate_in_shadow_would_have_done(client):
    base, gpu, dns, _ = client.json("/api/v1/impact")["gates"]
    assert {
        "gate": "dns",
        "armed": False,
        "sinceSeconds": 7.0,
        "wouldClose": 1,
        "wouldCloseMost": 4,
        "wouldRefuse": 7,
        "wouldRefuseCalls": 6,
        "pods": 2,
        "podsAtLeast": True,
        "capHits": 0,
        "stormHits": 0,
    } == dns
    assert ("base", 1, 1) == (base["gate"], base["capHits"], base["stormHits"])
    assert ("gpu", None, 2) == (gpu["gate"], gpu["sinceSeconds"], gpu["wouldClose"])
