"""The packages of Debian that the image stands on, for any architecture: fetched by mmdebstrap, held against a record.

Nothing of them is run or installed here, so it needs no root and no machine of that architecture. `debian.lock` records
name, version and hash of each. Debian's archive holds the newest version only: when it has moved on, the image is built
with what is there, which is told, or refused where the recorded ones are demanded.

`python -m images.debian` renews the record (`make lock-image`).
"""

import shutil
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from images import deb
from images.cache import cached, key_of
from images.commands import BuildError, Progress, command
from images.deb import Deb
from images.rootfs import SUITE, mmdebstrap

ARCHITECTURES = ("amd64", "arm64")
PACKAGES = (
    "base-files",
    "busybox",
    "ca-certificates",
    "gcc-12-base",
    "libbz2-1.0",
    "libc6",
    "libexpat1",
    "libffi8",
    "libgcc-s1",
    "liblzma5",
    "libpython3.11-minimal",
    "libpython3.11-stdlib",
    "libssl3",
    "libstdc++6",
    "libuuid1",
    "python3.11-minimal",
    "zlib1g",
)
LOCK = Path(__file__).with_name("debian.lock")
_HEAD = "# Debian packages of the image: architecture, name, version, hash. Renewed by: make lock-image. Recorded: "


def packages(architecture: str, progress: Progress, *, recorded: bool = False) -> list[Deb]:
    """All of PACKAGES, by name. recorded: raises BuildError where they are not those of the record."""
    found = _fetched(architecture, progress)
    if moved := differences(_rows(architecture, found), LOCK.read_text()):
        text = f"Debian's archive has other packages than images/debian.lock records ({'; '.join(moved)})"
        if recorded:
            raise BuildError(f"{text}: make lock-image, or name an archive of its day by READYGATE_DEBIAN_MIRROR")
        progress(f"{text}: the image is made of today's")
    return found


def recorded_at_s() -> int:
    """When the record was made, in seconds since the epoch: the time of all files in the image."""
    day = LOCK.read_text().partition("\n")[0].removeprefix(_HEAD)
    return int(datetime.strptime(day, "%Y-%m-%d").replace(tzinfo=UTC).timestamp())


def differences(rows: Iterable[str], record: str) -> list[str]:
    """How the rows differ from those of a record that are of the same architecture: `NAME OLD -> NEW`, sorted."""
    new = {_name(row): row.split() for row in rows}
    architectures = {row[0] for row in new.values()}
    old = {_name(line): line.split() for line in record.splitlines() if line.partition(" ")[0] in architectures}
    nothing = ["", "", "none", ""]
    return [
        f"{name} {old.get(name, nothing)[2]} -> {new.get(name, nothing)[2]}"
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    ]


def _name(row: str) -> str:
    return row.split()[1]


def _rows(architecture: str, found: Sequence[Deb]) -> list[str]:
    return [f"{architecture} {one.name} {one.version} sha256:{one.sha256}" for one in found]


def _fetched(architecture: str, progress: Progress) -> list[Deb]:
    """Fetched once for each state of the record."""
    record = [line for line in LOCK.read_text().splitlines() if line.startswith(f"{architecture} ")]

    def build(folder: Path) -> None:
        progress(f"fetching {len(PACKAGES)} packages of Debian {SUITE} for {architecture}, once")
        _fetch(architecture, folder, progress)

    folder = cached("image-debs", key_of([SUITE, architecture, *PACKAGES, *record]), build, progress)
    return _read(folder)


def _read(folder: Path) -> list[Deb]:
    found = {}
    for path in sorted(folder.glob("*.deb")):
        try:
            one = deb.read(path.read_bytes())
        except deb.DebError as e:
            raise BuildError(f"{path}: {e}; remove the folder and try again") from e
        found[one.name] = one
    if lacking := set(PACKAGES) - set(found):
        raise BuildError(f"{folder} lacks {', '.join(sorted(lacking))}: remove the folder and try again")
    return [found[name] for name in PACKAGES]


def _fetch(architecture: str, folder: Path, progress: Progress) -> None:
    """mmdebstrap resolves, fetches and checks signatures; what else it fetches and unpacks is thrown away."""
    root = folder / "root"
    mmdebstrap(
        [
            "--mode=chrootless",
            "--variant=extract",
            "--skip=essential/unlink,cleanup",
            f"--architectures={architecture}",
            f"--include={','.join(PACKAGES)}",
        ],
        root,
        what=f"packages for {architecture}",
        log=folder / "mmdebstrap.log",
        progress=progress,
    )
    for path in (root / "var/cache/apt/archives").glob("*.deb"):
        if path.name.partition("_")[0] in PACKAGES:
            path.rename(folder / path.name)
    _remove(root)


def _remove(root: Path) -> None:
    # Packages have folders that their owner may not write, and we may not be root.
    for path in [root, *root.rglob("*")]:
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o700)
    shutil.rmtree(root)


def main() -> int:
    """Renews the record by what Debian's archive has now."""
    try:
        rows = [
            row
            for architecture in ARCHITECTURES
            for row in _rows(architecture, _now(architecture, lambda text: print(f"image: {text}", flush=True)))
        ]
    except BuildError as e:
        print(f"image: {e}", file=sys.stderr)
        return 1
    LOCK.write_text("\n".join([f"{_HEAD}{datetime.now(UTC):%Y-%m-%d}", *rows, ""]))
    return 0


def _now(architecture: str, progress: Progress) -> list[Deb]:
    with TemporaryDirectory() as folder:
        _fetch(architecture, Path(folder), progress)
        return _read(Path(folder))


if __name__ == "__main__":
    command(main)
