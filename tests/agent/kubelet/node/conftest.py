"""A fake API server, and a client of it that tries once."""

from collections.abc import Iterator

import pytest

from kube.client import Client
from tools.fakes.api_server import FakeApiServer


@pytest.fixture
def api() -> Iterator[FakeApiServer]:
    with FakeApiServer() as api:
        yield api


@pytest.fixture
def client(api: FakeApiServer) -> Iterator[Client]:
    client = Client(api.connection(), user_agent="test", attempts=1)
    yield client
    client.close()
