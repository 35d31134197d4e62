"""Is a container's image there, and if not, may it be pulled, and now? As pkg/kubelet/images/image_manager.go, v1.36.3.

Who the agent is is not told to a registry: an image that needs credentials must be on the node already.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from agent.cri.base import CriError
from agent.cri.calls import Calls
from agent.runtime.base import StartError
from component.backoff import Backoff

ALWAYS, NEVER = "Always", "Never"
FIRST_S, LIMIT_S = 10.0, 300.0
LOOK_S = 0.5  # at whether who waits for another one's pull still wants to


class ImageService(Protocol):
    """The part of agent.cri.writer.CriWriter that is used, as it is for one pod. Both raise CriError, PodIsEnding."""

    def image(self, name: str) -> str: ...
    def pull(self, name: str) -> str: ...


@dataclass(frozen=True, slots=True)
class Failed:
    """The last pull. Not again before `until` (monotonic)."""

    until: float = 0.0
    backoff: Backoff = Backoff(FIRST_S, LIMIT_S)  # noqa: RUF009 - frozen, so one is enough for all
    error: str = ""


class Images:
    """Several threads may ask. As by a kubelet that nobody has told otherwise images are pulled one after another, and
    who could not pull one waits, each pod for itself."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._pulling = threading.Lock()
        self._failed: dict[str, dict[str, Failed]] = {}  # by pod and image

    def ensure(self, service: ImageService, calls: Calls, uid: str, name: str, policy: str) -> str:
        """What the runtime calls the image. Waits while it is pulled, and while another one is. Raises StartError, and
        PodIsEnding when `calls` have ended."""
        try:
            ref = service.image(name)
        except CriError as e:
            raise StartError("ImageInspectError", f'Failed to inspect image "{name}": {e}') from e
        if ref and policy != ALWAYS:
            return ref
        if policy == NEVER:
            raise StartError("ErrImageNeverPull", f'Container image "{name}" is not present with pull policy of Never')
        with self._lock:
            failed = self._failed.get(uid, {}).get(name, Failed())
        if failed.error and self._monotonic() < failed.until:
            raise StartError("ImagePullBackOff", f'Back-off pulling image "{name}": ErrImagePull: {failed.error}')
        while not self._pulling.acquire(timeout=LOOK_S):
            calls.go_on()
        try:
            ref = service.pull(name)
        except CriError as e:
            delay_s, backoff = failed.backoff.next(lambda: 0.0)
            with self._lock:
                self._failed.setdefault(uid, {})[name] = Failed(self._monotonic() + delay_s, backoff, str(e))
            raise StartError("ErrImagePull", str(e)) from e
        finally:
            self._pulling.release()
        with self._lock:
            self._failed.get(uid, {}).pop(name, None)
        return ref

    def forget(self, uid: str) -> None:
        """A pod that is gone."""
        with self._lock:
            self._failed.pop(uid, None)
