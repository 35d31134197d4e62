"""Commands that take a while, run to the end with a line of progress now and then."""

import re
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

Progress = Callable[[str], None]
_PROGRESS_EVERY_S = 10.0
# In the words of pip, Go and apt.
_UNREACHABLE = re.compile(
    r"failed to establish a new connection|name resolution|no such host|network is unreachable|i/o timeout"
    r"|proxyerror|max retries exceeded|dial tcp .*connection refused|could not resolve",
    re.IGNORECASE,
)


class BuildError(Exception):
    """Something cannot be made; str = cause and remedy, one line."""


def run(
    argv: list[str],
    *,
    what: str,
    log: Path,
    progress: Progress,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> None:
    """Runs to the end, output to `log`. Raises BuildError with the cause."""
    started = time.monotonic()
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        try:
            child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environ, cwd=cwd)
        except OSError as e:
            raise BuildError(f"{what}: {argv[0]} cannot be run ({e.strerror}): is its package installed?") from e
        try:
            while (code := _ended(child)) is None:
                progress(f"{what}: {time.monotonic() - started:.0f} s")
        finally:
            if child.poll() is None:
                child.terminate()
                child.wait()
    if code != 0:
        why = cause(log.read_text(errors="replace"))
        raise BuildError(f"{what} failed with code {code}: {why} (whole output: {log})")
    progress(f"{what}: done in {time.monotonic() - started:.1f} s")


def cause(output: str) -> str:
    """Why a command failed, in one line: what the machine lacks, else its last lines."""
    if re.search("no space left on device", output, re.IGNORECASE):
        return "no space left on device"
    if _UNREACHABLE.search(output):
        return "a download failed: check the network, or the proxy"
    return " / ".join(output.strip().splitlines()[-3:])[-400:]


def _ended(child: subprocess.Popen[bytes]) -> int | None:
    """Its exit code; None when it still runs after a while."""
    try:
        return child.wait(timeout=_PROGRESS_EVERY_S)
    except subprocess.TimeoutExpired:
        return None
