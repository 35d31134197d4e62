"""`readygate-people --config FILE`: shows what the extender of the same configuration file decides.

Exit codes: 0 stopped by SIGTERM, 130 by SIGINT, 2 usage or configuration, 1 anything else. Errors are one line.
"""

import argparse
import os
import signal
import sys
from pathlib import Path

from component.command import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE, complain

PROGRAM = "readygate-people"
# Nobody waits for these answers as a scheduler does. It tells where both share a control group; containers share none,
# there the processor shares that they request decide.
NICENESS = 10


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Shows people, probes and Prometheus what the extender of the same configuration decides.",
        epilog="exit codes: 0 stopped by SIGTERM, 130 by SIGINT, 2 usage or configuration, 1 run-time failure",
    )
    parser.add_argument("--config", type=Path, required=True, metavar="FILE", help="the extender's YAML configuration")
    parser.add_argument("--check", action="store_true", help="check the configuration file and exit")
    arguments = parser.parse_args(argv)
    # Until gunicorn has its own handlers: a stop during the imports is a clean stop too. Not by an exception: in the
    # middle of an import it may become another one (3.11 makes a RuntimeError of what comes out of a __set_name__).
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    signal.signal(signal.SIGINT, lambda *_: os._exit(EXIT_INTERRUPTED))
    return _run(arguments.config, check_only=arguments.check)


def _run(config: Path, *, check_only: bool) -> int:
    from component import logs
    from component.settings import SettingsError
    from extender import settings

    try:
        loaded = settings.load(config)
        if loaded.feed.socket is None:
            raise SettingsError(f"{config}: feed.socket: is empty, allowed: the path that the extender is to listen at")
    except SettingsError as e:
        return complain(PROGRAM, e, EXIT_USAGE)
    if check_only:
        print(f"{config}: ok")
        return 0
    os.nice(NICENESS)
    logs.set_up(loaded.log.level)

    # Late: Flask and gunicorn take a third of a second, and a bad file is reported at once.
    from extender.foreground import StartError
    from extender.people import server

    try:
        return server.serve(loaded)
    except StartError as e:
        return complain(PROGRAM, e, EXIT_USAGE if e.usage else EXIT_FAILED)


if __name__ == "__main__":
    sys.exit(main())
