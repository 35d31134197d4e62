"""`readygate lint FILE`: what the extender itself would say of its configuration file, without starting it."""

import sys
from pathlib import Path

from extender import settings


def run(file: Path) -> int:
    """0 if the extender would take the file, else 2 and one line on standard error."""
    try:
        settings.load(file)
    except settings.SettingsError as e:
        print(f"readygate lint: {e}", file=sys.stderr)
        return 2
    print(f"{file}: ok")
    return 0
