"""`readygate-extender --config FILE`: the configuration is checked first, then the server runs in the foreground.

Exit codes: 0 stopped by SIGTERM, 130 by SIGINT, 2 usage or configuration, 1 anything else. Errors are one line.
"""

import functools
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from extender.process import command

if TYPE_CHECKING:
    from extender.config.settings import Settings

PROGRAM = "readygate-extender"


def main(argv: list[str] | None = None) -> int:
    return command.run(
        argv,
        program=PROGRAM,
        description="Answers kube-scheduler which nodes may take a pod, by the health pods of the nodes.",
        load=_load,
        serve=_serve,
        rehearse=_rehearse,
    )


def _load(config: Path) -> "Settings":
    from extender.config import settings

    return settings.load(config)


def _serve(loaded: "Settings", config: Path) -> int:
    from extender.process import server

    return server.serve(loaded, functools.partial(_load, config))


def _rehearse(loaded: "Settings") -> str:
    from extender.process import dry_start

    return dry_start.rehearse(loaded)


if __name__ == "__main__":
    sys.exit(main())
