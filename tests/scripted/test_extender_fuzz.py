"""Requests drawn by chance, over sockets: whole HTTP requests of any kind, and bodies of POST /filter.

New ones in each run; READYGATE_SEED repeats them (`tests/conftest.py`). `make soak` sends a million.
"""

import random
import socket

from tests.contract import mutations
from tests.contract.go_types import read_filter_result
from tests.scripted.extender_process import checked

BODIES = 2_000
REQUESTS = 300
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


def test_no_request_of_any_kind_is_an_error_of_ours_or_holds_the_next(extender, seed):
    chance = random.Random(f"{seed} requests")
    for number in range(REQUESTS):
        data = mutations.request(chance)
        answer = _spoken(extender.port, data)
        statuses = {line.split(b" ")[1] for line in answer.split(b"\r\n") if line.startswith(b"HTTP/1.")}
        # 505 is the client's: an HTTP version that there is not. 501 too: a transfer coding, a method.
        assert not {s for s in statuses if s.startswith(b"5")} - {b"501", b"505"}, (number, data, answer)
    assert extender.filter(["h1"]).NodeNames == ["h1"]


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
