"""The container image of readygate, made file by file: no root, no container tool, the same bytes each time.

`python -m images.build` (= `make image`) puts an archive for each architecture under build/, which `ctr images import`,
`docker load` and `skopeo copy oci-archive:` read, and beside it what is in it (SBOM). images/Containerfile uses
`--root`, which leaves the files of each layer in a folder.
"""

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from images import base, bytecode, containerfile, debian, oci, packages, sbom, wheels
from images.cache import cached, forget_older, key_of
from images.commands import BuildError, Progress, command
from images.sbom import Distribution
from images.tree import Tree, file, to_tar
from images.wheels import ROOT, source_files

CONTAINERFILE = ROOT / "images" / "Containerfile"
NAME = "localhost/readygate"
TAG = f"{NAME}:dev"
ARCHIVE, BILL = "readygate.tar", "readygate.cdx.json"
INSIDE = f"usr/local/share/readygate/{BILL}"
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
_KEPT = 6  # each change of the code makes one


@dataclass(frozen=True)
class Parts:
    """The layers as tars, by their names, lowest first; and the bill of materials, which is in the last one too."""

    tars: dict[str, bytes]
    bill: bytes


def native() -> str:
    """This machine's architecture, in Debian's words. Raises BuildError."""
    if (machine := platform.machine()) not in _MACHINES:
        raise BuildError(f"there is no image for {machine}: it can be built on and for {' and '.join(_MACHINES)}")
    return _MACHINES[machine]


def readygate_image(progress: Progress, architecture: str = "", *, recorded: bool = False) -> Path:
    """An archive holding `localhost/readygate:dev`, cached by all that goes into it; beside it the bill of materials.

    recorded: raises BuildError where Debian's packages are not those of images/debian.lock.
    """
    architecture = architecture or native()
    made_of = [path.read_bytes() for path in sorted((ROOT / "images").iterdir()) if path.is_file()]
    sources = [part for path in source_files() for part in (str(path.relative_to(ROOT)), path.read_bytes())]
    created_s, revision = origin()
    if recorded:
        debian.packages(architecture, progress, recorded=True)
    key = key_of([architecture, str(created_s), revision, *made_of, *sources])

    def build(folder: Path) -> None:
        progress(f"building the image for {architecture}")
        image, bill = image_of(architecture, progress)
        (folder / ARCHIVE).write_bytes(oci.archive([image], TAG))
        (folder / BILL).write_bytes(bill)

    found = cached("image", key, build, progress)
    forget_older("image", kept=_KEPT)
    return found / ARCHIVE


def image_of(architecture: str, progress: Progress) -> tuple[oci.Image, bytes]:
    """The image and its bill of materials."""
    created_s, revision = origin()
    made = parts(architecture, created_s, progress)
    config = containerfile.config(CONTAINERFILE.read_text(), {"VERSION": version(), "REVISION": revision})
    layers = [_layer(name, tar, progress) for name, tar in made.tars.items()]
    return oci.Image(architecture, layers, config, created_s), made.bill


def _layer(name: str, tar: bytes, progress: Progress) -> oci.Layer:
    """Compressing the two that change seldom takes longer than all else."""
    if name == "readygate":
        blob = oci.compressed(tar)
    else:
        key = key_of([oci.digest(tar), zlib.ZLIB_RUNTIME_VERSION, str(oci.GZIP_LEVEL)])
        blob = (
            cached("image-layer", key, lambda folder: _write(folder / "blob", oci.compressed(tar)), progress) / "blob"
        ).read_bytes()
    return oci.Layer(blob, oci.digest(tar), f"images/build.py: {name}")


