"""The findings of doctor. Pure."""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """The severity of a finding, the worst first."""

    ERROR = "error"  # readygate does not work, or could do harm
    WARNING = "warning"  # it may not work, or could do harm, under some conditions
    UNKNOWN = "unknown"  # something could not be checked
    NOTE = "note"  # good to know, no action needed


@dataclass(frozen=True)
class Finding:
    """One finding."""

    severity: Severity
    name: str  # constant, for scripts
    about: str  # the object
    evidence: str  # what was read
    remedy: str  # what to do


def error(name: str, about: str, evidence: str, remedy: str) -> Finding:
    return Finding(Severity.ERROR, name, about, evidence, remedy)


def warning(name: str, about: str, evidence: str, remedy: str) -> Finding:
    return Finding(Severity.WARNING, name, about, evidence, remedy)


def unknown(name: str, about: str, evidence: str, remedy: str) -> Finding:
    return Finding(Severity.UNKNOWN, name, about, evidence, remedy)


def note(name: str, about: str, evidence: str, remedy: str = "") -> Finding:
    return Finding(Severity.NOTE, name, about, evidence, remedy)
