"""A file system in memory, and the tar of it: the same bytes for the same tree. Pure.

A tree maps paths (no slash at either end) to entries. Everything belongs to root.
"""

import io
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

EXECUTABLE, PLAIN = 0o755, 0o644


@dataclass(frozen=True)
class Entry:
    """mode: permissions. data: of a file. target: of a link."""

    kind: Literal["folder", "file", "link"]
    mode: int = EXECUTABLE
    data: bytes = b""
    target: str = ""


Tree = dict[str, Entry]


def folder(mode: int = EXECUTABLE) -> Entry:
    return Entry("folder", mode)


def file(data: bytes, mode: int = PLAIN) -> Entry:
    return Entry("file", mode, data)


def link(target: str) -> Entry:
    return Entry("link", 0o777, target=target)


def whole_bytes(tree: Mapping[str, Entry]) -> int:
    return sum(len(entry.data) for entry in tree.values())


def to_tar(tree: Mapping[str, Entry], mtime_s: int) -> bytes:
    """Sorted by path, each folder before what is in it, whether or not the tree names it."""
    whole = {parent: folder() for path in tree for parent in _parents(path)} | dict(tree)
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(whole, key=lambda path: path.split("/")):
            entry = whole[path]
            header = tarfile.TarInfo(path)
            header.mode, header.mtime = entry.mode, mtime_s
            header.type = {"folder": tarfile.DIRTYPE, "file": tarfile.REGTYPE, "link": tarfile.SYMTYPE}[entry.kind]
            header.linkname, header.size = entry.target, len(entry.data)
            archive.addfile(header, io.BytesIO(entry.data))
    return written.getvalue()


def from_tar(data: bytes) -> Tree:
    """Of any tar, compressed or not; hard links become copies, devices and the like are left out."""
    tree: Tree = {}
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for header in archive:
            path = header.name.removeprefix("./").strip("/")
            if path in {"", "."}:
                continue
            if header.isdir():
                tree[path] = folder(header.mode)
            elif header.issym():
                tree[path] = link(header.linkname)
            elif header.islnk():
                tree[path] = tree[header.linkname.removeprefix("./").strip("/")]
            elif header.isreg():
                content = archive.extractfile(header)
                tree[path] = file(content.read() if content else b"", header.mode)
    return tree


def _parents(path: str) -> list[str]:
    parts = path.split("/")[:-1]
    return ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]
