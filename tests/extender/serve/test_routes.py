"""Which answer a request gets by its method, target, host and client."""

import json
from http import HTTPStatus

import pytest

from extender.serve.allowed_hosts import allowed_hosts
from extender.serve.http import Request
from extender.serve.limits import CONNECTIONS_MAX, FILES_RESERVED, connections_max
from extender.serve.routes import Routes
from extender.verbs.table import VERBS
from tests.extender.builders import node, pod
from tests.extender.verbs.test_filter import World
from tests.extender.world import PODS

BODY = json.dumps({"Pod": {"metadata": {"name": "p", "namespace": "default"}}, "NodeNames": ["h1", "u1"]}).encode()


class Health:
    def __init__(self, *, good: bool) -> None:
        self.good = good

    def live(self) -> tuple[bool, bytes]:
        return self.good, b"live"

    def ready(self) -> tuple[bool, bytes]:
        return self.good, b"ready"


@pytest.fixture(scope="module")
def world() -> World:
    world = World()
    world.services.index.replace_nodes([node(name) for name in ("h1", "u1")])
    world.services.index.replace_pods(PODS, [pod("h1"), pod("u1", Ready="False")])
    world.see()
    return world


def answer(world, method=b"POST", target=b"/filter", *, host=b"127.0.0.1:337", may_ask=True, good=True, body=BODY):
    routes = Routes(world.services, Health(good=good), allowed_hosts("127.0.0.1", 337))
    return routes.answer(Request(method, target, host, body, True), may_ask=may_ask)


@pytest.mark.parametrize(
    ("method", "target", "may_ask", "status", "verdict"),
    [
        (b"POST", b"/filter", True, 200, True),
        (b"POST", b"//filter/?timeout=1s", True, 200, True),
        (b"POST", b"http://127.0.0.1/filter", True, 200, True),
        (b"POST", b"/prioritize", True, 200, True),
        (b"GET", b"/filter", True, 405, False),
        (b"PUT", b"/prioritize", True, 405, False),
        (b"POST", b"/filter", False, 403, False),
        (b"GET", b"/filter", False, 403, False),
        (b"POST", b"/preempt", False, 403, False),
        (b"GET", b"/readyz", False, 200, False),
        (b"HEAD", b"/livez", False, 200, False),
        (b"POST", b"/livez", True, 405, False),
        (b"GET", b"/metrics", True, 404, False),
    ],
)
def test_a_request_is_answered_by_its_method_and_target(world, method, target, may_ask, status, verdict):
    given, is_verdict, _ = answer(world, method, target, may_ask=may_ask)
    assert (given.status, is_verdict) == (status, verdict)


def test_each_verb_has_a_route(world):
    assert {verb: answer(world, target=b"/" + verb.encode())[0].status != 404 for verb in VERBS} == dict.fromkeys(
        VERBS, True
    )


def test_an_answer_of_filter_alone_is_accounted_when_it_was_sent(world):
    assert (answer(world)[2] is None, answer(world, target=b"/prioritize")[2]) == (False, None)


@pytest.mark.parametrize(
    ("host", "status"),
    [(b"127.0.0.1:337", 200), (b"localhost:337", 200), (b"", 200), (b"attacker.example:337", 421)],
)
def test_a_request_with_the_host_of_somebody_else_is_misdirected(world, host, status):
    assert answer(world, host=host)[0].status == status


@pytest.mark.parametrize("target", [b"/livez", b"/readyz"])
@pytest.mark.parametrize(("good", "status"), [(True, HTTPStatus.OK), (False, HTTPStatus.SERVICE_UNAVAILABLE)])
def test_a_health_page_has_the_status_of_the_process(world, target, good, status):
    assert answer(world, b"GET", target, good=good)[0].status == status


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (2**20, CONNECTIONS_MAX),
        (CONNECTIONS_MAX + FILES_RESERVED, CONNECTIONS_MAX),
        (CONNECTIONS_MAX + FILES_RESERVED - 1, CONNECTIONS_MAX - 1),
        (FILES_RESERVED + 1, 1),
        (10, 1),
    ],
)
def test_connections_leave_descriptors_for_watches_and_files(files, expected):
    assert connections_max(files) == expected
