"""What the tests of /api/v1 ask."""

import pytest

from extender.config.settings import parse
from extender.policy.orders import parse_orders
from extender.policy.snapshot import Snapshot
from extender.web.app import create_app
from extender.why.entries import Event, Reset, Tally
from tests.extender.web.showing import DATA, NODES, SETTINGS, WALL, Client, gates
from tests.extender.web.test_app import Shown
from tests.extender.why.attempting import UNHEALTHY, Scheduler
from tools.kit.clock import Clock


@pytest.fixture
def shown():
    """Six nodes, four gates, two events, and pods that kube-scheduler has asked about."""
    shown = Shown()
    shown.board.swap(Snapshot({state.name: state for state in gates()}, frozenset(NODES), 2))
    scheduler = Scheduler()
    scheduler.board = shown.board
    shown.scheduler, shown.journal = scheduler, scheduler.journal
    shown.orders = parse_orders(DATA)
    shown.settings = parse(SETTINGS)
    write = shown.journal.write
    write(Reset(2.0))
    write(Event(1, 5.0, "closed", "base", "n2", UNHEALTHY, "dns: timed out"))
    write(Event(2, 6.0, "storm", "base", "", UNHEALTHY, "10.96.0.10", "storm", "3 nodes"))
    write(Tally("base", True, 2.0, 9, 5, 3, False, 4, 1, 1, {0: 5}))
    write(Tally("dns", False, 3.0, 7, 6, 2, True, 4, 0, 0, {0: 6}))
    scheduler.asks(NODES, pod="train-7", namespace="team-a", at=8.0)
    scheduler.asks(["n2", "new", "n1"], pod="train-8", namespace="team-a", at=9.0)
    scheduler.gets_no_answer(pod="etl-3", namespace="team-b", at=9.5)
    return shown


@pytest.fixture
def application(shown):
    app = create_app(shown)
    app.extensions["readygate-api"].wall = Clock(WALL)
    return app


@pytest.fixture
def client(application):
    return Client(application)
