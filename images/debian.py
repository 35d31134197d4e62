"""Fetches the Debian packages of the image, for any architecture, and compares them with `debian.lock`.

Debian's archive keeps only the newest version of a package. If it is newer than the recorded one, the build reports and
uses it, or refuses. `python -m images.debian` (= `make lock-image`) records what the archive has now.
"""

import hashlib
import sys
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import unquote

from tools.kit.cache import cached, key_of
from tools.kit.commands import BuildError, Progress, command
from tools.kit.mmdebstrap import SUITE, extract

ARCHITECTURES = ("amd64", "arm64")
LOCK = Path(__file__).with_name("debian.lock")
PACKAGES = [line.split()[1] for line in LOCK.read_text().splitlines() if line.startswith(ARCHITECTURES[0])]
_HEAD = "# Debian packages of the image: architecture, name, version, hash. Renewed by: make lock-image. Recorded: "


def packages(architecture: str, progress: Progress, *, recorded: bool = False) -> dict[str, Path]:
    """The package files by their rows in debian.lock, sorted. Raises BuildError.

    recorded: also raises BuildError if the rows differ from those of debian.lock.
    """
    record = [line for line in LOCK.read_text().splitlines() if line.startswith(f"{architecture} ")]

    def build(folder: Path) -> None:
        progress(f"fetching {len(PACKAGES)} packages of Debian {SUITE} for {architecture}, once")
        extract(PACKAGES, "var/cache/apt/archives/*.deb", architecture, folder, progress)

    found = rows(architecture, cached("image-debs", key_of([SUITE, architecture, *PACKAGES, *record]), build, progress))
    if changed := differences(found, record):
        text = f"Debian's archive has other packages than images/debian.lock records ({changed})"
        if recorded:
            raise BuildError(f"{text}: make lock-image, or name an archive of its day by READYGATE_DEBIAN_MIRROR")
        progress(f"{text}: the image is made of today's")
    return found


def recorded_at_s() -> int:
    """When debian.lock was made, in seconds since the epoch: the modification time of every file in the image."""
    day = LOCK.read_text().partition("\n")[0].removeprefix(_HEAD)
    return int(datetime.strptime(day, "%Y-%m-%d").replace(tzinfo=UTC).timestamp())


def differences(found: Collection[str], record: Collection[str]) -> str:
    """`NAME OLD -> NEW, ...` for the rows of one architecture that differ; "" if none does."""
    old, new = ({row.split()[1]: row.split()[2:] for row in rows} for rows in (record, found))
    changed = [name for name in sorted(old | new) if old.get(name) != new.get(name)]
    return ", ".join(f"{name} {old.get(name, ['none'])[0]} -> {new.get(name, ['none'])[0]}" for name in changed)


def rows(architecture: str, folder: Path) -> dict[str, Path]:
    """The files of PACKAGES in a folder, by their rows for debian.lock. Raises BuildError if a package is missing."""
    files = {path.name.partition("_")[0]: path for path in folder.glob("*.deb")}
    if lacking := set(PACKAGES) - set(files):
        raise BuildError(f"{folder} lacks {', '.join(sorted(lacking))}: remove the folder and try again")
    found = {}
    for name in PACKAGES:
        version, sha256 = unquote(files[name].name.split("_")[1]), hashlib.sha256(files[name].read_bytes()).hexdigest()
        found[f"{architecture} {name} {version} sha256:{sha256}"] = files[name]
    return found


def main() -> int:
    """Records what Debian's archive has now."""
    lines = [f"{_HEAD}{datetime.now(UTC):%Y-%m-%d}"]
    try:
        for architecture in ARCHITECTURES:
            with TemporaryDirectory() as name:
                extract(PACKAGES, "var/cache/apt/archives/*.deb", architecture, Path(name), print)
                lines += rows(architecture, Path(name))
    except BuildError as e:
        print(f"image: {e}", file=sys.stderr)
        return 1
    LOCK.write_text("\n".join([*lines, ""]))
    return 0


if __name__ == "__main__":
    command(main)
