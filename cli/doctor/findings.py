"""What a finding is. Pure."""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """ERROR: readygate does not do its work, or could do harm. WARNING: it will under some circumstances.

    UNKNOWN: it could not be looked at. NOTE: worth to know; nothing need be done.
    """

    ERROR = "error"
    WARNING = "warning"
    UNKNOWN = "unknown"
    NOTE = "note"


@dataclass(frozen=True)
class Finding:
    """name: a word for scripts, constant. about: which object. evidence: what was read. remedy: what to do."""

    severity: Severity
    name: str
    about: str
    evidence: str
    remedy: str


def error(name: str, about: str, evidence: str, remedy: str) -> Finding:
    return Finding(Severity.ERROR, name, about, evidence, remedy)


def warning(name: str, about: str, evidence: str, remedy: str) -> Finding:
    return Finding(Severity.WARNING, name, about, evidence, remedy)


def unknown(name: str, about: str, evidence: str, remedy: str) -> Finding:
    return Finding(Severity.UNKNOWN, name, about, evidence, remedy)


def note(name: str, about: str, evidence: str, remedy: str = "") -> Finding:
    return Finding(Severity.NOTE, name, about, evidence, remedy)
