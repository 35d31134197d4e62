"""The lines of gunicorn that we support: the one that is installed here, and the older one, put beside it once."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tools.kit.cache import cached, key_of_file
from tools.kit.programs import python_environ

LINES = ("gunicorn 27", "gunicorn 26")
LOCK = Path(__file__).with_name("gunicorn-26.lock")


@dataclass(frozen=True)
class Gunicorn:
    """environ: of a process that imports this line."""

    line: str
    environ: Mapping[str, str]

    @classmethod
    def of(cls, line: str) -> "Gunicorn":
        newer, _ = LINES
        if line == newer:
            return cls(line, {})
        folder = cached("gunicorn", key_of_file(LOCK), _install, print)
        return cls(line, {"PYTHONPATH": os.pathsep.join([str(folder), python_environ()["PYTHONPATH"]])})


def _install(folder: Path) -> None:
    command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--quiet", "--no-deps"]
    subprocess.run(
        [*command, "--require-hashes", f"--target={folder}", f"--requirement={LOCK}"], check=True, timeout=100
    )
