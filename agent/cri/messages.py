"""A list that comes as one message, taken apart: read at once its items take five times their bytes. Pure.

All lists of the CRI have their items in the field 1, and nothing else that we know.
"""

from collections.abc import Iterator

_ITEM = 1 << 3 | 2  # field 1, with a length
_WIDTHS = {1: 8, 5: 4}  # of a field's other forms
_LONGEST = 10


class MalformedError(Exception):
    """It is no message; the text says why."""


def items_of(message: bytes) -> Iterator[bytes]:
    """Each as it came; fields of later versions are passed over. Raises MalformedError."""
    at, end = 0, len(message)
    while at < end:
        tag, at = _number(message, at)
        form = tag & 7
        if form == 0:
            _, at = _number(message, at)
            continue
        if form == 2:
            size, at = _number(message, at)
        elif form in _WIDTHS:
            size = _WIDTHS[form]
        else:
            raise MalformedError("a form of field that there is none")
        if tag < 8 or size > end - at:
            raise MalformedError("a field that has no number, or goes beyond the end")
        if tag == _ITEM:
            yield message[at : at + size]
        at += size


def _number(message: bytes, at: int) -> tuple[int, int]:
    """As protobuf writes one, and where the next thing begins. Raises MalformedError."""
    value = 0
    for place, byte in enumerate(message[at : at + _LONGEST]):
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value, at + place + 1
    raise MalformedError("a number without an end")
