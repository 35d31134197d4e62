"""Reads and parses a configuration file of the extender that is named on the command line."""

from pathlib import Path

from cli.shared.errors import CommandError
from component.command import EXIT_USAGE
from component.settings import SettingsError
from extender import settings as extender_settings
from extender.settings import Settings


def read(path: Path) -> bytes:
    """Reads the file. Raises CommandError."""
    try:
        return path.read_bytes()
    except OSError as e:
        raise CommandError(f"cannot read {path}: {e.strerror}; name an existing file", code=EXIT_USAGE) from e


def parsed(text: bytes | str, what: str) -> Settings:
    """Parses a configuration. what: its name in an error. Raises CommandError."""
    try:
        return extender_settings.parse(text)
    except SettingsError as e:
        raise CommandError(f"{what}: {e}", code=EXIT_USAGE) from e


def settings_of(path: Path) -> Settings:
    """Reads and parses the file. Raises CommandError."""
    return parsed(read(path), str(path))
