"""Kernel limits of this machine that hosts would run into, raised while any set of them is up.

A kubelet or a systemd that gets no inotify instance fails with "too many open files", long after the start. Which sets
are up, and what the limits were before the first of them, is in a file beside the run folders.
"""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

_SYSCTL = Path("/proc/sys")
# Three hosts take about 50 instances; many distributions allow 128 per user.
_NEEDED = {"fs/inotify/max_user_instances": 1024, "fs/inotify/max_user_watches": 262144}


class Limits:
    """folder: of the run folders."""

    def __init__(self, folder: Path, sysctl: Path = _SYSCTL) -> None:
        self._folder = folder
        self._file, self._new = folder / "limits.json", folder / "limits.new"
        self._sysctl = sysctl

    def raise_for(self, name: str) -> None:
        """The set of hosts of this name starts."""
        with self._alone():
            before, names = self._read()
            self._write({**self._too_low(), **before}, {*names, name})
            for limit in self._too_low():
                (self._sysctl / limit).write_text(str(_NEEDED[limit]))

    def put_back_for(self, name: str) -> None:
        """It has ended, in whatever way; the last one puts back what was, unless somebody has set another value."""
        with self._alone():
            before, names = self._read()
            if names - {name}:
                self._write(before, names - {name})
                return
            for limit, value in before.items():
                with suppress(OSError):
                    if int((self._sysctl / limit).read_text()) == _NEEDED.get(limit):
                        (self._sysctl / limit).write_text(str(value))
            for file in (self._file, self._new):  # the latter of one that was ended while it wrote
                file.unlink(missing_ok=True)

    def _too_low(self) -> dict[str, int]:
        """Path below /proc/sys -> its present value, of each limit that must be raised."""
        present = {limit: int((self._sysctl / limit).read_text()) for limit in _NEEDED}
        return {limit: value for limit, value in present.items() if value < _NEEDED[limit]}

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Of all processes; the folder itself is the lock, so nothing is left of it."""
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)

    def _read(self) -> tuple[dict[str, int], set[str]]:
        """The values before, and the sets that are up."""
        try:
            found = json.loads(self._file.read_text())
            return found["before"], set(found["sets"])
        except (OSError, ValueError, TypeError, KeyError):
            return {}, set()

    def _write(self, before: Mapping[str, int], names: set[str]) -> None:
        self._new.write_text(json.dumps({"before": before, "sets": sorted(names)}))
        self._new.replace(self._file)
