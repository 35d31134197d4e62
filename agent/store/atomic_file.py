"""A file that is replaced as a whole."""

import contextlib
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from agent.store.check_states_format import StateInvalid

log = logging.getLogger(__name__)

LIMIT_BYTES = 16 * 2**20  # of what is read: a hundred times what 250 pods of ten containers take

T = TypeVar("T")


class AtomicFile:
    """To be called by one thread at a time. what: is in it, as the log has it, with a verb: "results are"."""

    def __init__(self, path: Path, what: str) -> None:
        self._path = path
        self._what = what
        self._failed = False

    def read(self, decode: Callable[[bytes], T]) -> T | None:
        """None where there is none, or with one line none that can be used. decode: raises StateInvalid, or what
        msgspec raises."""
        try:
            with self._path.open("rb") as file:
                return decode(file.read(LIMIT_BYTES))
        except FileNotFoundError:
            return None
        except (OSError, StateInvalid) as e:
            cause = str(e)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as e:
            cause = f"does not parse: {e}"
        log.warning("%s not known", self._what, extra={"path": str(self._path), "error": cause})
        return None

    def write(self, data: bytes) -> bool:
        """Whether it could be written; if not, one line until it can again."""
        try:
            replace_whole(self._path, data)
        except OSError as e:
            if not self._failed:
                log.warning("%s not kept", self._what, extra={"path": str(self._path), "error": str(e)})
            self._failed = True
            return False
        self._failed = False
        return True


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
