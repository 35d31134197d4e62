"""Ends a command together with all processes that it started: each carries a mark in its environment."""

import itertools
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tools.kit.pid import ProcessId, end_all, find_processes

COMMAND_VARIABLE = "READYGATE_TEST_COMMAND"
_count = itertools.count(1)


def name_of(process: ProcessId) -> str:
    """Returns the first 80 characters of its command line; "" when the process has ended."""
    try:
        words = Path(f"/proc/{process.pid}/cmdline").read_bytes().replace(b"\0", b" ")
    except OSError:
        return ""
    return words.decode(errors="replace")[:80].strip()


def end_marked(mark: str, *, variable: str) -> list[str]:
    """Ends every process that carries the mark in the variable of its environment. Returns their command lines."""
    wanted = f"{variable}={mark}".encode()
    ended: list[str] = []
    for _ in range(3):  # a process may start another one while it ends
        left = find_processes(lambda _, environ: wanted in environ)
        if not left:
            break
        ended += filter(None, map(name_of, left))
        end_all(left, grace_s=3.0)
    return ended


def run_whole(argv: Sequence[str | Path], *, timeout_s: float, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Runs a command like subprocess.run with captured output, and ends every process that the command started.

    Raises AssertionError when the command takes too long, or when it ended by itself and left a process.
    """
    mark = f"{os.getpid()}-{next(_count)}"
    environ = {**os.environ, COMMAND_VARIABLE: mark}
    child = subprocess.Popen(
        argv, cwd=cwd, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    left: list[str] = []
    try:
        out, err = child.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired as e:
        end_marked(mark, variable=COMMAND_VARIABLE)
        out, err = child.communicate(timeout=10)
        raise AssertionError(f"{argv[0]} has not ended after {timeout_s:.0f} s: {out[-2000:]}{err[-2000:]}") from e
    finally:
        left = end_marked(mark, variable=COMMAND_VARIABLE)
    if left:
        raise AssertionError(f"{argv[0]} left processes: {left}")
    return subprocess.CompletedProcess(argv, child.returncode, out, err)
