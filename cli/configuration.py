"""A configuration file of the extender that is named on the command line."""

from pathlib import Path

from cli.errors import CommandError
from component.command import EXIT_USAGE
from component.settings import SettingsError
from extender.config import settings as extender_settings
from extender.config.settings import Settings


def read(path: Path) -> bytes:
    """Raises CommandError."""
    try:
        return path.read_bytes()
    except OSError as e:
        raise CommandError(f"cannot read {path}: {e.strerror}; name a file that is there", code=EXIT_USAGE) from e


def parsed(text: bytes | str, what: str) -> Settings:
    """what: the text's name in an error. Raises CommandError."""
    try:
        return extender_settings.parse(text)
    except SettingsError as e:
        raise CommandError(f"{what}: {e}", code=EXIT_USAGE) from e


def settings_of(path: Path) -> Settings:
    """Raises CommandError."""
    return parsed(read(path), str(path))
