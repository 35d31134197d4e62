"""Commands that take a while, run to the end with a line of progress now and then."""

import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

Progress = Callable[[str], None]
_PROGRESS_EVERY_S = 10.0


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
    """Runs to the end, output to `log`. Raises BuildError with its last lines."""
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
        last = log.read_text(errors="replace").strip().splitlines()[-3:]
        raise BuildError(f"{what} failed with code {code}: {' / '.join(last)[-400:]} (whole output: {log})")
    progress(f"{what}: done in {time.monotonic() - started:.1f} s")


def _ended(child: subprocess.Popen[bytes]) -> int | None:
    """Its exit code; None when it still runs after a while."""
    try:
        return child.wait(timeout=_PROGRESS_EVERY_S)
    except subprocess.TimeoutExpired:
        return None
