"""A document of one version with a checksum, for bits that a disk has lost: to bytes and back. Pure."""

import zlib

import msgspec

from agent.store.check_states_format import StateInvalid


class _Sealed(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """data: JSON. checksum: its CRC-32. boot_id: "" where it holds for any."""

    version: int
    checksum: int
    data: str
    boot_id: str = ""


class _Version(msgspec.Struct):
    version: int


def seal(data: bytes, version: int, boot_id: str = "") -> bytes:
    return msgspec.json.encode(_Sealed(version, zlib.crc32(data), data.decode(), boot_id))


def unseal(document: bytes, version: int) -> tuple[bytes, str]:
    """Data and boot id. Raises StateInvalid; msgspec.DecodeError, UnicodeError or RecursionError for what does not
    parse."""
    if (found := msgspec.json.decode(document, type=_Version).version) != version:
        raise StateInvalid(f"is of version {found}, ours is {version}")
    sealed = msgspec.json.decode(document, type=_Sealed)
    data = sealed.data.encode()
    if zlib.crc32(data) != sealed.checksum:
        raise StateInvalid("is damaged: its checksum is another")
    return data, sealed.boot_id
