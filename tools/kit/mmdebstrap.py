"""Runs mmdebstrap, which makes file systems from Debian's archive: the image's packages, the hosts of ring 3, QEMU."""

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from tools.kit.commands import BuildError, Progress, run

SUITE = "bookworm"


def mmdebstrap(options: Sequence[str], target: Path, *, what: str, log: Path, progress: Progress) -> None:
    """Makes `target` from Debian's archive, or from READYGATE_DEBIAN_MIRROR. Raises BuildError."""
    # Without a mirror mmdebstrap uses the archive that belongs to the suite.
    mirror = os.environ.get("READYGATE_DEBIAN_MIRROR", "")
    try:
        argv = ["mmdebstrap", *options, SUITE, str(target), *([mirror] if mirror else [])]
        run(argv, what=what, log=log, progress=progress)
    except BuildError as e:
        where = mirror or "Debian's archive (READYGATE_DEBIAN_MIRROR names another)"
        raise BuildError(f"{e}; are mmdebstrap and debian-archive-keyring installed? Is {where} reachable?") from e


def extract(packages: Sequence[str], files: str, architecture: str, folder: Path, progress: Progress) -> None:
    """Unpacks packages and those they depend on, installs none, and copies `files`, a shell pattern, into `folder`.

    apt verifies the packages. It needs no root. Raises BuildError.
    """
    options = ["--mode=chrootless", "--variant=extract", "--format=null", "--skip=essential/unlink"]
    options += [f"--architectures={architecture}", f"--include={','.join(packages)}"]
    options += [f'--extract-hook=cp "$1"/{files} {shlex.quote(str(folder))}']
    what, log = f"packages for {architecture}", folder / "mmdebstrap.log"
    mmdebstrap(options, Path("/dev/null"), what=what, log=log, progress=progress)
