"""Work queue of pod UIDs, deduplicated."""

import threading


class Inbox:
    """Each UID at most once, however often it was put. Any thread may put; the sync loop takes."""

    def __init__(self) -> None:
        self._filled = threading.Condition()
        self._uids: set[str] = set()

    def put(self, uid: str) -> None:
        """Never waits for the loop."""
        with self._filled:
            self._uids.add(uid)
            self._filled.notify()

    def take(self, timeout_s: float) -> set[str]:
        """Everything that is there, after waiting for the first one; empty when none came in time."""
        with self._filled:
            if timeout_s > 0:
                self._filled.wait_for(lambda: self._uids, timeout_s)
            taken, self._uids = self._uids, set()
            return taken
