import os

import pytest
from readygate_scheduler import change

from tests.playbooks.host.world import World


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.setattr(change, "POLL_S", 0.01)
    monkeypatch.setattr(change, "GRACE_S", 2.0)
    monkeypatch.setattr(os, "fsync", lambda _: None)  # of no use to a test, and slow
    made = World(tmp_path)
    yield made
    made.stop()
