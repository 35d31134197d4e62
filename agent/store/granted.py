"""The file in which it outlives the agent what pods were granted, as the kubelet's allocated_pods_state."""

import logging
import threading
import zlib
from collections.abc import Set as AbstractSet
from pathlib import Path

import msgspec

from agent.store.whole import replace_whole
from agent.store.wire import StateInvalid

log = logging.getLogger(__name__)

VERSION = 1
LIMIT_BYTES = 16 * 2**20  # of what is read: a hundred times what 250 pods of ten containers take

Resources = tuple[tuple[str, str, str, str], ...]
"""Container, limits or requests, resource, quantity as it was written."""


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    """`data`: JSON, uid -> Resources. `checksum`: its CRC-32, for bits that a disk has lost."""

    version: int
    checksum: int
    data: str


class _Version(msgspec.Struct):
    version: int


class GrantedFile:
    """Read once, when it is made; replaced as a whole. May be called from any thread.

    As a kubelet does it, a grant is on the disk before the pod is started: the lock waits for that. Where it cannot be
    written it is tried again with each change and each `keep`.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._granted = self._read()
        self._written = dict(self._granted)
        self._failed = False

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

    def _read(self) -> dict[str, Resources]:
        try:
            with self._path.open("rb") as file:
                return decode(file.read(LIMIT_BYTES))
        except FileNotFoundError:
            return {}
        except (OSError, StateInvalid) as e:
            log.warning("what pods were granted is not known", extra={"path": str(self._path), "error": str(e)})
            return {}

    def _write(self) -> None:
        """Where something has changed; with the lock held."""
        if self._granted == self._written:
            return
        try:
            replace_whole(self._path, encode(self._granted))
        except OSError as e:
            if not self._failed:  # one line, until it works again
                log.warning("what pods were granted is not kept", extra={"path": str(self._path), "error": str(e)})
            self._failed = True
            return
        self._failed, self._written = False, dict(self._granted)


def encode(granted: dict[str, Resources]) -> bytes:
    data = msgspec.json.encode(granted, order="sorted")
    return msgspec.json.encode(_Document(VERSION, zlib.crc32(data), data.decode()))


def decode(document: bytes) -> dict[str, Resources]:
    """Raises StateInvalid."""
    try:
        if (version := msgspec.json.decode(document, type=_Version).version) != VERSION:
            raise StateInvalid(f"is of version {version}, ours is {VERSION}")
        found = msgspec.json.decode(document, type=_Document)
        data = found.data.encode()
        if zlib.crc32(data) != found.checksum:
            raise StateInvalid("is damaged: its checksum is another")
        return msgspec.json.decode(data, type=dict[str, Resources])
    except (msgspec.DecodeError, UnicodeError, RecursionError) as e:
        raise StateInvalid(f"does not parse: {e}") from e
