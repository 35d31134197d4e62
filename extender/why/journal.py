"""The history for any thread to read, and its steps for the feed."""

import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice

from extender.why.entries import Entry, PodRecord
from extender.why.history import History

STEPS_MAX = 20_000
STEP_NAMES_MAX = 1_000_000  # in their records: 5 MB


class Journal:
    """The history with a lock. One thread writes, any may read. The lock is for memory work only, one piece at a time.

    memory: for the writing thread; others read within reading(). serial: of the newest step. steps_max: how many are
    kept for the feed; a client that is further behind gets everything again.
    """

    def __init__(self, *, steps_max: int = STEPS_MAX) -> None:
        self.memory = History()
        self._lock = threading.Lock()
        self._steps_max = steps_max
        self._steps: deque[Entry] = deque()  # the last one has the number `serial`
        self._held: deque[int] = deque()  # the size of each of them, in names: no cache holds a step that goes
        self._names = 0
        self.serial = 0

    @contextmanager
    def reading(self) -> Iterator[History]:
        """Nothing changes within; leave it soon, and change nothing."""
        with self._lock:
            yield self.memory

    def left_node(self, namespace: str, name: str, uid: str, node: str) -> bool:
        """As History.left_node."""
        with self._lock:
            return self.memory.left_node(namespace, name, uid, node)

    def write(self, entry: Entry) -> None:
        """Raises ValueError for an entry that does not follow."""
        with self._lock:
            self.put(entry)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """For many entries, to be put() within."""
        with self._lock:
            yield

    def put(self, entry: Entry) -> None:
        """As write(), within writing()."""
        steps, held = self._steps, self._held
        names = 0
        if type(entry) is PodRecord:  # nearly all are
            names = self.memory.pods.put(entry)
            self._names += names
        else:
            self.memory.apply(entry)
        self.serial += 1
        steps.append(entry)
        held.append(names)
        while len(steps) > self._steps_max or self._names > STEP_NAMES_MAX:
            steps.popleft()
            self._names -= held.popleft()

    def renew(self, entries: Iterable[Entry]) -> None:
        """Replaces everything by these entries, which begin with Reset. Clients of the feed get everything again."""
        with self._lock:
            for entry in entries:
                self.memory.apply(entry)
            self._steps.clear()
            self._held.clear()
            self._names = 0
            self.serial += 1

    def since(self, serial: int, most: int) -> list[Entry] | None:
        """Returns the next steps after this one; None if some of them were dropped."""
        with self._lock:
            missing = self.serial - serial
            if not 0 <= missing <= len(self._steps):
                return None
            return list(islice(self._steps, len(self._steps) - missing, len(self._steps) - missing + most))

    def dump(self) -> tuple[int, list[Entry]]:
        """Returns the newest serial, and the entries of everything up to it."""
        with self._lock:
            return self.serial, self.memory.dump()
