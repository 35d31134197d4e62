"""An extender as the feed sees it, by hand."""

import time

from extender.config.settings import parse
from extender.policy.orders import Orders
from extender.policy.snapshot import Board
from extender.why.journal import Journal
from tests.extender.feed.test_wire import status
from tests.extender.snapshots import with_decisions

SETTINGS = parse("")


class Published:
    """What an extender says of itself."""

    def __init__(self):
        self.settings = SETTINGS
        self.board = Board(lambda _: None)
        self.orders = Orders()
        self.said = status(at_monotonic=time.monotonic(), caches={}, required=[])
        self.beating = {}
        self.journal = Journal()

    def decide(self, decisions, gate="health"):
        self.board.swap(with_decisions(self.board.snapshot, gate, decisions))

    def status(self):
        return self.said

    def beats(self):
        return self.beating
