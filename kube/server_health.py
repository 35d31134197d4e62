"""What the watches of one API server share: how much they ask of it while it fails, and the news that it answers."""

import math
import threading
from collections.abc import Callable

from kube.retry_policy import ASKED_LIMIT_S, after_turn

WOKEN_APART_S = 60.0  # or two that wake each other, and fail, would never pause


class ServerHealth:
    """Thread-safe; the lock is held for a few lines."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free_at = -math.inf
        self._waiting: dict[object, Callable[[], None]] = {}
        self._woken_at: dict[object, float] = {}

    def turn_s(self, requests: int, monotonic: float, random: Callable[[], float]) -> float:
        """Seconds until the caller, who has just tried in vain with so many requests, may try again."""
        with self._lock:
            free_at = after_turn(self._free_at, requests=requests, monotonic=monotonic, random=random)
            self._free_at = min(free_at, monotonic + ASKED_LIMIT_S)
            return self._free_at - monotonic

    def wait(self, who: object, wake: Callable[[], None]) -> None:
        """The caller waits for the server's return; wake() is called at most once, and never blocks."""
        with self._lock:
            self._waiting[who] = wake

    def leave(self, who: object) -> None:
        """The caller waits no longer."""
        with self._lock:
            self._waiting.pop(who, None)

    def heard(self, monotonic: float) -> None:
        """The server has answered one who had waited for it: the others need not wait any longer."""
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
