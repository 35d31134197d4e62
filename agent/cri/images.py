"""Is a container's image there, and if not, may it be pulled, and now? As pkg/kubelet/images/image_manager.go, v1.36.3.

Who the agent is is not told to a registry: an image that needs credentials must be on the node already.
"""

import threading
import time
from collections.abc import Callable
from typing import Protocol

from agent.cri.base import CriError
from agent.runtime.base import StartError
from component.backoff import Backoff

ALWAYS, NEVER = "Always", "Never"
FIRST_S, LIMIT_S = 10.0, 300.0


class ImageService(Protocol):
    """The part of agent.cri.writer.CriWriter that is used. Both raise CriError."""

    def image(self, name: str) -> str: ...
    def pull(self, name: str) -> str: ...


class Images:
    """Several threads may ask, also for one image: the runtime pulls what is pulled already once."""

    def __init__(self, service: ImageService, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._service = service
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._failed: dict[str, tuple[float, Backoff, str]] = {}  # not before, then, why

    def ensure(self, name: str, policy: str) -> str:
        """What the runtime calls the image. Waits while it is pulled. Raises StartError."""
        try:
            ref = self._service.image(name)
        except CriError as e:
            raise StartError("ImageInspectError", f'Failed to inspect image "{name}": {e}') from e
        if ref and policy != ALWAYS:
            return ref
        if policy == NEVER:
            raise StartError("ErrImageNeverPull", f'Container image "{name}" is not present with pull policy of Never')
        with self._lock:
            until, backoff, error = self._failed.get(name, (0.0, Backoff(FIRST_S, LIMIT_S), ""))
        if error and self._monotonic() < until:
            raise StartError("ImagePullBackOff", f'Back-off pulling image "{name}": ErrImagePull: {error}')
        try:
            ref = self._service.pull(name)
        except CriError as e:
            delay_s, backoff = backoff.next(lambda: 0.0)
            with self._lock:
                self._failed[name] = (self._monotonic() + delay_s, backoff, str(e))
            raise StartError("ErrImagePull", str(e)) from e
        with self._lock:
            self._failed.pop(name, None)
        return ref
