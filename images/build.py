"""Builds the container image of readygate, layer by layer.

`python -m images.build` (= `make image`) writes build/readygate.tar, which `ctr images import`, `docker load` and
`skopeo copy oci-archive:` read, and its content (SBOM). images/Containerfile uses `--root`, `make push` `--index`.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import zlib
from collections.abc import Iterable
from importlib.metadata import distributions
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

from images import base, debian, oci, python
from images.python import ROOT
from tools.kit.cache import cached, forget_older, key_of
from tools.kit.commands import BuildError, Progress, command

TAG = "localhost/readygate:dev"
ARCHIVE, BILL = "readygate.tar", "readygate.cdx.json"
INSIDE = f"usr/local/share/readygate/{BILL}"
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
_KEPT = 6  # cached archives and layers; each change of the code makes another


def native() -> str:
    """This machine's architecture, in Debian's words. Raises BuildError."""
    if (machine := platform.machine()) not in _MACHINES:
        raise BuildError(f"there is no image for {machine}: it can be built on and for {' and '.join(_MACHINES)}")
    return _MACHINES[machine]


def readygate_image(progress: Progress, architecture: str = "") -> Path:
    """An archive with `localhost/readygate:dev`, cached by all that goes into it, and next to it the SBOM."""
    architecture = architecture or native()
    parts = [part for path in python.source_files() for part in (str(path.relative_to(ROOT)), path.read_bytes())]

    def build(folder: Path) -> None:
        progress(f"building the image for {architecture}")
        image, bill = image_of(architecture, progress)
        (folder / ARCHIVE).write_bytes(oci.archive([image], TAG))
        (folder / BILL).write_bytes(bill)

    key = [*_key(architecture, debian.packages(architecture, progress)), *map(str, origin()), *parts]
    found = cached("image", key_of(key), build, progress)
    forget_older("image", kept=_KEPT)
    return found / ARCHIVE


def image_of(architecture: str, progress: Progress, *, recorded: bool = False) -> tuple[oci.Image, bytes]:
    """The image and its SBOM. Layers that change seldom come first, so that an update of readygate moves 3 MB.

    recorded: raises BuildError if Debian's packages are not those of images/debian.lock.
    """
    created_s, revision = origin()
    packages = debian.packages(architecture, progress, recorded=recorded)

    def build(folder: Path) -> None:
        base.unpack(packages.values(), folder / "base" / "root")
        python.install_dependencies(architecture, folder / "dependencies" / "root", progress)
        for name in ("base", "dependencies"):
            _write_layer(folder / name, progress)

    lower = cached(f"image-layers-{architecture}", key_of(_key(architecture, packages)), build, progress)
    forget_older(f"image-layers-{architecture}", kept=_KEPT)
    with TemporaryDirectory() as name:
        top = Path(name) / "readygate"
        python.install_project(top / "root", progress)
        sites = [folder / "root" / base.SITE for folder in (lower / "dependencies", top)]
        bill = _bill(packages, sites, architecture, created_s)
        base.write(top / "root", INSIDE, bill)
        _write_layer(top, progress)
        layers = [
            oci.Layer(folder.name, (folder / "blob").read_bytes(), (folder / "diff_id").read_text())
            for folder in (lower / "base", lower / "dependencies", top)
        ]
    return oci.Image(architecture, layers, _config(revision), created_s), bill


def origin() -> tuple[int, str]:
    """The time of the image in seconds since the epoch, and the commit it is built from.

    SOURCE_DATE_EPOCH overrides the time of the commit. Without git it is the day of debian.lock.
    """

    def git(*arguments: str) -> str:
        try:
            return subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True, check=False).stdout
        except OSError:
            return ""

    revision = git("describe", "--always", "--dirty=-changed", "--abbrev=40", "--exclude=*").strip()
    given = os.environ.get("SOURCE_DATE_EPOCH") or git("log", "-1", "--format=%ct").strip()
    if given and not given.isdigit():
        raise BuildError(f"SOURCE_DATE_EPOCH is {given!r}, allowed: seconds since 1970")
    return int(given or debian.recorded_at_s()), revision or "unknown"


def _key(architecture: str, packages: Iterable[str]) -> list[str | bytes]:
    """What all layers but the last are made from."""
    code = [path.read_bytes() for path in sorted((ROOT / "images").iterdir()) if path.is_file()]
    return [architecture, zlib.ZLIB_RUNTIME_VERSION, *packages, *code]


def _write_layer(folder: Path, progress: Progress) -> None:
    """Compiles the files in `root` and writes the layer as `blob` and `diff_id`."""
    python.compile_all(folder / "root", _interpreter(progress), progress)
    layer = oci.layer(folder.name, folder / "root", debian.recorded_at_s())
    (folder / "blob").write_bytes(layer.blob)
    (folder / "diff_id").write_text(layer.diff_id)


def _interpreter(progress: Progress) -> Path:
    """Root folder with the image's Python for this machine."""
    packages = debian.packages(native(), progress)

    def build(folder: Path) -> None:
        base.unpack(packages.values(), folder / "root")

    return cached("image-python", key_of(_key(native(), packages)), build, progress) / "root"


