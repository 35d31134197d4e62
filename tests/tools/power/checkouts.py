"""A small checkout with the instruments that run tests in it, for tests of tools/power."""

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
INSTRUMENTS = ("tools/__init__.py", "tools/kit", "tools/proof", "tools/power")


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=tests", "-c", "user.email=tests@localhost", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", *identity, *words], cwd=folder, capture_output=True, text=True, check=True).stdout


def make_checkout(folder: Path, files: dict[str, str], *, instruments: bool = False) -> Path:
    """A git checkout with these files, committed."""
    folder.mkdir(parents=True)
    for name in INSTRUMENTS if instruments else ():
        source, target = ROOT / name, folder / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    for name, text in {"tests/whole_only.txt": "", ".gitignore": "__pycache__/\n.venv\nbuild/\n", **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    git(folder, "init", "-q")
    git(folder, "add", "--all")
    git(folder, "commit", "-q", "-m", "A checkout")
    return folder
