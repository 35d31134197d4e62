"""Installs the image's Python packages with pip, for any architecture, and compiles them with the image's own Python.

The packages are the locked dependencies and readygate itself. No code of the other architecture is run.
"""

import os
import re
import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any

from images.base import SITE, write
from tools.kit.commands import Progress, run

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "images" / "requirements.lock"
PACKAGES = ("agent", "cli", "component", "extender", "kube")
_PROJECT_FILES = ("pyproject.toml", "README.md", "LICENSE")  # they are in the metadata of readygate's wheel
_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
_C_LIBRARIES = ("_2_36", "_2_28", "_2_17", "2014")  # manylinux tags that bookworm's glibc 2.36 satisfies
_UNUSED = re.compile(
    r".*\.(c|h|proto|pxd|pyi|pyx)|[^/]+\.dist-info/(RECORD|REQUESTED|INSTALLER|direct_url\.json)|.*/py\.typed|bin/.*"
    r"|yaml/(cyaml\.py|_yaml\..*\.so)|_yaml/.*"  # a second parser, which readygate does not use
    r"|grpc/_cython/_credentials/roots\.pem"  # gRPC is used for local sockets and probes, without TLS
)
_SCRIPT = """\
#!/usr/bin/python3.11
import sys

from {module} import {function}

if __name__ == "__main__":
    sys.exit({function}())
"""


def project() -> dict[str, Any]:
    """The table `project` of pyproject.toml."""
    return dict(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"])


def source_files() -> list[Path]:
    """Every file that readygate's wheel is made from, sorted."""
    inside = [path for name in PACKAGES for path in (ROOT / name).rglob("*") if path.is_file()]
    return sorted(path for path in inside if "__pycache__" not in path.parts) + [ROOT / name for name in _PROJECT_FILES]


def install_dependencies(architecture: str, root: Path, progress: Progress) -> None:
    """Installs the wheels of requirements.lock below `root`, for the image's Python. Raises BuildError."""
    platforms = [f"--platform=manylinux{tag}_{_MACHINES[architecture]}" for tag in _C_LIBRARIES]
    target = ["--python-version=3.11", "--implementation=cp", "--only-binary=:all:", *platforms]
    arguments = [*target, "--require-hashes", f"--requirement={LOCK}"]
    _pip(arguments, root, what=f"wheels for {architecture}", progress=progress)


def install_project(root: Path, progress: Progress) -> None:
    """Builds readygate's wheel and installs it and its commands below `root`. Raises BuildError."""
    _pip(["--no-build-isolation", str(ROOT)], root, what="readygate's wheel", progress=progress)
    for name, entry_point in project()["scripts"].items():
        module, _, function = entry_point.partition(":")
        write(root, f"usr/local/bin/{name}", _SCRIPT.format(module=module, function=function).encode(), 0o755)


def compile_all(root: Path, interpreter: Path, progress: Progress) -> None:
    """Compiles all Python files below `root`. interpreter: root folder of an image's base, for this machine.

    Python does not compare it with the source: both are fixed. Another version of Python would compile it again at each
    start, since the container user cannot write bytecode.
    """
    # Its own loader and C library: those of this machine may be older or newer. The usual path is an absolute link.
    loader = next(interpreter.glob("usr/lib/*-linux-gnu/ld-linux-*.so.*"))
    python = [str(loader), "--library-path", str(loader.parent), str(interpreter / "usr/bin/python3.11")]
    options = ["-q", "-s", str(root), "-p", "/", "--invalidation-mode", "unchecked-hash", str(root / "usr")]
    run(
        [*python, "-s", "-S", "-m", "compileall", *options],
        what="bytecode",
        log=root.with_name("compileall.log"),
        progress=progress,
        # The seed fixes the order of sets. Without the columns of each instruction the bytecode is a quarter smaller.
        environ={"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONNODEBUGRANGES": "1"},
    )


def _pip(arguments: list[str], root: Path, *, what: str, progress: Progress) -> None:
    site = root / SITE
    environ = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    if not environ.get("SOURCE_DATE_EPOCH"):
        environ.pop("SOURCE_DATE_EPOCH", None)  # hatchling refuses an empty value, as the Containerfile passes it
    options = ["--no-deps", "--no-compile", "--no-input", "--disable-pip-version-check", f"--target={site}"]
    argv = [sys.executable, "-m", "pip", "install", *options, *arguments]
    run(argv, what=what, log=root.with_name("pip.log"), progress=progress, environ=environ)
    for path in [path for path in site.rglob("*") if _UNUSED.fullmatch(str(path.relative_to(site)))]:
        path.unlink()
    for name in ("bin", "_yaml"):
        shutil.rmtree(site / name, ignore_errors=True)
