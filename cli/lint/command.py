"""`readygate lint FILE`: checks that the extender accepts the file, and that each gate can open and close."""

import argparse
from pathlib import Path

from cli.lint.findings import Level
from cli.lint.gates import examine
from cli.shared.arguments import Commands, command
from component.command import EXIT_FAILED, EXIT_USAGE, complain
from component.settings import SettingsError
from component.text import one_line
from extender import settings

EXIT_CODES = """\
  0    the extender accepts the file, and its gates have no errors or warnings
  1    the extender accepts the file, but a gate is always open or closed, or a part of it has no effect
"""


def register(commands: Commands) -> None:
    parser = command(commands, "lint", "check a configuration file of the extender", EXIT_CODES)
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    try:
        found = examine(settings.load(arguments.file))
    except SettingsError as e:
        return complain("readygate lint", e, EXIT_USAGE)
    for one in found:
        print(one_line(f"{arguments.file}: {one.level}: {one.where}: {one.text}; {one.remedy}", 1000))
    if any(one.level is not Level.NOTE for one in found):
        return EXIT_FAILED
    print(f"{arguments.file}: ok")
    return 0
