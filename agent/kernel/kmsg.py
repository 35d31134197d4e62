"""The kernel's log, /dev/kmsg: how it is opened, and which records a read of it holds."""

import os
from dataclasses import dataclass

PATH = "/dev/kmsg"
KERNEL = 0  # the facility of its own lines, which no program's have
RECORD_BYTES = 16 * 2**10  # larger than any record: the kernel refuses to read one in parts


@dataclass(frozen=True, slots=True)
class Record:
    """One line of the kernel's. `at_s`: since the boot."""

    sequence: int
    at_s: float
    facility: int
    text: str


def opened(path: str) -> int:
    """A descriptor whose reads do not wait; the first record is the oldest. Raises OSError."""
    return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)


def needs(error: OSError) -> str:
    """What the agent lacks where `opened` failed."""
    return "the device" if isinstance(error, FileNotFoundError) else "CAP_SYSLOG, and the device allowed"


def records_in(block: bytes) -> list[Record]:
    """The records of a read: `priority,sequence,microseconds,flags;text`, and lines of further keys, with a space."""
    return [record for line in block.decode(errors="replace").split("\n") if (record := _record(line)) is not None]


def _record(line: str) -> Record | None:
    prefix, semicolon, text = line.partition(";")
    words = prefix.split(",")
    try:
        priority, sequence, microseconds = map(int, words[:3])
    except ValueError:
        return None
    # The rest of a line that another processor's has come between: with what it begins, a pod may have chosen.
    if not semicolon or words[3:4] == ["c"]:
        return None
    return Record(sequence, microseconds / 1e6, priority >> 3, text)
