"""What answers people takes its rests in the middle of an answer: a page of thousands of nodes is made and sent in
pieces, so that between two of them kube-scheduler's call finds a processor free and what it needs still in its caches.
"""

import threading
import time
from collections.abc import Iterable, Iterator

from werkzeug.wsgi import ClosingIterator

from extender.web.page_budget import PageBudget

PIECE_BYTES = 2**16


class Throttle:
    """For any thread. pace: None for no bound.

    Counted is all that a thread has taken since it was here last: sending an answer is dearer than finding it.
    """

    def __init__(self, pace: PageBudget | None = None) -> None:
        self._pace = pace
        self._lock = threading.Lock()  # over a few numbers
        self._thread = threading.local()

    def before(self) -> None:
        """An answer: waits while more of the processor was taken than is due."""
        self._take(within=False)

    def within(self) -> None:
        """An answer: the same, but for what itself has taken."""
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
        """The same body, with a rest between two pieces."""
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
