"""One thing that lint reports of a configuration. Pure."""

from enum import StrEnum
from typing import NamedTuple


class Level(StrEnum):
    """ERROR: a gate is always open or always closed. WARNING: a part of a gate has no effect, or another one than it
    seems. NOTE: what the file alone cannot tell."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Finding(NamedTuple):
    """where: the key of the file, as `gates[0].conditions.allOf[1]`. text: what is wrong. remedy: what to do."""

    level: Level
    where: str
    text: str
    remedy: str


def error(where: str, text: str, remedy: str) -> Finding:
    return Finding(Level.ERROR, where, text, remedy)


def warning(where: str, text: str, remedy: str) -> Finding:
    return Finding(Level.WARNING, where, text, remedy)


def note(where: str, text: str, remedy: str) -> Finding:
    return Finding(Level.NOTE, where, text, remedy)
