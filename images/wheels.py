"""The wheels that go into the image: readygate's own, and its locked run-time dependencies for the image's Python.

They are unpacked, not installed: no pip in the image, and none that would have to run on its architecture.
"""

import configparser
import hashlib
import io
import os
import re
import shutil
import sys
import zipfile
from pathlib import Path

from images import elf
from images.base import SITE
from images.cache import cached, key_of
from images.commands import BuildError, Progress, run
from images.sbom import Distribution, distribution
from images.tree import EXECUTABLE, Tree, file

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "images" / "requirements.lock"
IMAGE_PYTHON = "3.11"  # of the Debian the image stands on
PACKAGES = ("agent", "cli", "component", "extender", "kube")
# Metadata and texts that go into the wheel beside the packages.
_PROJECT_FILES = ("pyproject.toml", "README.md", "LICENSE")
_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
_C_LIBRARIES = ("_2_36", "_2_28", "_2_17", "2014")  # that bookworm's 2.36 can stand in for
_NOT_RUN = re.compile(
    "|".join(
        [
            r".*\.(c|h|proto|pxd|pyi|pyx)|[^/]+\.dist-info/(RECORD|INSTALLER|direct_url\.json)|.*/py\.typed",
            r"yaml/(cyaml\.py|_yaml\..*\.so)|_yaml/.*",  # a second parser, which nobody here asks for
            r"grpc/_cython/_credentials/roots\.pem",  # sockets of this node and probes have no TLS
        ]
    )
)
_SCRIPT = """\
#!/usr/bin/python3.11
import sys

from {module} import {function}

if __name__ == "__main__":
    sys.exit({function}())
"""


def dependency_wheels(architecture: str, progress: Progress) -> Path:
    """Folder of the locked dependencies' wheels; downloaded once, against the hashes of the lock file."""
    requirements = LOCK.read_text()

    def build(folder: Path) -> None:
        progress(f"fetching {requirements.count('==')} locked wheels for Python {IMAGE_PYTHON} on {architecture}, once")
        platforms = [f"--platform=manylinux{tag}_{_MACHINES[architecture]}" for tag in _C_LIBRARIES]
        _pip(
            "download",
            "--require-hashes",
            "--no-deps",
            "--only-binary=:all:",
            f"--python-version={IMAGE_PYTHON}",
            "--implementation=cp",
            *platforms,
            f"--requirement={LOCK}",
            f"--dest={folder / 'wheels'}",
            what="wheels",
            log=folder / "pip.log",
            progress=progress,
        )

    return cached("image-wheels", key_of([requirements, architecture, IMAGE_PYTHON]), build, progress) / "wheels"


def source_files() -> list[Path]:
    """Every file that goes into the project's wheel, sorted."""
    inside = [path for name in PACKAGES for path in (ROOT / name).rglob("*") if path.is_file()]
    return sorted(path for path in inside if "__pycache__" not in path.parts) + [ROOT / name for name in _PROJECT_FILES]


def project_wheel(folder: Path, progress: Progress) -> Path:
    """Builds readygate's wheel into `folder`, from a copy: nothing is left in the checkout."""
    source = folder / "source"
    for path in source_files():
        target = source / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    _pip(
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        f"--wheel-dir={folder}",
        str(source),
        what="readygate's wheel",
        log=folder / "wheel.log",
        progress=progress,
    )
    return next(folder.glob("*.whl"))


def unpacked(wheel: Path, *, commands: bool = False) -> tuple[Tree, Distribution]:
    """Its files where Python looks for them, and what it says of itself. commands: those of its entry points too."""
    data = wheel.read_bytes()
    tree: Tree = {}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
        if odd := next((name for name in names if ".data/" in name), None):
            raise BuildError(f"{wheel.name} wants {odd} outside of Python's folder, which is not foreseen")
        for name in names:
            if not _NOT_RUN.fullmatch(name):
                tree[f"{SITE}/{name}"] = file(elf.loaded(archive.read(name)))
        info = next(name for name in names if name.endswith(".dist-info/METADATA"))
        metadata = archive.read(info).decode()
        points = info.replace("METADATA", "entry_points.txt")
        if commands and points in names:
            parser = configparser.ConfigParser(delimiters=("=",))
            parser.read_string(archive.read(points).decode())
            for name, value in parser["console_scripts"].items():
                module, _, function = value.partition(":")
                text = _SCRIPT.format(module=module, function=function)
                tree[f"usr/local/bin/{name}"] = file(text.encode(), EXECUTABLE)
    return tree, distribution(metadata, hashlib.sha256(data).hexdigest())


def _pip(*arguments: str, what: str, log: Path, progress: Progress) -> None:
    command = [sys.executable, "-m", "pip", *arguments, "--disable-pip-version-check", "--no-input", "--no-cache-dir"]
    environ = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    if not environ.get("SOURCE_DATE_EPOCH"):
        environ.pop("SOURCE_DATE_EPOCH", None)  # as a Containerfile's ARG without a value is; it stops hatchling
    run(command, what=what, log=log, progress=progress, environ=environ)
