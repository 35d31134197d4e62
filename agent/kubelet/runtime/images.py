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
from agent.kubelet.runtime.base import StartError
from agent.kubelet.runtime.image_names import with_tag
from agent.probe.go_quoting import quoted
from component.backoff import Backoff

ALWAYS, NEVER = "Always", "Never"
FIRST_S, LIMIT_S = 10.0, 300.0
FORGOTTEN_AFTER_S = 2 * LIMIT_S  # a pull that failed; one that goes well meanwhile forgets none
# What a runtime may say that a pull failed for, by the word that it begins with.
CAUSES = {
    "RegistryUnavailable": "the registry is unavailable",
    "SignatureValidationFailed": "the signature validation failed",
}
LOOK_S = 0.5  # at whether who waits for another one's pull still wants to


class ImageService(Protocol):
    """The part of agent.kubelet.runtime.cri_writer.CriWriter that is used, as it is for one pod. Both raise CriError, PodIsEnding."""

    def image(self, name: str) -> str: ...
    def pull(self, name: str) -> str: ...


@dataclass(frozen=True, slots=True)
class Failed:
    """The last pull that did. Not again before `until`. `error`: reason and text. Times are monotonic."""

    at: float
    until: float
    backoff: Backoff
    error: str


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
            tagged = with_tag(name)
        except ValueError as e:
            raise StartError("InvalidImageName", f"Failed to apply default image tag {quoted(name)}: {e}") from e
        if policy != ALWAYS:
            try:
                ref = service.image(tagged)
            except CriError as e:
                raise StartError("ImageInspectError", f'Failed to inspect image "{name}": {e}') from e
            if ref:
                return ref
            if policy == NEVER:
                text = f'Container image "{name}" is not present with pull policy of Never'
                raise StartError("ErrImageNeverPull", text)
        failed = self._last_failed(uid, name)
        if failed is not None and self._monotonic() < failed.until:
            raise StartError("ImagePullBackOff", f'Back-off pulling image "{name}": {failed.error}')
        while not self._pulling.acquire(timeout=LOOK_S):
            calls.go_on()
        try:
            return service.pull(tagged)
        except CriError as e:
            reason, text = _why(name, e)
            self._keep_failed(uid, name, f"{reason}: {text}")
            raise StartError(reason, text) from e
        finally:
            self._pulling.release()

    def _last_failed(self, uid: str, name: str) -> Failed | None:
        with self._lock:
            failed = self._failed.get(uid, {}).get(name)
        return failed if failed is not None and self._monotonic() - failed.at <= FORGOTTEN_AFTER_S else None

    def _keep_failed(self, uid: str, name: str, error: str) -> None:
        before, now = self._last_failed(uid, name), self._monotonic()
        backoff = Backoff(FIRST_S, LIMIT_S) if before is None else before.backoff
        delay_s, backoff = backoff.next(lambda: 0.0)
        with self._lock:
            self._failed.setdefault(uid, {})[name] = Failed(now, now + delay_s, backoff, error)

    def forget(self, uid: str) -> None:
        """A pod that is gone."""
        with self._lock:
            self._failed.pop(uid, None)


def _why(name: str, error: CriError) -> tuple[str, str]:
    """The reason and what is said of it (evalCRIPullErr)."""
    for reason, cause in CAUSES.items():
        if error.said.startswith(reason):
            return reason, f"image pull failed for {name} because {cause}{error.said.removeprefix(reason)}"
    return "ErrImagePull", str(error)
