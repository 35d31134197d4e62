"""Runs long commands with progress lines, and ends a program cleanly on Ctrl-C, SIGTERM and SIGHUP."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

Progress = Callable[[str], None]
ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
EXIT_INTERRUPTED = 130
_PROGRESS_EVERY_S = 10.0
_GRACE_S = 5.0
# Messages of pip, Go and apt.
_UNREACHABLE = re.compile(
    r"failed to establish a new connection|name resolution|no such host|network is unreachable|i/o timeout"
    r"|proxyerror|max retries exceeded|dial tcp .*connection refused|could not resolve",
    re.IGNORECASE,
)


class BuildError(Exception):
    """A build failed; str = cause and remedy, one line."""


def command(main: Callable[[], int]) -> NoReturn:
    """Exits with the code of `main`. A signal of ENDINGS interrupts `main`, which cleans up, and prints one line.

    Further signals are ignored, so that they do not interrupt the cleanup.
    """
    for number in ENDINGS:
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup
            signal.signal(number, _interrupt)
    try:
        code = main()
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
        with suppress(OSError):  # its terminal may be closed
            print("interrupted", file=sys.stderr)
    sys.exit(code)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    for number in ENDINGS:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def run(
    argv: list[str],
    *,
    what: str,
    log: Path,
    progress: Progress,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> None:
    """Runs a command with output to `log`. Raises BuildError. If interrupted, ends the command and its children."""
    started = time.monotonic()
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        try:
            child = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environ, cwd=cwd, process_group=0
            )
        except OSError as e:
            raise BuildError(f"{what}: {argv[0]} cannot be run ({e.strerror}): is its package installed?") from e
        try:
            while (code := _ended(child)) is None:
                progress(f"{what}: {time.monotonic() - started:.0f} s")
        finally:
            if child.poll() is None:
                _end(child)
    if code != 0:
        why = cause(log.read_text(errors="replace"))
        raise BuildError(f"{what} failed with code {code}: {why} (whole output: {log})")
    progress(f"{what}: done in {time.monotonic() - started:.1f} s")


def cause(output: str) -> str:
    """Why a command failed, in one line: a full disk, a failed download, or the last lines of its output."""
    if re.search("no space left on device", output, re.IGNORECASE):
        return "no space left on device"
    if _UNREACHABLE.search(output):
        return "a download failed: check the network, or the proxy"
    return " / ".join(output.strip().splitlines()[-3:])[-400:]


def _end(child: subprocess.Popen[bytes]) -> None:
    """Ends the process group: compilers and package managers start other processes."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(child.pid, number)
        with suppress(subprocess.TimeoutExpired):
            child.wait(_GRACE_S)


def _ended(child: subprocess.Popen[bytes]) -> int | None:
    """The exit code; None if the child still runs after _PROGRESS_EVERY_S seconds."""
    try:
        return child.wait(timeout=_PROGRESS_EVERY_S)
    except subprocess.TimeoutExpired:
        return None
