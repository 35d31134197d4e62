"""The common part of both commands of the extender: arguments, the configuration file, signals before they serve.

Imports little: before the handlers are set, a signal does not end the process cleanly.
"""

import argparse
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from component.command import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE, complain, product_version

if TYPE_CHECKING:
    from extender.config.settings import Settings

EXIT_CODES = "exit codes: 0 stopped by SIGTERM, 130 by SIGINT, 2 usage or configuration, 1 run-time failure"


def run(
    argv: list[str] | None,
    *,
    program: str,
    description: str,
    load: Callable[[Path], "Settings"],
    serve: Callable[["Settings", Path], int],
    rehearse: Callable[["Settings"], str] | None = None,
) -> int:
    """Returns the exit code. load: raises SettingsError. serve: serves in the foreground; may raise
    foreground.StartError.

    rehearse: does the same without serving, and returns its result in one line; may raise StartError.
    """
    parser = argparse.ArgumentParser(prog=program, description=description, epilog=EXIT_CODES)
    parser.add_argument("--version", action="version", version=f"%(prog)s {product_version()}")
    parser.add_argument("--config", type=Path, required=True, metavar="FILE", help="the extender's YAML configuration")
    parser.add_argument("--check", action="store_true", help="check the configuration file and exit")
    if rehearse is not None:
        text = "check the configuration file, read what decisions need, write nothing, serve no client and exit"
        parser.add_argument("--rehearse", action="store_true", help=text)
    arguments = parser.parse_args(argv)
    # Handlers until gunicorn sets its own: a stop during the imports is a clean stop, too. They raise no exception,
    # because in the middle of an import it may become another one (Python 3.11 turns errors in __set_name__ into
    # RuntimeError).
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    signal.signal(signal.SIGINT, lambda *_: os._exit(EXIT_INTERRUPTED))

    from component import logs
    from component.settings import SettingsError

    try:
        loaded = load(arguments.config)
    except SettingsError as e:
        return complain(program, e, EXIT_USAGE)
    if arguments.check:
        print(f"{arguments.config}: ok")
        return 0
    logs.set_up(loaded.log.level)

    # Imported late: the server takes a third of a second to import, and a bad file is reported at once.
    from extender.process.foreground import StartError

    try:
        if rehearse is not None and arguments.rehearse:
            print(f"{arguments.config}: {rehearse(loaded)}")
            return 0
        return serve(loaded, arguments.config)
    except StartError as e:
        return complain(program, e, EXIT_USAGE if e.usage else EXIT_FAILED)
