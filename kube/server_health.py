"""State that the watches of one API server share: the budget of requests while it fails, and the notice of its
return."""

import math
import threading
from collections.abc import Callable

from kube.retry_policy import ASKED_LIMIT_S, after_turn

WOKEN_APART_S = 60.0  # otherwise two watches that wake each other, and fail, would never pause


class ServerHealth:
    """The shared state. Thread-safe; the lock is held for a few lines."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free_at = -math.inf
        self._waiting: dict[object, Callable[[], None]] = {}
        self._woken_at: dict[object, float] = {}

    def turn_s(self, requests: int, monotonic: float, random: Callable[[], float]) -> float:
        """Returns the seconds until the caller may try again, after a failed try of so many requests."""
        with self._lock:
            free_at = after_turn(self._free_at, requests=requests, monotonic=monotonic, random=random)
            self._free_at = min(free_at, monotonic + ASKED_LIMIT_S)
            return self._free_at - monotonic

    def wait(self, who: object, wake: Callable[[], None]) -> None:
        """Registers a caller that waits for the server's return; wake() is called at most once, and never blocks."""
        with self._lock:
            self._waiting[who] = wake

    def leave(self, who: object) -> None:
        """Removes a waiting caller."""
        with self._lock:
            self._waiting.pop(who, None)

    def answered(self, monotonic: float) -> None:
        """The server has answered a caller that had waited for it: the others need not wait any longer."""
        with self._lock:
            due = {
                who: wake
                for who, wake in self._waiting.items()
                if monotonic - self._woken_at.get(who, -math.inf) >= WOKEN_APART_S
            }
            for who in due:
                del self._waiting[who]
                self._woken_at[who] = monotonic
        for wake in due.values():
            wake()