def _config(revision: str) -> dict[str, Any]:
    """What a container gets. images/Containerfile says the same."""
    project = python.project()
    labels = {name: project[name] for name in ("description", "version")}
    labels |= {"title": project["name"], "licenses": project["license"], "revision": revision}
    return {
        "User": f"{base.USER}:{base.USER}",
        "Env": ["PATH=/usr/local/bin:/usr/bin:/bin", "PYTHONUNBUFFERED=1", "PYTHONDONTWRITEBYTECODE=1"],
        "Cmd": ["readygate", "--help"],
        "WorkingDir": "/",
        "Labels": {f"org.opencontainers.image.{name}": value for name, value in labels.items()},
    }


def _bill(packages: Iterable[str], sites: Iterable[Path], architecture: str, created_s: int) -> bytes:
    """CycloneDX 1.5 (SBOM). packages: rows of debian.lock. sites: the folders in which the Python packages are."""
    components: list[dict[str, object]] = []

    def add(kind: str, name: str, version: str, query: str = "", **more: object) -> None:
        url = f"pkg:{kind}/{quote(name, safe='')}@{quote(version, safe='')}{query}"
        components.append({"type": "library", "name": name, "version": version, "purl": url, "bom-ref": url, **more})

    for _, name, version, digest in map(str.split, packages):
        hashes = [{"alg": "SHA-256", "content": digest.removeprefix("sha256:")}]
        add("deb/debian", name, version, f"?arch={architecture}", hashes=hashes)
    for one in sorted(distributions(path=list(map(str, sites))), key=lambda one: one.name.lower()):
        names = [one.metadata[field] for field in ("License-Expression", "License") if field in one.metadata]
        licenses = [{"license": {"name": name}} for name in names[:1]]
        add("pypi", one.name.lower().replace("_", "-"), one.version, licenses=licenses)
    head = {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1}
    found = head | {"metadata": {"timestamp": oci.timestamp(created_s)}, "components": components}
    return (json.dumps(found, indent=1, sort_keys=True) + "\n").encode()


def unpack(image: oci.Image, folder: Path) -> None:
    """Writes the files of each layer into a folder with the layer's name."""
    for layer in image.layers:
        target = folder / layer.name
        target.mkdir(parents=True, exist_ok=True)
        subprocess.run(["tar", "--extract", "--gzip", f"--directory={target}"], input=layer.blob, check=True)


def _write_archives(architectures: Iterable[str], progress: Progress) -> None:
    target = ROOT / "build"
    target.mkdir(exist_ok=True)
    for architecture in architectures:
        archive = readygate_image(progress, architecture)
        own = "readygate" if architecture == native() else f"readygate-{architecture}"
        shutil.copyfile(archive, target / f"{own}.tar")
        shutil.copyfile(archive.with_name(BILL), target / f"{own}.cdx.json")
        progress(f"{TAG} for {architecture} is in build/{own}.tar ({archive.stat().st_size / 1e6:.1f} MB)")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m images.build", description=__doc__.partition("\n")[0])
    parser.add_argument("--arch", default="", help="amd64, arm64 or both with a blank; default: this machine's")
    parser.add_argument("--root", type=Path, help="write the files of each layer to this folder, and no archive")
    parser.add_argument("--index", type=Path, help="write one archive of all architectures, of recorded packages only")
    arguments = parser.parse_args()

    def progress(text: str) -> None:
        print(f"image: {text}", flush=True)

    try:
        architectures = arguments.arch.split() or [native()]
        if unknown := set(architectures) - set(debian.ARCHITECTURES):
            raise BuildError(f"{', '.join(sorted(unknown))} is not known: {' or '.join(debian.ARCHITECTURES)}")
        if arguments.root:
            unpack(image_of(architectures[0], progress)[0], arguments.root)
        elif arguments.index:
            images = [image_of(each, progress, recorded=True)[0] for each in debian.ARCHITECTURES]
            arguments.index.write_bytes(oci.archive(images, TAG))
        else:
            _write_archives(architectures, progress)
    except BuildError as e:
        print(f"image: {e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    command(main)
