"""Writes that fail for a while: one line of log at the first failure, one at the next success, growing pauses."""

import logging
from collections.abc import Callable

from component.backoff import Backoff
from kube.errors import CredentialsInvalid, KubeError
from kube.objects import UNREADABLE

log = logging.getLogger(__name__)

# What an API server that is away, refuses, or answers nonsense makes a call raise. Anything else is a bug of ours.
FAILURES = (KubeError, CredentialsInvalid, *UNREADABLE)


class Outage:
    """Used by one thread. `failed` and `over` are the two lines, `node` is a fact of both."""

    def __init__(self, *, failed: str, over: str, node: str, backoff: Backoff, random: Callable[[], float]) -> None:
        self._texts = (failed, over)
        self._node = node
        self._backoff = backoff
        self._random = random

    def failed(self, error: Exception) -> float:
        """Seconds to wait before the next try."""
        if self._backoff.failures == 0:
            facts = {"node": self._node, "cause": type(error).__name__, "error": str(error)}
            log.warning(self._texts[0], extra=facts)
        pause_s, self._backoff = self._backoff.next(self._random)
        return pause_s

    def succeeded(self) -> None:
        if self._backoff.failures > 0:
            log.info(self._texts[1], extra={"node": self._node})
        self._backoff = self._backoff.reset()
