"""What the process runtime keeps on disk, so that a new agent knows what the last one left behind.

ROOT/pods/UID/pod.json                     the sandbox: address, network mode
ROOT/pods/UID/CONTAINER/ATTEMPT.json       one instance: pid, start time, boot, how it ended
ROOT/pods/UID/CONTAINER/ATTEMPT.log        its output (and ATTEMPT.log.1, the part before)
"""

import logging
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NamedTuple, TypeVar

import msgspec

from kube.objects import UNREADABLE

log = logging.getLogger(__name__)

T = TypeVar("T")

Wall = Annotated[float, msgspec.Meta(ge=0.0, le=2.0**37)]
"""Seconds since the epoch: beyond are dates that cannot be written."""
KEPT_INSTANCES = 2  # the present one and the one before it, as the kubelet keeps


class SandboxRecord(msgspec.Struct, frozen=True):
    ip: str
    host_network: bool


class InstanceRecord(msgspec.Struct, frozen=True):
    """`start_ticks` and `boot` tell whether `pid` is still the same process. `exit_code` None: has not ended."""

    id: str
    name: str
    attempt: Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
    created_at: Wall
    started_at: Wall | None = None
    finished_at: Wall | None = None
    exit_code: Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31)] | None = None
    reason: str = ""
    message: str = ""
    image: str = ""
    pid: int = 0
    start_ticks: int = 0
    boot: str = ""


class PodRecords(NamedTuple):
    """`sandbox` None: its file cannot be read, but there may be processes. `instances`: oldest first."""

    uid: str
    sandbox: SandboxRecord | None
    instances: list[InstanceRecord]


class Records:
    """Files under `root`. Raises OSError where the disk does; what could not be written then is written with the next
    that can. May be called from any thread: the lock waits for the disk, as each of them would."""

    def __init__(self, root: Path) -> None:
        self._pods = root / "pods"
        self._lock = threading.Lock()
        self._unwritten: dict[Path, bytes] = {}

    def prepare(self) -> None:
        """Makes the folder. Raises OSError if it cannot be made or written."""
        self._pods.mkdir(parents=True, exist_ok=True)
        probe = self._pods / ".writable"
        probe.write_bytes(b"")
        probe.unlink()

    def log_path(self, uid: str, name: str, attempt: int) -> Path:
        return self._pods / uid / name / f"{attempt}.log"

    def put_sandbox(self, uid: str, sandbox: SandboxRecord) -> None:
        self._put(self._pods / uid / "pod.json", msgspec.json.encode(sandbox))

    def put_instance(self, uid: str, instance: InstanceRecord) -> None:
        self._put(self._pods / uid / instance.name / f"{instance.attempt}.json", msgspec.json.encode(instance))

    def remove_instance(self, uid: str, instance: InstanceRecord) -> None:
        folder = self._pods / uid / instance.name
        with self._lock:
            self._unwritten.pop(folder / f"{instance.attempt}.json", None)
            for suffix in ("json", "log", "log.1"):
                (folder / f"{instance.attempt}.{suffix}").unlink(missing_ok=True)

    def remove_pod(self, uid: str) -> None:
        with self._lock:
            self._unwritten = {p: data for p, data in self._unwritten.items() if self._pods / uid not in p.parents}
            shutil.rmtree(self._pods / uid, ignore_errors=True)

    def _put(self, path: Path, content: bytes) -> None:
        with self._lock:
            waiting = {**self._unwritten, path: content}
            self._unwritten = dict(waiting)
            for waits in (path, *(other for other in waiting if other != path)):
                _write(waits, waiting[waits])
                del self._unwritten[waits]

    def load(self) -> Iterator[PodRecords]:
        """Every pod on disk. What cannot be read is logged and skipped."""
        if not self._pods.is_dir():
            return
        for folder in sorted(path for path in self._pods.iterdir() if path.is_dir()):
            sandbox = _read(folder / "pod.json", SandboxRecord)
            instances = [_read(path, InstanceRecord) for path in folder.glob("*/*.json")]
            known = [instance for instance in instances if instance is not None]
            yield PodRecords(folder.name, sandbox, sorted(known, key=lambda instance: instance.created_at))


def _read(path: Path, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, *UNREADABLE) as e:
        log.warning("state file not usable", extra={"path": str(path), "cause": type(e).__name__, "error": str(e)})
        return None


def _write(path: Path, content: bytes) -> None:
    """Whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    temporary.write_bytes(content)
    temporary.replace(path)
