"""The wheels that go into the image: the project's own, and its locked run-time dependencies for the image's Python."""

import os
import platform
import re
import shutil
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from images.cache import cached, key_of
from images.commands import BuildError, Progress, run

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements.lock"
IMAGE_PYTHON = "3.11"  # of the Debian the image stands on
EXTRAS = ("extender",)  # not kubeconfig: in a pod the service account speaks for us
PACKAGES = ("agent", "cli", "component", "extender", "kube")
# Metadata and texts that go into the wheel beside the packages.
_PROJECT_FILES = ("pyproject.toml", "README.md", "LICENSE")


def runtime_names() -> set[str]:
    """Canonical names of all distributions readygate needs at run time in the image, without itself."""
    environment = {str(k): str(v) for k, v in default_environment().items()} | {
        "python_version": IMAGE_PYTHON,
        "python_full_version": f"{IMAGE_PYTHON}.2",
        "sys_platform": "linux",
        "platform_system": "Linux",
    }
    wanted: list[tuple[str, tuple[str, ...]]] = [("readygate", EXTRAS)]
    seen: set[tuple[str, tuple[str, ...]]] = set()
    while wanted:
        name, extras = wanted.pop()
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        for requirement in map(Requirement, _project_requires() if name == "readygate" else _requires(name)):
            marker = requirement.marker
            if marker is None or any(marker.evaluate({**environment, "extra": extra}) for extra in (*extras, "")):
                wanted.append((canonicalize_name(requirement.name), tuple(sorted(requirement.extras))))
    return {name for name, _ in seen} - {"readygate"}


def _project_requires() -> list[str]:
    """From the sources: what was installed may be of an earlier state of them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    of_extras = [one for extra in EXTRAS for one in project["optional-dependencies"][extra]]
    return [*project.get("dependencies", []), *of_extras]


def _requires(name: str) -> list[str]:
    try:
        return distribution(name).requires or []
    except PackageNotFoundError as e:
        raise BuildError(f"{name} is not installed in {sys.prefix}: run make venv") from e


def locked(names: set[str], lock: str) -> str:
    """The entries of a lock file (pins with hashes) that are of these names. Raises BuildError when one is missing."""
    entries = re.findall(r"^([A-Za-z0-9._-]+)==(?:.*\\\n)(?:    --hash=.*\n?)+", lock, re.MULTILINE)
    blocks = re.finditer(r"^([A-Za-z0-9._-]+)==(?:.*\\\n)(?:    --hash=.*\n?)+", lock, re.MULTILINE)
    missing = names - {canonicalize_name(name) for name in entries}
    if missing:
        raise BuildError(f"requirements.lock lacks {', '.join(sorted(missing))}: run make lock")
    return "".join(block[0] for block in blocks if canonicalize_name(block[1]) in names)


def dependency_wheels(progress: Progress) -> Path:
    """Folder of the locked dependencies' wheels; downloaded once, against the hashes of the lock file."""
    requirements = locked(runtime_names(), LOCK.read_text())
    machine = platform.machine()

    def build(folder: Path) -> None:
        (folder / "requirements.txt").write_text(requirements)
        progress(f"fetching {requirements.count('==')} locked wheels for Python {IMAGE_PYTHON}, once")
        platforms = [f"--platform=manylinux{tag}_{machine}" for tag in ("_2_36", "_2_28", "_2_17", "2014")]
        _pip(
            "download",
            "--require-hashes",
            "--no-deps",
            "--only-binary=:all:",
            f"--python-version={IMAGE_PYTHON}",
            "--implementation=cp",
            *platforms,
            f"--requirement={folder / 'requirements.txt'}",
            f"--dest={folder / 'wheels'}",
            what="wheels",
            log=folder / "pip.log",
            progress=progress,
        )

    return cached("image-wheels", key_of([requirements, machine, IMAGE_PYTHON]), build, progress) / "wheels"


def source_files() -> list[Path]:
    """Every file that goes into the project's wheel, sorted."""
    inside = [path for name in PACKAGES for path in (ROOT / name).rglob("*") if path.is_file()]
    return sorted(path for path in inside if "__pycache__" not in path.parts) + [ROOT / name for name in _PROJECT_FILES]


def project_wheel(folder: Path, progress: Progress) -> None:
    """Builds readygate's wheel into `folder`, from a copy: nothing is left in the checkout."""
    source = folder.with_name("source")
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
        log=folder.with_name("wheel.log"),
        progress=progress,
    )
    shutil.rmtree(source)


def _pip(*arguments: str, what: str, log: Path, progress: Progress) -> None:
    command = [sys.executable, "-m", "pip", *arguments, "--disable-pip-version-check", "--no-input", "--no-cache-dir"]
    run(command, what=what, log=log, progress=progress, environ={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
