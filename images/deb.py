"""Debian's packages as files: what one is called and what is in it. Pure."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from lzma import LZMAError
from tarfile import TarError

from images.tree import Entry, from_tar

_MAGIC = b"!<arch>\n"


class DebError(ValueError):
    """str = what is wrong with the file."""


@dataclass(frozen=True)
class Deb:
    """control: the fields of its control file, as one text. sha256: of the whole file, hexadecimal."""

    name: str
    version: str
    architecture: str
    sha256: str
    control: str
    tree: Mapping[str, Entry]


def read(data: bytes) -> Deb:
    """Raises DebError."""
    members = _members(data)
    try:
        control = from_tar(_member(members, "control.tar"))["control"].data.decode()
        tree = from_tar(_member(members, "data.tar"))
    except (KeyError, OSError, EOFError, LZMAError, TarError, UnicodeDecodeError) as e:
        raise DebError(f"its archives cannot be read: {e}") from e
    fields = dict(line.split(": ", 1) for line in control.splitlines() if line[:1].isalpha() and ": " in line)
    name, version, architecture = (fields.get(key, "") for key in ("Package", "Version", "Architecture"))
    return Deb(name, version, architecture, hashlib.sha256(data).hexdigest(), control, tree)


def _members(data: bytes) -> dict[str, bytes]:
    """Of an ar archive."""
    if not data.startswith(_MAGIC):
        raise DebError("it is no ar archive")
    members, at = {}, len(_MAGIC)
    while at + 60 <= len(data):
        name, size = data[at : at + 16].decode().strip().rstrip("/"), int(data[at + 48 : at + 58])
        members[name] = data[at + 60 : at + 60 + size]
        at += 60 + size + size % 2
    return members


def _member(members: Mapping[str, bytes], prefix: str) -> bytes:
    name = next((name for name in members if name.startswith(prefix)), "")
    if not name:
        raise DebError(f"it holds no {prefix}")
    if name.endswith(".zst"):
        raise DebError("it is compressed by zstd, as Ubuntu's are and Debian's are not")
    return members[name]
