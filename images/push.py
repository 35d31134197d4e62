"""Puts the image into a registry: both architectures behind one name, which is printed with its digest.

`make push REGISTRY=HOST/PATH [TAG=...]`. skopeo does it, and knows you by `skopeo login HOST` or docker's login.
"""

import argparse
import re
import shlex
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from images import debian, oci, packages
from images.build import image_of, version
from images.commands import BuildError, Progress, command, run

# Host with a port, then a path in lower case, as all registries want it.
_REGISTRY = re.compile(r"[A-Za-z0-9.-]+(:\d+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*|\[[0-9a-f:]+\]:\d+(/[a-z0-9._-]+)*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")


def name_of(registry: str, tag: str) -> str:
    """`REGISTRY/readygate:TAG`. Raises BuildError."""
    registry = registry.removeprefix("docker://").removesuffix("/")
    if not registry:
        raise BuildError("REGISTRY is not set: make push REGISTRY=HOST/PATH, where you may write (skopeo login HOST)")
    if not _REGISTRY.fullmatch(registry):
        raise BuildError(f"REGISTRY={registry} is no place for images: HOST[:PORT][/path], without https://")
    if not _TAG.fullmatch(tag):
        raise BuildError(f"TAG={tag} is no tag: letters, digits, _, . and -, at most 128")
    return f"{registry}/readygate:{tag}"


def push(name: str, options: list[str], progress: Progress) -> str:
    """Builds and pushes, both architectures. Returns the name with the digest of the index. Raises BuildError."""
    for architecture in debian.ARCHITECTURES:
        debian.packages(architecture, progress, recorded=True)  # what others run can be made again
    images = [image_of(architecture, progress)[0] for architecture in debian.ARCHITECTURES]
    with TemporaryDirectory() as folder:
        archive, digest = Path(folder) / "readygate.tar", Path(folder) / "digest"
        archive.write_bytes(oci.archive(images, name))
        run(
            [
                "skopeo",
                "copy",
                "--all",
                "--preserve-digests",
                f"--digestfile={digest}",
                *options,
                f"oci-archive:{archive}",
                f"docker://{name}",
            ],
            what=f"push to {name}",
            log=Path(folder) / "skopeo.log",
            progress=progress,
        )
        return f"{name}@{digest.read_text().strip()}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m images.push", description=__doc__.partition("\n")[0])
    parser.add_argument("--registry", default="", help="HOST/PATH; the image becomes HOST/PATH/readygate")
    parser.add_argument("--tag", default=version(), help="default: the version")
    parser.add_argument("--options", default="", help="more for skopeo copy, as --dest-tls-verify=false")
    arguments = parser.parse_args()
    try:
        name = name_of(arguments.registry, arguments.tag)
        if wanted := packages.missing((*packages.PACKAGES, *packages.PUSH_PACKAGES)):
            raise BuildError(f"{', '.join(wanted)} missing: sudo apt-get install {' '.join(wanted)}")
        pushed = push(name, shlex.split(arguments.options), lambda text: print(f"push: {text}", flush=True))
    except (BuildError, packages.PackagesError) as e:
        print(f"push: {e}", file=sys.stderr)
        return 1
    print(f"push: for your inventory: readygate_image: {pushed}")
    return 0


if __name__ == "__main__":
    command(main)
