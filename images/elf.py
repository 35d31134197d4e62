"""What an executable or shared library says of itself. Pure.

Of 64-bit little-endian files; anything else is not one of ours.
"""

import struct
from dataclasses import dataclass

# e_machine of the ELF header, and Debian's and the Open Container Initiative's word for it.
MACHINES = {62: "amd64", 183: "arm64"}
_HEADER = struct.Struct("<16xHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_ENTRY = struct.Struct("<qQ")
_LOAD, _DYNAMIC = 1, 2
_NEEDED, _STRINGS = 1, 5


@dataclass(frozen=True)
class Elf:
    """machine: amd64, arm64, or the number of another one. needed: names of the shared libraries it is linked with."""

    machine: str
    needed: tuple[str, ...]


def read(data: bytes) -> Elf | None:
    """None for a file that is no 64-bit little-endian ELF."""
    if data[:6] != b"\x7fELF\x02\x01":
        return None
    _, number, _, _, segments_at, _, _, _, size, count, _, _, _ = _HEADER.unpack_from(data)
    segments = [_SEGMENT.unpack_from(data, segments_at + index * size) for index in range(count)]
    entries = [
        _ENTRY.unpack_from(data, offset + at)
        for kind, _, offset, _, _, length, _, _ in segments
        if kind == _DYNAMIC
        for at in range(0, length, _ENTRY.size)
    ]
    machine = MACHINES.get(number, str(number))
    if not (tables := [value for tag, value in entries if tag == _STRINGS]):
        return Elf(machine, ())  # linked statically
    strings = next(
        offset + tables[0] - address
        for kind, _, offset, address, _, length, _, _ in segments
        if kind == _LOAD and address <= tables[0] < address + length
    )
    return Elf(machine, tuple(_text(data, strings + value) for tag, value in entries if tag == _NEEDED))


def loaded(data: bytes) -> bytes:
    """What a loader maps of it, which ends before debug information, symbols for linkers and section headers; any other
    file as it is."""
    if data[:6] != b"\x7fELF\x02\x01":
        return data
    *begin, segments_at, _, flags, header_size, size, count, _, _, _ = _HEADER.unpack_from(data)
    segments = [_SEGMENT.unpack_from(data, segments_at + index * size) for index in range(count)]
    end = max(segments_at + count * size, *(offset + length for _, _, offset, _, _, length, _, _ in segments))
    header = _HEADER.pack(*begin, segments_at, 0, flags, header_size, size, count, 0, 0, 0)
    return data[:16] + header[16:] + data[len(header) : end]


def _text(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode()
