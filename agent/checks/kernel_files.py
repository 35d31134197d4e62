"""Small files in which the kernel shows its state: their text, or what keeps us from reading them, for a finding.

Whoever cannot look says so: the finding is unknown then, and names the right or the part of the node that is missing.
"""

import errno
import os

LIMIT_BYTES = 2**20
PIECE_BYTES = 2**16  # Python takes memory for all that it is asked to read
NEARLY_FULL_PERCENT = 95  # of the table of connections: below that no full table drops anything
_MISSING = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENODEV, errno.ENXIO, errno.EOPNOTSUPP)


class CannotLookError(Exception):
    """One line: what could not be read, and what it takes to read it."""


class NotThereError(CannotLookError):
    """This machine has none: nothing that the node lacks by its nature is a fault of it."""


def text_of(path: str, needs: str, limit_bytes: int = LIMIT_BYTES) -> str:
    """The whole file. `needs`: what the agent must be given to see it, or what the kernel must have.

    Raises CannotLookError, also for a file beyond the limit; of its kind NotThereError where there is no such file.
    Never waits for a writer, as opening a named pipe would.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            found = bytearray()
            while len(found) <= limit_bytes and (piece := file.read(PIECE_BYTES)):
                found += piece
    except OSError as e:
        if e.errno in _MISSING:
            raise NotThereError(f"{path} is not there: needs {needs}") from e
        raise CannotLookError(f"{path} cannot be read ({e.strerror}): needs {needs}") from e
    if len(found) > limit_bytes:
        raise CannotLookError(f"{path} is larger than {limit_bytes >> 20} MiB: needs to be what the kernel shows")
    return found.decode(errors="replace")


def number_of(path: str, needs: str) -> int:
    """The file as one whole number. Raises CannotLookError."""
    text = text_of(path, needs).strip()
    try:
        return int(text)
    except ValueError as e:
        raise CannotLookError(f"{path} holds no number: needs to be what the kernel shows") from e


def tracked_connections(proc: str, needs: str) -> tuple[int, int]:
    """How many are tracked in the agent's network namespace, and how many may be: 0 for no limit.

    Raises CannotLookError.
    """
    folder = f"{proc}/sys/net/netfilter"
    return number_of(f"{folder}/nf_conntrack_count", needs), number_of(f"{folder}/nf_conntrack_max", needs)
