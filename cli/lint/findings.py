"""The findings of lint. Pure."""

from enum import StrEnum
from typing import NamedTuple


class Level(StrEnum):
    """The level of a finding."""

    ERROR = "error"  # a gate is always open or always closed
    WARNING = "warning"  # a part of a gate has no effect, or an unexpected one
    NOTE = "note"  # something that the file alone leaves open


class Finding(NamedTuple):
    """One finding."""

    level: Level
    where: str  # the key in the file, as `gates[0].conditions.allOf[1]`
    text: str  # what is wrong
    remedy: str  # what to do


def error(where: str, text: str, remedy: str) -> Finding:
    return Finding(Level.ERROR, where, text, remedy)


def warning(where: str, text: str, remedy: str) -> Finding:
    return Finding(Level.WARNING, where, text, remedy)


def note(where: str, text: str, remedy: str) -> Finding:
    return Finding(Level.NOTE, where, text, remedy)
