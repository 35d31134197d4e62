"""A worker a pod: no pod waits for another one's calls, and no pod is worked on by two. As pkg/kubelet/pod_workers.go.

A kubelet's worker is a goroutine as long as its pod is known; ours is a thread as long as there is something to do.
"""

import logging
import math
import threading
from collections.abc import Callable

log = logging.getLogger(__name__)


class Workers:
    """`work(uid)` does all there is to do for a pod now; it must not raise."""

    def __init__(self, work: Callable[[str], None]) -> None:
        self._work = work
        self._lock = threading.Lock()
        self._busy: set[str] = set()
        self._again: set[str] = set()
        self._closed = False

    def give(self, uid: str) -> bool:
        """Never waits: one that is busy does it once more when it is done. False: there is no thread for it."""
        with self._lock:
            if self._closed:
                return True
            if uid in self._busy:
                self._again.add(uid)
                return True
            self._busy.add(uid)
        try:
            threading.Thread(target=self._run, args=(uid,), name=f"pod-{uid[:8]}", daemon=True).start()
        except RuntimeError as e:
            log.warning("no thread for a pod", extra={"uid": uid, "error": str(e)})
            with self._lock:
                self._busy.discard(uid)
                self._again.discard(uid)
            return False
        return True

    def close(self) -> None:
        """Those that are busy end when they are done; nobody waits for them."""
        with self._lock:
            self._closed = True
            self._again.clear()

    def _run(self, uid: str) -> None:
        while True:
            self._work(uid)
            with self._lock:
                if uid not in self._again:
                    self._busy.discard(uid)
                    return
                self._again.discard(uid)


class Dues:
    """When each pod is due, of several times the nearest. Any thread may use it.

    An attempt at a pod sets the pod's next time when it ends. Until then the time that was set before holds, as in the
    work queue of a kubelet.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._at: dict[str, float] = {}
        self._next: dict[str, float] = {}  # of the attempts that are under way

    def put(self, uid: str, at: float) -> None:
        with self._lock:
            times = self._next if uid in self._next else self._at
            times[uid] = min(at, times.get(uid, at))

    def begin(self, uid: str) -> None:
        """An attempt begins."""
        with self._lock:
            self._next[uid] = math.inf

    def end(self, uid: str) -> None:
        """The attempt is over."""
        with self._lock:
            at = self._next.pop(uid)
            if at < math.inf:
                self._at[uid] = at
            else:
                self._at.pop(uid, None)

    def forget(self, uid: str) -> None:
        with self._lock:
            self._at.pop(uid, None)

    def first(self, otherwise: float) -> float:
        """The nearest, at most `otherwise`."""
        with self._lock:
            return min([*self._at.values(), otherwise])

    def take(self, monotonic: float) -> set[str]:
        """The pods that are due, each once."""
        with self._lock:
            due = {uid for uid, at in self._at.items() if at <= monotonic}
            for uid in due:
                del self._at[uid]
            return due
