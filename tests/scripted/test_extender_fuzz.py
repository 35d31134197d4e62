"""Requests drawn by chance, over sockets: whole HTTP requests of any kind to both ports, bodies of POST /filter, and
questions for the pages of people. Bodies of the other verbs are in test_extender_verbs.

New ones in each run; READYGATE_SEED repeats them (`tests/conftest.py`). `make soak` sends a million.
"""

import random
import socket

from tests.contract import mutations
from tests.contract.go_types import read_filter_result
from tests.scripted.extender_process import checked
from tools.kit.scope import draws

BODIES = draws(500, 2_000)
REQUESTS = draws(100, 300)
QUESTIONS = draws(150, 500)
ANSWERED_WITHIN_S = 10.0


def test_mutated_bodies_never_fail_on_our_side(extender, seed):
    chance = random.Random(f"{seed} bodies")
    connection = extender.connection()
    for number in range(BODIES):
        body = mutations.body(chance)
        connection.request("POST", "/filter", body)
        response = connection.getresponse()
        answer = response.read()
        assert response.status in (200, 400), (number, body, answer)
        read_filter_result(answer)
    connection.request("POST", "/filter", mutations.GOOD)
    assert checked(connection.getresponse().read()).NodeNames == ["h1"]
    connection.close()


def test_no_request_of_any_kind_is_an_error_of_ours_or_holds_the_next(asked, seed):
    chance = random.Random(f"{seed} requests")
    for number in range(REQUESTS):
        data = mutations.request(chance)
        answer = _spoken(asked.port, data)
        assert not _errors_of_ours(answer), (number, data, answer)
    assert asked.filter(["h1"]).NodeNames == ["h1"]


def test_no_question_for_a_page_is_an_error_of_ours(status_api, seed):
    chance = random.Random(f"{seed} questions")
    statuses = set()
    for number in range(QUESTIONS):
        data = mutations.question(chance)
        answer = _spoken(status_api.port, data)
        assert not _errors_of_ours(answer), (number, data, answer)
        statuses |= _statuses(answer)
    assert statuses >= {b"200", b"400", b"404"}
    assert status_api.get("/api/v1/nodes/h1")[0] == 200


def _statuses(answer: bytes) -> set[bytes]:
    return {line.split(b" ")[1] for line in answer.split(b"\r\n") if line.startswith(b"HTTP/1.")}


def _errors_of_ours(answer: bytes) -> set[bytes]:
    """505 is the client's: an HTTP version that there is not. 501 too: a transfer coding, a method."""
    return {status for status in _statuses(answer) if status.startswith(b"5")} - {b"501", b"505"}


def _spoken(port: int, data: bytes) -> bytes:
    """What is answered until the other side closes, or is quiet after we have said that nothing more comes."""
    received = b""
    with socket.create_connection(("127.0.0.1", port), timeout=ANSWERED_WITHIN_S) as sock:
        try:
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
            while piece := sock.recv(65536):
                received += piece
        except (ConnectionResetError, BrokenPipeError):
            pass
    return received
