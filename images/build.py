"""The container image of readygate, built by buildah from images/Containerfile on a base made from Debian's archive.

`python -m images.build` (= `make image`) puts the archive under build/. Needs root.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from images import packages, rootfs
from images.cache import cache_folder, cached, key_of
from images.commands import BuildError, Progress, run
from images.wheels import ROOT, dependency_wheels, project_wheel, source_files

CONTAINERFILE = ROOT / "images" / "Containerfile"
TAG = "localhost/readygate:dev"
ARCHIVE = "readygate.tar"
_KEPT = 3  # each is a third of a gigabyte, and each change of the code makes one


def readygate_image(progress: Progress) -> Path:
    """A docker archive holding `localhost/readygate:dev`; cached by the content of all that goes into it."""
    if os.geteuid() != 0:
        raise BuildError("building the image needs root (mmdebstrap and buildah here run as root): sudo make image")
    base = rootfs.python_base(progress)
    wheels = dependency_wheels(progress)
    sources = [part for path in source_files() for part in (str(path.relative_to(ROOT)), path.read_bytes())]
    key = key_of([base.parent.name, wheels.parent.name, CONTAINERFILE.read_bytes(), *sources])

    def build(folder: Path) -> None:
        progress("building the image")
        context = folder / "context"
        shutil.copytree(wheels, context / "wheels")
        project_wheel(context / "dist", progress)
        (context / "content").write_text(f"{key}\n")
        _build(base, context, folder / ARCHIVE, progress)
        shutil.rmtree(context)

    found = cached("image", key, build, progress)
    older = sorted(cache_folder().glob("image-????????????????"), key=lambda path: path.stat().st_mtime)[:-_KEPT]
    for folder in older:
        if folder != found:
            shutil.rmtree(folder, ignore_errors=True)
    return found / ARCHIVE


def _build(base: Path, context: Path, archive: Path, progress: Progress) -> None:
    """One buildah store per base, in the cache folder: the user's own images are not touched."""
    store = cache_folder() / f"buildah-{base.parent.name}"
    base_tag = f"localhost/{base.parent.name}"
    buildah = ["buildah", f"--root={store}", f"--runroot={store}-run", "--storage-driver=overlay"]
    log = archive.with_name("buildah.log")
    if (
        subprocess.run([*buildah, "inspect", "--type=image", base_tag], capture_output=True, check=False).returncode
        != 0
    ):
        _import_base(buildah, base, base_tag, archive.with_name("base"), progress)
    # Without a network, and so without a registry: proof that the build needs none.
    run(
        [
            "unshare",
            "--net",
            *buildah,
            "build",
            "--isolation=chroot",
            "--layers",  # a change of readygate's own code finds its dependencies installed and compiled
            "--pull-never",
            f"--build-arg=BASE={base_tag}",
            f"--file={CONTAINERFILE}",
            f"--tag={TAG}",
            str(context),
        ],
        what="buildah build",
        log=log,
        progress=progress,
    )
    run([*buildah, "push", TAG, f"docker-archive:{archive}:{TAG}"], what="archive", log=log, progress=progress)


def _import_base(buildah: list[str], base: Path, tag: str, context: Path, progress: Progress) -> None:
    context.mkdir()
    (context / "Containerfile").write_text("FROM scratch\nADD base.tar /\n")
    tar = ["tar", "--create", "--numeric-owner", f"--directory={base}", f"--file={context / 'base.tar'}", "."]
    run(tar, what="packing the base", log=context / "tar.log", progress=progress)
    build = [*buildah, "build", "--isolation=chroot", f"--tag={tag}", str(context)]
    run(build, what="importing the base", log=context.with_name("base.log"), progress=progress)
    shutil.rmtree(context)


def main() -> int:
    try:
        if wanted := packages.missing():
            raise BuildError(f"{', '.join(wanted)} missing: run python -m images.packages as root")
        built = readygate_image(lambda text: print(f"image: {text}", flush=True))
    except (BuildError, packages.PackagesError) as e:
        print(f"image: {e}", file=sys.stderr)
        return 1
    target = ROOT / "build" / ARCHIVE
    target.parent.mkdir(exist_ok=True)
    shutil.copyfile(built, target)
    print(f"image: {TAG} is in {target.relative_to(ROOT)} ({target.stat().st_size / 1e6:.0f} MB)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
