"""/api/v1: what is asked wrongly, ETags, and docs/openapi.yaml."""

import json
import re

import msgspec
import pytest

from extender.policy.decision import Decision
from extender.policy.orders import parse_orders
from extender.web import schema
from extender.web.app import create_app
from extender.why.entries import Event, Reset, Tally
from tests.extender.web import openapi

# What was not asked rightly

LONG = "a" * 5000


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("nodes?limit=0", "limit: is no number from 1 to 1000"),
        ("nodes?limit=1001", "limit: is no number from 1 to 1000"),
        ("nodes?limit=-1", "limit: is no number from 1 to 1000"),
        ("nodes?limit=1e3", "limit: is no number from 1 to 1000"),
        ("nodes?limit=%d9%a1", "limit: is no number from 1 to 1000"),
        ("nodes?limit=", "limit: is no number from 1 to 1000"),
        ("nodes?limit=1%0A", "limit: is no number from 1 to 1000"),
        ("nodes?limit=1&limit=2", "limit: is given 2 times; give it once"),
        ("nodes?evil=<script>", "a parameter is not known; allowed: limit, continue"),
        ("nodes?continue=../x", "continue: was not in an answer; leave it out to start from the beginning"),
        ("nodes?continue=", "continue: was not in an answer; leave it out to start from the beginning"),
        (f"nodes?continue={LONG}", "continue: was not in an answer; leave it out to start from the beginning"),
        ("nodes/Nodes", "the path names no node: small letters, digits, - and . are allowed"),
        ("nodes/%3Cscript%3E", "the path names no node: small letters, digits, - and . are allowed"),
        ("nodes/n1%0A", "the path names no node: small letters, digits, - and . are allowed"),
        (f"nodes/{LONG}", "the path names no node: small letters, digits, - and . are allowed"),
        ("nodes/n1?limit=1", "a parameter is not known; none is allowed here"),
        ("gates?x=1", "a parameter is not known; none is allowed here"),
        ("impact?x", "a parameter is not known; none is allowed here"),
        ("pods/a.b/c", "the path names no namespace: small letters, digits, - and . are allowed"),
        ("pods/a/B", "the path names no pod: small letters, digits, - and . are allowed"),
        ("pods/a/b?limit=x", "limit: is no number from 1 to 1000"),
        ("history?continue=0", "continue: was not in an answer; leave it out to start from the beginning"),
        ("history?kind=burned", "kind: is none of closed, opened, held, released, cap, storm, stormEnded, order"),
        ("history?kind=", "kind: is none of closed, opened, held, released, cap, storm, stormEnded, order"),
        ("history?node=%22", "node: is no name of a node"),
        ("history?gate=a.b", "gate: is no name of a gate"),
    ],
)
def test_what_is_asked_wrongly_is_told_in_one_line_that_repeats_nothing(client, path, expected):
    assert {"error": "BadRequest", "cause": expected} == client.json(f"/api/v1/{path}", status=400)


@pytest.mark.parametrize(
    ("method", "path", "status", "expected"),
    [
        (
            "GET",
            "nodes/unknown",
            404,
            {"error": "NotFound", "cause": "no node of that name is known here; GET /api/v1/nodes lists all"},
        ),
        ("GET", "unknown", 404, {"error": "NotFound", "cause": "there is no such path; docs/openapi.yaml lists all"}),
        ("GET", "pods/a", 404, {"error": "NotFound", "cause": "there is no such path; docs/openapi.yaml lists all"}),
        (
            "GET",
            "pods/a/b%2Fc",
            404,
            {"error": "NotFound", "cause": "there is no such path; docs/openapi.yaml lists all"},
        ),
        ("POST", "nodes", 405, {"error": "MethodNotAllowed", "cause": "nothing here takes that method; use GET"}),
    ],
)
def test_what_there_is_not(application, method, path, status, expected):
    response = application.test_client().open(f"/api/v1/{path}", method=method)
    assert (status, expected) == (response.status_code, response.json)


def test_a_fault_of_ours(application, shown):
    shown.beats = lambda: 1 / 0
    response = application.test_client().get("/api/v1/nodes")
    assert (500, "InternalError") == (response.status_code, response.json["error"])


# ETags

PATHS = ("nodes", "nodes?limit=2", "nodes/n2", "gates", "pods/team-a/train-7", "pods/a/b", "history", "impact")


@pytest.mark.parametrize("path", PATHS)
def test_while_nothing_happens_an_answer_is_not_made_again(client, shown, path):
    tag = client.get(f"/api/v1/{path}").headers["ETag"]
    shown.monotonic.time += 5.0
    response = client.get(f"/api/v1/{path}", **{"If-None-Match": f'"other", {tag}'})
    assert (304, tag, True) == (response.status_code, response.headers["ETag"], tag.startswith("W/"))
    assert 200 == client.get(f"/api/v1/{path}", **{"If-None-Match": '"other"'}).status_code


