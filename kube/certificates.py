"""When a certificate begins and ends, read from its bytes. Pure."""

import binascii
import re
from datetime import UTC, datetime

from kube.times import format_time

PEM = re.compile(rb"-----BEGIN CERTIFICATE-----\s(.*?)-----END CERTIFICATE-----", re.DOTALL)
_SEQUENCE, _UTC_TIME, _GENERALIZED_TIME, _VERSION = 0x30, 0x17, 0x18, 0xA0


class NoCertificateError(Exception):
    """The bytes hold no readable certificate."""


def not_valid(pem: bytes, wall: float) -> str:
    """Returns in words why the first certificate is not valid at this time; "" if it is valid, or unreadable."""
    try:
        begins, ends = validity(pem)
    except NoCertificateError:
        return ""
    if wall >= ends:
        return f"it ended at {format_time(ends)}"
    if wall < begins:
        return f"it is not valid before {format_time(begins)}, and the clock of this machine shows {format_time(wall)}"
    return ""


def validity(pem: bytes) -> tuple[float, float]:
    """Returns when the first certificate begins and ends (wall). Raises NoCertificateError."""
    try:
        _, (tag, dates) = _issuer_and_validity(pem)
        begins, ends = (_time(*date) for date in _fields(dates))
        if tag != _SEQUENCE:
            raise NoCertificateError("its certificate does not parse")
    except (ValueError, IndexError) as e:
        raise NoCertificateError("its certificate does not parse") from e
    return begins, ends


def issuer(pem: bytes) -> bytes:
    """Returns the issuer of the first certificate, with its names in DER. Raises NoCertificateError."""
    try:
        return _issuer_and_validity(pem)[0][1]
    except (ValueError, IndexError) as e:
        raise NoCertificateError("its certificate does not parse") from e


def _issuer_and_validity(pem: bytes) -> tuple[tuple[int, bytes], tuple[int, bytes]]:
    """Returns tag and content of each. Raises NoCertificateError, IndexError, ValueError."""
    block = PEM.search(pem)
    if block is None:
        raise NoCertificateError("holds no certificate")
    certificate = _inside(binascii.a2b_base64(block[1]), _SEQUENCE)
    fields = _fields(_inside(certificate, _SEQUENCE))
    # Certificate: version (if given), serial number, signature algorithm, issuer, validity.
    place = 3 if fields[0][0] == _VERSION else 2
    return fields[place], fields[place + 1]


def _inside(der: bytes, tag: int) -> bytes:
    """Returns the content of the first value, which must have this tag."""
    found, content, _ = _value(der)
    if found != tag:
        raise ValueError(found)
    return content


def _fields(der: bytes) -> list[tuple[int, bytes]]:
    """Returns (tag, content) of the first five consecutive values: the rest of a certificate is not needed."""
    found: list[tuple[int, bytes]] = []
    while der and len(found) < 5:
        tag, content, der = _value(der)
        found.append((tag, content))
    return found


def _value(der: bytes) -> tuple[int, bytes, bytes]:
    """Returns tag, content, and the remaining bytes. Raises IndexError, ValueError."""
    tag, length, at = der[0], der[1], 2
    if length & 0x80:
        more = length & 0x7F
        if not 1 <= more <= 4:
            raise ValueError(length)
        length, at = int.from_bytes(der[2 : 2 + more], "big"), 2 + more
    if len(der) < at + length:
        raise ValueError(length)
    return tag, der[at : at + length], der[at + length :]


def _time(tag: int, text: bytes) -> float:
    """The two digits of a year in UTCTime are of 1950 to 2049."""
    digits = text.decode("ascii")
    if tag == _UTC_TIME:
        digits = ("20" if int(digits[:2]) < 50 else "19") + digits
    elif tag != _GENERALIZED_TIME:
        raise ValueError(tag)
    return datetime.strptime(digits, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()
