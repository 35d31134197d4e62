"""The verbs beside `filter` on the wire, by the cases X of the contract: at kube-scheduler's port, and at the people's.

Nodes as of `tests/scripted/test_extender_contract.py`.
"""

import json
import random
import socket

import pytest

from extender.verbs.table import NOT_A_BINDER
from extender.verbs.wire import BODY_LIMIT_BYTES
from tests.contract import mutations
from tests.contract.bad_bodies import BAD_BODIES
from tests.contract.go_types import read_binding_result, read_preemption_result, read_priorities
from tests.scripted.extender_process import ORDINARY_POD
from tests.scripted.status_api_process import StatusApiProcess
from tools.kit.scope import draws

META = {"Pods": [{"UID": "a"}], "NumPDBViolations": 1}
WHOLE = {"Pods": [{"metadata": {"uid": "a", "labels": None}}], "NumPDBViolations": 1}
NO_VICTIMS = {"Pods": [], "NumPDBViolations": 0}
EXEMPT_POD = {"metadata": {"name": "x", "namespace": "kube-system"}}
BODIES = draws(100, 400)
BODIES_STATUS_API = 40  # their process takes a small part of a processor only


def preempted(asked, *, meta=None, whole=None, pod=ORDINARY_POD):
    """What is left of the candidates, with their victims as they are in the answer."""
    request = {"Pod": pod, "NodeNameToVictims": whole, "NodeNameToMetaVictims": meta}
    status, headers, body = asked.post(request, path="/preempt")
    assert (status, headers["Content-Type"], headers["Content-Length"]) == (200, "application/json", str(len(body)))
    read_preemption_result(body)
    return json.loads(body)["NodeNameToMetaVictims"]


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        pytest.param({"meta": {"h1": META, "u1": META, "x1": META}}, {"h1": META}, id="X44 names"),
        pytest.param({"whole": {"h1": WHOLE, "u1": WHOLE}}, {"h1": META}, id="X45 whole pods"),
        pytest.param(
            {"meta": {"h1": {"Pods": [], "NumPDBViolations": 0}}},
            {"h1": META | {"Pods": [], "NumPDBViolations": 0}},
            id="X46 no victims",
        ),
        pytest.param({"meta": {"u1": META, "m1": META}}, {}, id="X47 all closed"),
        pytest.param({"meta": {"u1": META, "x1": META}, "pod": EXEMPT_POD}, {"u1": META, "x1": META}, id="X48 exempt"),
    ],
)
def test_preempt(asked, request_, expected):
    assert expected == preempted(asked, **request_)


def test_x42_a_score_for_each_name(asked):
    status, _, body = asked.post({"Pod": ORDINARY_POD, "NodeNames": ["h1", "h2", "h1"]}, path="/prioritize")
    assert (200, b"[", {"h1": 10, "h2": 10}) == (status, body[:1], read_priorities(body))


def test_x49_we_do_not_bind(asked):
    status, _, body = asked.post({"PodName": "p", "Node": "h1"}, path="/bind")
    assert (200, NOT_A_BINDER) == (status, read_binding_result(body))


@pytest.mark.parametrize("path", ["/preempt", "/prioritize"])
@pytest.mark.parametrize("body", BAD_BODIES)
def test_x43_bad_bodies_are_refused_by_the_status_and_harm_nothing(asked, path, body):
    connection = asked.connection()
    connection.request("POST", path, body)
    response = connection.getresponse()
    answer = response.read()
    assert (400, True) == (response.status, json.loads(answer)["Error"].startswith("readygate: "))
    connection.request("POST", path, json.dumps({"Pod": {}, "NodeNames": [], "NodeNameToMetaVictims": {}}))
    assert connection.getresponse().read() in (b"[]", b'{"NodeNameToMetaVictims":{}}')
    connection.close()


@pytest.mark.parametrize("path", ["//preempt", "/preempt/", "/preempt?a=b"])
def test_x33_slashes_do_not_redirect(asked, path):
    status, _, body = asked.post({"Pod": {}, "NodeNameToMetaVictims": {"h1": META}}, path=path)
    assert (200, ["h1"]) == (status, list(read_preemption_result(body)))


@pytest.mark.parametrize("path", ["/preempt", "/prioritize", "/bind"])
def test_x34_a_body_that_is_too_large_is_refused_by_the_status(asked, path):
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {BODY_LIMIT_BYTES + 1}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", asked.port), timeout=10) as sock:
        sock.sendall(head.encode() + b"{")
        assert b" 413 " in sock.recv(100)


@pytest.mark.parametrize("path", ["/preempt", "/prioritize", "/bind"])
def test_x35_an_encoded_body_is_refused(asked, path):
    assert 415 == asked.post(b"{}", path=path, headers={"Content-Encoding": "gzip"})[0]


@pytest.mark.parametrize("path", ["/preempt", "/prioritize", "/bind"])
def test_a_host_that_is_not_ours_is_refused(asked, path):
    assert 421 == asked.post(b"{}", path=path, headers={"Host": "evil.example"})[0]


@pytest.mark.parametrize("path", ["/preempt", "/prioritize"])
def test_mutated_bodies_never_fail_on_our_side(asked, seed, path):
    chance = random.Random(f"{seed} {path}")
    connection = asked.connection()
    seeds, read = {
        "/preempt": (mutations.PREEMPTIONS, read_preemption_result),
        "/prioritize": (mutations.SEEDS, read_priorities),
    }[path]
    for number in range(BODIES_STATUS_API if isinstance(asked, StatusApiProcess) else BODIES):
        body = mutations.body(chance, seeds)
        connection.request("POST", path, body)
        response = connection.getresponse()
        answer = response.read()
        assert response.status in (200, 400), (number, body, answer)
        if response.status == 200:
            read(answer)
    connection.close()