@pytest.mark.parametrize(
    ("happens", "paths"),
    [
        pytest.param(
            lambda shown: shown.decide({"n1": Decision("lost")}),
            ["nodes", "nodes?limit=2", "nodes/n2", "gates", "pods/team-a/train-7", "pods/a/b", "impact"],
            id="a decision",
        ),
        pytest.param(
            lambda shown: setattr(shown, "why", "the feed is not connected"), PATHS, id="no verdicts any more"
        ),
        pytest.param(lambda shown: setattr(shown, "orders", parse_orders({})), ["gates"], id="an order"),
        pytest.param(
            lambda shown: shown.scheduler.asks(["n2"], pod="train-7", namespace="team-a", at=9.9),
            ["nodes/n2", "pods/team-a/train-7"],
            id="a question about the pod",
        ),
        pytest.param(
            lambda shown: shown.journal.write(Event(3, 9.0, "opened", "base", "n2")),
            ["nodes/n2", "gates", "history"],
            id="an event",
        ),
        pytest.param(
            lambda shown: shown.journal.write(Tally("dns", False, 3.0, 8)),
            ["nodes/n2", "gates", "impact"],
            id="a count",
        ),
        pytest.param(
            lambda shown: shown.journal.write(Reset(9.0)),
            ["nodes/n2", "gates", "pods/team-a/train-7", "pods/a/b", "history", "impact"],
            id="the other process began anew",
        ),
    ],
)
def test_what_happens_changes_the_tags_of_the_answers_it_changes(client, shown, happens, paths):
    before = {path: client.get(f"/api/v1/{path}").headers["ETag"] for path in PATHS}
    happens(shown)
    after = {path: client.get(f"/api/v1/{path}").headers["ETag"] for path in PATHS}
    assert [path for path in PATHS if path in paths] == [path for path in PATHS if before[path] != after[path]]


def test_another_process_gives_other_tags(client, shown):
    again = create_app(shown).test_client()
    assert client.get("/api/v1/nodes").headers["ETag"] != again.get("/api/v1/nodes").headers["ETag"]


# The document


def test_there_is_an_answer_of_each_kind_that_the_document_has(client):
    """The client holds each of them against it."""
    for path in (*PATHS, "nodes/unknown"):
        tag = client.get(f"/api/v1/{path}").headers.get("ETag", "")
        client.get(f"/api/v1/{path}", **{"If-None-Match": tag})
    for path in ("nodes?x", "nodes/n1?x", "gates?x", "pods/a/b?x", "history?x", "impact?x"):
        client.get(f"/api/v1/{path}")
    document = {
        (path, int(status)) for path, item in openapi.DOCUMENT["paths"].items() for status in item["get"]["responses"]
    }
    assert document == client.asked


def test_each_route_is_in_the_document(application):
    rules = {rule.rule for rule in application.url_map.iter_rules() if rule.rule.startswith("/api/")}
    shapes = [re.sub(r"[<{]\w+[>}]", "*", path) for path in (*sorted(rules), *sorted(openapi.DOCUMENT["paths"]))]
    assert shapes[: len(rules)] == shapes[len(rules) :]


def test_the_schemas_are_those_that_readers_of_ours_decode():
    for name, documented in openapi.SCHEMAS.items():
        fields = {field.encode_name for field in msgspec.structs.fields(getattr(schema, name))}
        assert fields == set(documented["properties"]) == set(documented["required"])


def test_the_document_is_one_of_openapi_3_1_and_leads_nowhere_else():
    openapi.Draft202012Validator.check_schema({"$defs": openapi.SCHEMAS})
    used = re.findall(r"#/components/(\w+)/(\w+)", json.dumps(openapi.DOCUMENT))
    there = {(kind, name) for kind, named in openapi.DOCUMENT["components"].items() for name in named}
    assert there == set(used)
    assert "3.1.0" == openapi.DOCUMENT["openapi"]


def test_the_patterns_of_the_document_take_what_the_routes_take():
    parameters = openapi.DOCUMENT["components"]["parameters"]
    for name, good, bad in (("node", "n-1.a", "N"), ("namespace", "a-b", "a.b"), ("pod", "a.b", "-a")):
        pattern = re.compile(parameters[name]["schema"]["pattern"])
        assert (True, False) == (bool(pattern.search(good)), bool(pattern.search(bad)))
    assert (1, 1000) == tuple(parameters["limit"]["schema"][key] for key in ("minimum", "maximum"))
