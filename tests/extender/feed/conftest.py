"""Both ends of the feed, over a real socket."""

import pytest

from extender.feed.replica import Replica
from extender.feed.server import FeedServer
from tests.extender.feed.published import SETTINGS, Published
from tools.kit.waiting import wait_until


@pytest.fixture
def published():
    return Published()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "feed" / "socket"


@pytest.fixture
def publisher(published, path):
    running = FeedServer(path, published)
    running.start()
    wait_until(lambda: path.exists(), "the socket")
    yield running
    running.stop()


@pytest.fixture
def mirror(path):
    running = Replica(path, SETTINGS)
    running.start()
    yield running
    running.stop()
