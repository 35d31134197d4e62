"""The output of one container: a pipe's reading end and a log file that never grows beyond its limit."""

import contextlib
import os
from pathlib import Path

LIMIT_BYTES = 1 << 20  # of the present file; one older file of the same size is kept beside it
CHUNK_BYTES = 1 << 16


class Output:
    """Used by one thread. `fd` is non-blocking, for a selector."""

    def __init__(self, fd: int, path: Path, limit_bytes: int = LIMIT_BYTES) -> None:
        """Raises OSError if the file cannot be made."""
        self.fd = fd
        self._path = path
        self._limit_bytes = limit_bytes
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("ab", buffering=0)
        self._size_bytes = 0
        os.set_blocking(fd, False)

    def pump(self) -> bool:
        """Takes what is there, at most one chunk. False when no more will come."""
        try:
            data = os.read(self.fd, CHUNK_BYTES)
        except BlockingIOError:
            return True
        except OSError:
            return False
        if not data:
            return False
        # A full disk must not end the container: its output is lost, nothing else.
        with contextlib.suppress(OSError):
            self._append(data)
        return True

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self.fd)
        self._file.close()

    def _append(self, data: bytes) -> None:
        if self._size_bytes + len(data) > self._limit_bytes:
            # Where the new file cannot be made nothing has changed, and the next output tries again.
            new = self._path.with_name(f"{self._path.name}.new")
            following = new.open("wb", buffering=0)
            self._path.replace(self._path.with_name(f"{self._path.name}.1"))
            new.replace(self._path)
            self._file.close()
            self._file, self._size_bytes = following, 0
        self._file.write(data)
        self._size_bytes += len(data)
