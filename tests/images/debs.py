"""Packages of Debian, made up: small, and with what the image leaves out."""

import io
import struct
import tarfile
from collections.abc import Mapping

from images.tree import Entry, file, to_tar

MACHINES = {"amd64": 62, "arm64": 183}


def deb(name: str, tree: Mapping[str, Entry], *, version: str = "1.0", compression: str = "xz") -> bytes:
    control = f"Package: {name}\nVersion: {version}\nArchitecture: amd64\nDescription: made up\n and small\n"
    members = {
        "debian-binary": b"2.0\n",
        "control.tar.xz": packed({"control": file(control.encode())}, "xz"),
        f"data.tar.{compression}": packed(tree, compression),
    }
    written = b"!<arch>\n"
    for member, data in members.items():
        written += (
            f"{member:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(data):<10}`\n".encode() + data + b"\n" * (len(data) % 2)
        )
    return written


def packed(tree: Mapping[str, Entry], compression: str) -> bytes:
    if compression == "zst":
        return b"\x28\xb5\x2f\xfd"
    plain, written = to_tar(tree, 0), io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(plain)) as source,
        tarfile.open(fileobj=written, mode=f"w:{compression}") as target,  # type: ignore[call-overload]
    ):
        for member in source:
            content = source.extractfile(member) if member.isreg() else None
            member.name = f"./{member.name}"
            target.addfile(member, content)
    return written.getvalue()


def elf(*needed: str, machine: str = "amd64") -> bytes:
    """A shared library that is linked with these."""
    strings = b"\0" + b"".join(name.encode() + b"\0" for name in needed)
    places = [strings.index(b"\0" + name.encode() + b"\0") + 1 for name in needed]
    at = 64 + 2 * 56
    dynamic = b"".join(struct.pack("<qQ", 1, place) for place in places)
    dynamic += struct.pack("<qQ", 5, 0x1000 + at + len(dynamic) + 32) + struct.pack("<qQ", 0, 0)
    whole = at + len(dynamic) + len(strings)
    header = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    header += struct.pack("<HHIQQQIHHHHHH", 3, MACHINES[machine], 1, 0, 64, 0, 0, 64, 56, 2, 0, 0, 0)
    segments = struct.pack("<IIQQQQQQ", 1, 5, 0, 0x1000, 0x1000, whole, whole, 4096)
    segments += struct.pack("<IIQQQQQQ", 2, 6, at, 0x1000 + at, 0x1000 + at, len(dynamic), len(dynamic), 8)
    return header + segments + dynamic + strings
