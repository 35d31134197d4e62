"""Keeps the table of pods equal to the manifests of static pods in a folder: the kernel reports changes (inotify), and
every 20 seconds the folder is read in any case."""

import logging
import os
import select
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from agent.kernel.inotify import FolderWatch
from agent.kubelet.pods.manifest_folder import Folder
from agent.wire.manifest import MOST_BYTES, StaticPod
from agent.wire.model import Pod
from component.loop import Loop
from kube.times import format_time

log = logging.getLogger(__name__)

SCAN_S = 20.0  # the kubelet's fileCheckFrequency
SETTLE_S = 0.1  # from a change to the scan: an editor makes several
STUCK_AFTER_S = 60.0


class Table(Protocol):
    """The part of agent.kubelet.pods.source.PodTable that is used."""

    def replace_static(self, pods: Sequence[Pod]) -> None: ...


class ManifestFiles:
    """A Service. `path`: a folder, or one file."""

    name = "static pods"

    def __init__(
        self,
        path: Path,
        node_name: str,
        table: Table,
        *,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path, self._table = path, table
        self._wall, self._monotonic = wall, monotonic
        self._folder = Folder(node_name)
        self._pods: Sequence[StaticPod] = ()
        self._errors: Mapping[str, str] = {}
        self._trouble = ""
        self._changes = FolderWatch([str(path)])
        self._end = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._loop = Loop(
            "static-pods",
            self._turn,
            stuck_after_s=STUCK_AFTER_S,
            unblock=self._unblock,
            at_end=self._changes.close,
        )
        # A Service by its loop.
        self.start, self.stop, self.healthy = self._loop.start, self._loop.stop, self._loop.healthy

    @property
    def synced(self) -> bool:
        """Whether it is known which static pods there are."""
        return self._folder.known

    @property
    def pods(self) -> Sequence[StaticPod]:
        return self._pods

    @property
    def errors(self) -> Mapping[str, str]:
        """By path: what is wrong with a file, which was logged."""
        return self._errors

    @property
    def good(self) -> int:
        """How many files have nothing wrong."""
        return len(self._folder.files) - len(self._errors)

    def scan(self) -> None:
        """Reads the folder and hands its pods over."""
        self._changes.taken()
        found = self._read()
        if self._changes.follow():  # what has changed since was reported to nobody
            found = self._read()
        if isinstance(found, str):  # all stays as it is
            self._report_trouble(found)
            return
        self._report_trouble("is not there" if found is None else "")
        self._folder.scanned(found, format_time(self._wall()), self._monotonic())
        self._pods = self._folder.pods()
        self._report(self._folder.errors())
        self._table.replace_static([one.pod for one in self._pods])

    def _turn(self) -> float:
        self.scan()
        self._loop.progressed(SCAN_S)
        if self._wait(SCAN_S):
            self._wait(SETTLE_S, changes=False)
        return 0.0

    def _wait(self, seconds: float, *, changes: bool = True) -> bool:
        """Until something changes or the agent stops, at most so long. True: a change."""
        poll = select.poll()
        poll.register(self._end, select.POLLIN)
        descriptor = self._changes.descriptor()
        if changes and descriptor is not None:
            poll.register(descriptor, select.POLLIN)
        ready = [found for found, _ in poll.poll(seconds * 1000)]
        return descriptor in ready

    def _unblock(self) -> None:
        os.eventfd_write(self._end, 1)

    def _read(self) -> dict[str, bytes | str] | str | None:
        """By path: the content of each file, or why it has none. None: the folder is gone; a text: why it cannot be
        read."""
        try:
            if not stat.S_ISDIR(self._path.stat().st_mode):
                return {str(self._path): _content(self._path)}
            names = sorted(name for name in os.listdir(self._path) if not name.startswith("."))  # noqa: PTH208
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as e:
            return e.strerror or str(e)
        found = {}
        for name in names:
            try:
                found[str(self._path / name)] = _content(self._path / name)
            except FileNotFoundError:  # it went between the two
                continue
        return found

    def _report(self, errors: Mapping[str, str]) -> None:
        """Each once."""
        for path, error in errors.items():
            if self._errors.get(path) != error:
                log.warning(
                    "manifest of a static pod not used, the last good version counts",
                    extra={"file": path, "error": error},
                )
        for path in self._errors.keys() - errors.keys():
            log.info("manifest of a static pod is in order", extra={"file": path})
        self._errors = errors

    def _report_trouble(self, trouble: str) -> None:
        if trouble and trouble != self._trouble:
            log.warning("folder of static pods not read", extra={"folder": str(self._path), "error": trouble})
        self._trouble = trouble


def _content(path: Path) -> bytes | str:
    """Or why there is none. Raises FileNotFoundError. A link may lead to nothing: that is a file that is broken."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a FIFO does not wait for a writer
    except FileNotFoundError:
        if path.is_symlink():
            return "a link that leads to nothing"
        raise
    except OSError as e:
        return e.strerror or str(e)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return "is no regular file, allowed: files of one pod each, without folders"
        blocks = []
        while block := os.read(descriptor, MOST_BYTES + 1):
            blocks.append(block)
            if sum(map(len, blocks)) > MOST_BYTES:
                break
        return b"".join(blocks)
    except OSError as e:
        return e.strerror or str(e)
    finally:
        os.close(descriptor)
