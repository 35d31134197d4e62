"""Bytecode for what is in the image, made by the image's own Python: another version's would be compiled again at each
start, since the container's user cannot write it.

It runs from its unpacked files, through their own loader, whatever Python and C library this machine has.
"""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from images import base
from images.cache import cached, key_of
from images.commands import Progress, run
from images.debian import packages
from images.tree import Entry, Tree, file


def python(architecture: str, progress: Progress) -> list[str]:
    """The command of the image's Python on this machine, which is of this architecture."""
    found = packages(architecture, progress)

    def build(folder: Path) -> None:
        unpack(base.tree_of(found), folder / "root")

    key = key_of([architecture, *(one.sha256 for one in found), Path(base.__file__).read_bytes()])
    root = cached("image-python", key, build, progress) / "root"
    libraries = f"{root}/usr/lib/{base.TRIPLES[architecture]}"
    return [f"{root}/{base.LOADERS[architecture]}", "--library-path", libraries, f"{root}/{base.PYTHON}"]


def compiled(tree: Mapping[str, Entry], python: list[str], progress: Progress) -> Tree:
    """The bytecode of all Python files, where Python looks for it; never held against its source, both are fixed."""
    sources = {path: entry for path, entry in tree.items() if path.endswith(".py") and entry.kind == "file"}
    if not sources:
        return {}
    with TemporaryDirectory() as name:
        root = Path(name) / "root"
        unpack(sources, root)
        options = ["-q", "-s", str(root), "-p", "/", "--invalidation-mode", "unchecked-hash", str(root)]
        # Alone with its own settings; a fixed seed for the order of sets.
        environ = {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
        command = [*python, "-s", "-S", "-m", "compileall", *options]
        run(
            command,
            what=f"bytecode of {len(sources)} files",
            log=Path(name) / "log",
            progress=progress,
            environ=environ,
        )
        return {str(path.relative_to(root)): file(path.read_bytes()) for path in sorted(root.rglob("*.pyc"))}


def unpack(tree: Mapping[str, Entry], root: Path) -> None:
    """Files and links; absolute links lead out of `root`."""
    for path, entry in tree.items():
        target = root / path
        (target if entry.kind == "folder" else target.parent).mkdir(parents=True, exist_ok=True)
        if entry.kind == "file":
            target.write_bytes(entry.data)
            target.chmod(entry.mode)
        elif entry.kind == "link":
            target.symlink_to(entry.target)
