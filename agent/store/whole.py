"""A file that is replaced as a whole."""

import contextlib
import os
from pathlib import Path


def replace_whole(path: Path, data: bytes) -> None:
    """Whole or not at all, also for a machine that loses its power. Raises OSError."""
    new = path.with_name(f"{path.name}.new")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with new.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            new.unlink()
        raise
