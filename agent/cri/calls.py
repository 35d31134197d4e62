"""Calls that are made for one pod. A pod that is to end waits for none of them: whoever pulls its image, or makes its
sandbox, is told at once. As a kubelet cancels the sync of a pod that becomes terminating (UpdatePod of pod_workers.go).
"""

import threading
from collections.abc import Callable
from itertools import islice
from typing import Any

from agent.cri.calls import PodIsEnding


class Calls:
    """Any thread may call. Once they were ended there are no more."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ended = False
        self._open: list[Any] = []

    def end(self) -> None:
        """Never waits. What the runtime makes of a call that it has begun is looked at later, as after any fault."""
        with self._lock:
            self._ended = True
            cancelled = list(self._open)
        for call in cancelled:
            call.cancel()

    def go_on(self) -> None:
        """Raises PodIsEnding."""
        with self._lock:
            if self._ended:
                raise PodIsEnding("what was being made for the pod is given up: it is to end")

    def answers(self, begin: Callable[[], Any], most: int) -> list[Any]:
        """Of a call that `begin` begins, which does not wait: all that come, at most so many. Raises PodIsEnding, else
        what the call ends with."""
        self.go_on()
        call = begin()
        with self._lock:
            self._open.append(call)
        try:
            self.go_on()  # it was not among those that were cancelled, if they were just now
            return list(islice(call, most))
        except Exception:
            self.go_on()
            raise
        finally:
            call.cancel()  # of one that is over nothing
            with self._lock:
                self._open = [other for other in self._open if other is not call]
