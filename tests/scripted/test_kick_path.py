"""The kick over a path whose handshake takes longer than any answer: one connection, made before it is needed."""

import time
from dataclasses import replace

import pytest

from extender.outlets import kick
from kube.client import Client
from tests.extender.outlets.test_kick import Diary
from tests.scripted.following import node
from tests.scripted.tls import make_authority
from tools.fakes.api_server import FakeApiServer
from tools.kit.waiting import wait_until

HANDSHAKE_S = 0.4


class SlowHandshake:
    """A server's TLS that keeps each client waiting first."""

    def __init__(self, context) -> None:
        self._context = context

    def wrap_socket(self, connection, **options):
        time.sleep(HANDSHAKE_S)
        return self._context.wrap_socket(connection, **options)


@pytest.fixture
def slow(tmp_path):
    """An API server, and a kicker that is not started yet; it grants an answer less than the handshake takes."""
    authority = make_authority(tmp_path)
    with pytest.MonkeyPatch.context() as patch, FakeApiServer(tls=SlowHandshake(authority.server_context())) as api:
        patch.setattr(kick, "ANSWER_S", HANDSHAKE_S / 2)
        api.put(node("n1"))
        client = Client(replace(api.connection(), ssl_context=authority.client_context()), user_agent="t", attempts=1)
        kicker = kick.Kicker(client, Diary(), repeat_after_s=0.0)
        yield api, kicker
        kicker.stop()


def test_a_kick_is_not_cut_off_by_the_handshake(slow):
    api, kicker = slow
    kicker.request(["n1"])
    kicker.start()
    wait_until(lambda: kicker.counters == {"sent": 1}, lambda: str(kicker.counters))
    assert ["PATCH"] == [request.method for request in api.requests]


def test_a_kick_uses_the_connection_that_was_made_at_the_start(slow):
    api, kicker = slow
    kicker.start()
    api.wait_requests(1)
    kicker.request(["n1"])
    wait_until(lambda: kicker.counters == {"sent": 1}, lambda: str(kicker.counters))
    assert (["GET", "PATCH"], 1) == ([request.method for request in api.requests], len(api._connections))
