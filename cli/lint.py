"""`readygate lint FILE`: what the extender itself would say of its configuration file, without starting it."""

import argparse
from pathlib import Path

from cli.arguments import Commands, command
from component.command import EXIT_USAGE, complain
from component.settings import SettingsError
from extender import settings

EXIT_CODES = """\
  0    the extender would take the file
"""


def register(commands: Commands) -> None:
    parser = command(commands, "lint", "check a configuration file of the extender", EXIT_CODES)
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    try:
        settings.load(arguments.file)
    except SettingsError as e:
        return complain("readygate lint", e, EXIT_USAGE)
    print(f"{arguments.file}: ok")
    return 0