def _write(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def parts(architecture: str, created_s: int, progress: Progress) -> Parts:
    """Layers that change seldom come first; their files have the day of debian.lock, whenever they are built."""
    from_debian = debian.packages(architecture, progress)
    python = bytecode.python(native(), progress)
    mtime_s = debian.recorded_at_s()

    def with_bytecode(tree: Tree) -> Tree:
        return tree | bytecode.compiled(tree, python, progress)

    def of_debian(folder: Path) -> None:
        _write(folder / "tar", to_tar(with_bytecode(base.tree_of(from_debian)), mtime_s))

    code = [path.read_bytes() for path in sorted((ROOT / "images").glob("*.py"))]
    key = key_of([str(mtime_s), *(one.sha256 for one in from_debian), *code])
    lowest = cached(f"image-base-{architecture}", key, of_debian, progress) / "tar"
    wheel_files = sorted(wheels.dependency_wheels(architecture, progress).iterdir())
    installed = [wheels.unpacked(path) for path in wheel_files]
    dependencies: Tree = {path: entry for tree, _ in installed for path, entry in tree.items()}

    def of_dependencies(folder: Path) -> None:
        _write(folder / "tar", to_tar(with_bytecode(dependencies), mtime_s))

    # The base's key has the Python that makes the bytecode.
    middle_key = key_of([key, *(path.read_bytes() for path in wheel_files)])
    kind = f"image-dependencies-{architecture}"
    middle = cached(kind, middle_key, of_dependencies, progress) / "tar"
    forget_older(kind, kept=_KEPT)
    own, product = _own(progress)
    trees = [dependencies, own]
    if strangers := base.machines([base.tree_of(from_debian), *trees]) - {architecture}:
        raise BuildError(f"the image for {architecture} would hold executables for {', '.join(sorted(strangers))}")
    of_wheels = [one for _, one in installed]
    bill = sbom.document(product, from_debian, of_wheels, architecture=architecture, created_s=created_s)
    tars = {
        "base": lowest.read_bytes(),
        "dependencies": middle.read_bytes(),
        "readygate": to_tar(with_bytecode(own) | {INSIDE: file(bill)}, mtime_s),
    }
    return Parts(tars, bill)


def _own(progress: Progress) -> tuple[Tree, Distribution]:
    with TemporaryDirectory() as folder:
        return wheels.unpacked(wheels.project_wheel(Path(folder), progress), commands=True)


def version() -> str:
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"])


def origin() -> tuple[int, str]:
    """When the image was made, in seconds since the epoch, and of which commit: those of the checkout.

    SOURCE_DATE_EPOCH goes before; without git it is the day of debian.lock.
    """

    def git(*arguments: str) -> str:
        try:
            done = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True, check=False)
        except OSError:
            return ""
        return done.stdout.strip() if done.returncode == 0 else ""

    commit, _, committed_s = git("log", "-1", "--format=%H %ct").partition(" ")
    changed = commit and git("status", "--porcelain", "--", "images", *wheels.PACKAGES, "pyproject.toml")
    given = os.environ.get("SOURCE_DATE_EPOCH") or committed_s
    if given and not given.isdigit():
        raise BuildError(f"SOURCE_DATE_EPOCH is {given!r}, allowed: seconds since 1970")
    return int(given or debian.recorded_at_s()), f"{commit or 'unknown'}{'-changed' if changed else ''}"


def _leave(architecture: str, root: Path, progress: Progress) -> None:
    for name, tar in parts(architecture, origin()[0], progress).tars.items():
        with tarfile.open(fileobj=BytesIO(tar)) as archive:
            unpack(archive, root / name)


def unpack(archive: tarfile.TarFile, folder: Path) -> None:
    """An archive of our own: links are absolute, /tmp is sticky. Python before 3.11.4, as Debian 12 has it, knows no
    filters, and lets everything pass."""
    archive.extraction_filter = getattr(tarfile, "fully_trusted_filter", None)
    archive.extractall(folder)  # noqa: S202


def _archives(architectures: Sequence[str], progress: Progress, *, recorded: bool) -> None:
    target = ROOT / "build"
    target.mkdir(exist_ok=True)
    for architecture in architectures:
        built = readygate_image(progress, architecture, recorded=recorded)
        for name in (ARCHIVE, BILL):
            own = name if architecture == native() else name.replace("readygate", f"readygate-{architecture}")
            shutil.copyfile(built.with_name(name), target / own)
            if name == ARCHIVE:
                size = (target / own).stat().st_size / 1e6
                progress(f"{TAG} for {architecture} is in build/{own} ({size:.1f} MB)")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m images.build", description=__doc__.partition("\n")[0])
    parser.add_argument("--arch", default="", help="amd64, arm64 or both with a blank; default: this machine's")
    parser.add_argument("--root", type=Path, help="leave the files of each layer here, make no archive")
    parser.add_argument("--recorded", action="store_true", help="refuse packages that debian.lock does not record")
    arguments = parser.parse_args()

    def progress(text: str) -> None:
        print(f"image: {text}", flush=True)

    try:
        architectures = arguments.arch.split() or [native()]
        if unknown := set(architectures) - set(debian.ARCHITECTURES):
            raise BuildError(f"{', '.join(sorted(unknown))} is not known: {' or '.join(debian.ARCHITECTURES)}")
        if wanted := packages.missing():
            raise BuildError(f"{', '.join(wanted)} missing: run python -m images.packages as root")
        if arguments.root:
            _leave(architectures[0], arguments.root, progress)
        else:
            _archives(architectures, progress, recorded=arguments.recorded)
    except (BuildError, packages.PackagesError) as e:
        print(f"image: {e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    command(main)
