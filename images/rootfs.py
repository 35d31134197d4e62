"""Base file systems, made by mmdebstrap from Debian's archive and cached by the list of what is in them."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from images.cache import cached, key_of
from images.commands import BuildError, Progress, run

SUITE = "bookworm"
_SETTINGS = (
    "--variant=minbase",
    '--aptopt=Acquire::Languages "none"',
    "--dpkgopt=path-exclude=/usr/share/doc/*",
    "--dpkgopt=path-exclude=/usr/share/info/*",
    "--dpkgopt=path-exclude=/usr/share/locale/*",
    "--dpkgopt=path-exclude=/usr/share/man/*",
)


def debian(kind: str, packages: Iterable[str], progress: Progress) -> Path:
    """Root folder of a minimal Debian with these packages. Shared by all who ask for it: never written to."""
    settings = [*_SETTINGS, f"--include={','.join(packages)}"]

    def build(folder: Path) -> None:
        progress(f"making the {kind} file system (Debian {SUITE}), once")
        log = folder / "mmdebstrap.log"
        mmdebstrap(["--mode=root", *settings], folder / "root", what=f"mmdebstrap {kind}", log=log, progress=progress)

    return cached(kind, key_of([SUITE, *settings]), build, progress) / "root"


def mmdebstrap(settings: Sequence[str], root: Path, *, what: str, log: Path, progress: Progress) -> None:
    """Fills `root` from Debian's archive, or from READYGATE_DEBIAN_MIRROR. Raises BuildError."""
    # Without one mmdebstrap takes the archive that belongs to the suite.
    mirror = os.environ.get("READYGATE_DEBIAN_MIRROR", "")
    try:
        command = ["mmdebstrap", *settings, SUITE, str(root), *([mirror] if mirror else [])]
        run(command, what=what, log=log, progress=progress)
    except BuildError as e:
        where = mirror or "Debian's archive"
        raise BuildError(f"{e}; is {where} reachable? READYGATE_DEBIAN_MIRROR names another") from e
