"""Makes answers pause, also in their middle: a page of thousands of nodes is made and sent in pieces. Between two
pieces kube-scheduler's call finds a free processor and warm caches."""

import threading
import time
from collections.abc import Iterable, Iterator

from werkzeug.wsgi import ClosingIterator

from extender.web.page_budget import PageBudget

PIECE_BYTES = 2**16


class Throttle:
    """Pauses for any thread. pace: None for no bound.

    It counts all processor time of a thread since its last call: sending an answer costs more than making it.
    """

    def __init__(self, pace: PageBudget | None = None) -> None:
        self._pace = pace
        self._lock = threading.Lock()  # for a few numbers
        self._thread = threading.local()

    def before(self) -> None:
        """Before an answer: waits while more than the budget was taken."""
        self._take(within=False)

    def within(self) -> None:
        """Within an answer: the same, but only for what this answer has taken."""
        self._take(within=True)

    def _take(self, *, within: bool) -> None:
        if self._pace is None:
            return
        taken_s = time.thread_time()
        spent_s = taken_s - getattr(self._thread, "taken_s", 0.0)
        self._thread.taken_s = taken_s
        with self._lock:
            wait_s = self._pace.took(spent_s, time.monotonic(), within=within)
        if wait_s > 0:
            time.sleep(wait_s)

    def in_pieces(self, body: Iterable[bytes]) -> Iterable[bytes]:
        """Returns the same body, with a pause between two pieces."""
        close = getattr(body, "close", None)
        return ClosingIterator(self._pieces(body), None if close is None else [close])

    def _pieces(self, body: Iterable[bytes]) -> Iterator[bytes]:
        begun = False
        for whole in body:
            for at in range(0, len(whole), PIECE_BYTES):
                if begun:
                    self.within()
                begun = True
                yield whole[at : at + PIECE_BYTES]
