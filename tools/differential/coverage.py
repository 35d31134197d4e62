"""What of the kubelet's code histories reach: `python -m tools.differential --coverage FOLDER`, by Go's own counts.

Named are functions that are never run, of files of which others are. Not all are a gap: what the agent does not model
is a row of docs/kubelet-parity.md.
"""

import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tools.testbed.shared import binaries

_LINE = re.compile(r"(?P<file>\S+):(?P<line>\d+):\s+(?P<name>\S+)\s+(?P<percent>[0-9.]+)%")


@dataclass(frozen=True)
class Function:
    """`percent`: of its statements, how many were run."""

    file: str
    line: int
    name: str
    percent: float


def functions_of(told: str) -> list[Function]:
    """As `go tool cover -func` tells them."""
    found = (_LINE.fullmatch(line.strip()) for line in told.splitlines())
    return [Function(m["file"], int(m["line"]), m["name"], float(m["percent"])) for m in found if m is not None]


def unreached(functions: Iterable[Function]) -> dict[str, list[Function]]:
    """By file, those that were never run; a file of which nothing was is not compared at all. Our own are left out."""
    by_file: dict[str, list[Function]] = defaultdict(list)
    for function in functions:
        by_file[function.file].append(function)
    return {
        file: missing
        for file, of in by_file.items()
        if any(f.percent for f in of)
        and (missing := [f for f in of if not f.percent])
        and not any(f.name.startswith("Answer") for f in of)
    }


def report(folder: Path, source: Path) -> str:
    """What drivers have left in the folder, for people. `source`: what they were built from. Raises
    binaries.BinariesMissing, OSError, subprocess.CalledProcessError."""
    profile = folder / "profile.txt"
    _go("covdata", "textfmt", f"-i={folder}", f"-o={profile}", within=source)
    missing = unreached(functions_of(_go("cover", f"-func={profile}", within=source)))
    lines = [f"{file}: {', '.join(f.name for f in of)}" for file, of in sorted(missing.items())]
    return "\n".join(["functions of the kubelet that no history has reached:", *lines, f"statements: {profile}"])


def _go(tool: str, *arguments: str, within: Path) -> str:
    argv = [str(binaries.go(print)), "tool", tool, *arguments]
    environ = binaries.go_environ()
    return subprocess.run(argv, cwd=within, env=environ, capture_output=True, text=True, check=True).stdout
