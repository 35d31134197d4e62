"""What a program meets that has no rights. The kernel asks root nothing: as root, it runs without what root has so."""

import os
from collections.abc import Sequence

OVERRIDES = ("dac_override", "dac_read_search", "fowner")


def powerless(argv: Sequence[str]) -> list[str]:
    """The command line that runs this one so that files, folders and sockets refuse whom their mode leaves out."""
    if os.geteuid():
        return list(argv)
    return ["setpriv", f"--bounding-set={','.join(f'-{name}' for name in OVERRIDES)}", "--", *argv]
