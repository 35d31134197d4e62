"""A wall clock that a test steps, for a process: `sitecustomize.py` of this folder, which Python imports at its start.

Monotonic time goes on as ever, as on a machine whose clock is set.

Guarantees: a process has the true time until it is told otherwise; it is told by a file that is replaced as a whole, so
it never reads half of a number. Where the variable is not set, Python starts as it ever does.

Tests of ring 1 import it; it imports `programs` of this package and nothing of the product.
"""

import os
from pathlib import Path

from tools.kit.programs import python_environ

VARIABLE = "READYGATE_TEST_CLOCK"


class Stepped:
    """The clock of one process. environ: what the process is to be started with."""

    def __init__(self, file: Path) -> None:
        self._file = file
        path = os.pathsep.join([str(Path(__file__).parent), python_environ()["PYTHONPATH"]])
        self.environ = {VARIABLE: str(file), "PYTHONPATH": path}
        self.ahead(0.0)

    def ahead(self, seconds: float) -> None:
        """By so much it is wrong from now on."""
        written = self._file.with_suffix(".new")
        written.write_text(str(seconds))
        written.replace(self._file)
