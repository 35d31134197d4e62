"""`readygate-status-api --config FILE`: shows what the extender of the same configuration file decides.

Exit codes: 0 stopped by SIGTERM, 130 by SIGINT, 2 usage or configuration, 1 anything else. Errors are one line.
"""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from extender.process import command

if TYPE_CHECKING:
    from extender.config.settings import Settings

PROGRAM = "readygate-status-api"
# No scheduler waits for these answers. The nice value counts if both processes share a control group. Containers do
# not: there the requested processor shares decide.
NICENESS = 10


def main(argv: list[str] | None = None) -> int:
    return command.run(
        argv,
        program=PROGRAM,
        description="Serves the status API, the dashboard, probes and metrics of the extender with this configuration.",
        load=_load,
        serve=_serve,
    )


def _load(config: Path) -> "Settings":
    from component.settings import SettingsError
    from extender.config import settings

    loaded = settings.load(config)
    if loaded.feed.socket is None:
        raise SettingsError(f"{config}: feed.socket: is empty, allowed: the path at which the extender listens")
    return loaded


def _serve(loaded: "Settings", _config: Path) -> int:
    os.nice(NICENESS)
    from extender.web import server

    return server.serve(loaded)


if __name__ == "__main__":
    sys.exit(main())
