"""`readygate lint FILE`: what the extender itself would say of its configuration file, without starting it."""

from pathlib import Path

from component.command import EXIT_USAGE, complain
from component.settings import SettingsError
from extender import settings


def run(file: Path) -> int:
    """0 if the extender would take the file, else 2 and one line on standard error."""
    try:
        settings.load(file)
    except SettingsError as e:
        return complain("readygate lint", e, EXIT_USAGE)
    print(f"{file}: ok")
    return 0
