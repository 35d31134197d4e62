"""The file in which it outlives the agent what pods were granted, as the kubelet's allocated_pods_state."""

import threading
from collections.abc import Set as AbstractSet
from pathlib import Path

import msgspec

from agent.store.atomic_file import AtomicFile
from agent.store.checksummed import seal, unseal

VERSION = 1

Resources = tuple[tuple[str, str, str, str], ...]
"""Container, limits or requests, resource, quantity as it was written."""


class GrantedResources:
    """Read once, when it is made; replaced as a whole. May be called from any thread.

    As a kubelet does it, a grant is on the disk before the pod is started: the lock waits for that. Where it cannot be
    written it is tried again with each change and each `keep`.
    """

    def __init__(self, path: Path) -> None:
        self._file = AtomicFile(path, "what pods were granted is")
        self._lock = threading.Lock()
        self._granted = self._file.read(decode) or {}
        self._written = dict(self._granted)

    def of(self, uid: str) -> Resources | None:
        """None: it was granted nothing yet."""
        with self._lock:
            return self._granted.get(uid)

    def grant(self, uid: str, resources: Resources) -> None:
        with self._lock:
            self._granted[uid] = resources
            self._write()

    def keep(self, uids: AbstractSet[str]) -> None:
        """Forgets all others."""
        with self._lock:
            for uid in self._granted.keys() - uids:
                del self._granted[uid]
            self._write()

    def _write(self) -> None:
        """Where something has changed; with the lock held."""
        if self._granted != self._written and self._file.write(encode(self._granted)):
            self._written = dict(self._granted)


def encode(granted: dict[str, Resources]) -> bytes:
    return seal(msgspec.json.encode(granted, order="sorted"), VERSION)


def decode(document: bytes) -> dict[str, Resources]:
    """Raises as unseal() does."""
    data, _ = unseal(document, VERSION)
    return msgspec.json.decode(data, type=dict[str, Resources])
