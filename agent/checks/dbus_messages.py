"""Messages of D-Bus, as far as a client needs them that reads properties of systemd. Pure.

Written after the D-Bus specification 0.42: message format, marshalling, and the interface
org.freedesktop.DBus.Properties.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

HEAD_BYTES = 16
MESSAGE_LIMIT_BYTES = 2**20
_CALL, REPLY, ERROR = 1, 2, 3
_PATH, _INTERFACE, _MEMBER, _ERROR_NAME, _REPLY_SERIAL, _DESTINATION, _SIGNATURE = 1, 2, 3, 4, 5, 6, 8
_NUMBERS = {"y": "B", "n": "h", "q": "H", "i": "i", "u": "I", "x": "q", "t": "Q", "d": "d", "b": "I"}
_ALIGNMENTS = {"s": 4, "o": 4, "g": 1}

Value = str | int | float


class MalformedError(ValueError):
    """A message that does not follow the specification, or has a type that is not read here."""


@dataclass(frozen=True, slots=True)
class Message:
    kind: int
    serial: int = 0  # of the call that it answers
    error: str = ""  # its name; empty: it is no error
    value: Value | None = None  # the first of the body


def call(serial: int, destination: str, path: str, interface: str, member: str, words: Sequence[str] = ()) -> bytes:
    """A method call whose arguments are texts."""
    body = bytearray()
    for word in words:
        _pad(body, 4)
        body += _text(word)
    fields = bytearray()
    given = [(_PATH, "o", path), (_INTERFACE, "s", interface), (_MEMBER, "s", member), (_DESTINATION, "s", destination)]
    for code, kind, text in given:
        _pad(fields, 8)
        fields += bytes([code, 1, ord(kind), 0]) + _text(text)
    if words:
        _pad(fields, 8)
        signature = b"s" * len(words)
        fields += bytes([_SIGNATURE, 1, ord("g"), 0, len(signature)]) + signature + b"\0"
    head = bytearray(struct.pack("<cBBBIII", b"l", _CALL, 0, 1, len(body), serial, len(fields)) + fields)
    _pad(head, 8)
    return bytes(head + body)


def size_of(head: bytes) -> int:
    """How many bytes the message has that begins with these HEAD_BYTES. Raises MalformedError."""
    order = _order(head)
    body, fields = struct.unpack_from(f"{order}I", head, 4)[0], struct.unpack_from(f"{order}I", head, 12)[0]
    size = HEAD_BYTES + fields + -fields % 8 + body
    if size > MESSAGE_LIMIT_BYTES:
        raise MalformedError(f"a message of {size} bytes")
    return int(size)


def read(message: bytes) -> Message:
    """A whole message. Raises MalformedError."""
    try:
        return _read(message)
    except (struct.error, IndexError, UnicodeDecodeError) as e:
        raise MalformedError(f"a message that cannot be read: {e}") from e


def _read(message: bytes) -> Message:
    order = _order(message)
    end = HEAD_BYTES + struct.unpack_from(f"{order}I", message, 12)[0]
    place, fields = HEAD_BYTES, dict[int, Value]()
    while place < end:
        place += -place % 8
        code = message[place]
        fields[code], place = _variant(order, message, place + 1)
    place += -place % 8
    signature, value = str(fields.get(_SIGNATURE, "")), None
    if signature[:1] == "v":
        value, _ = _variant(order, message, place)
    elif signature[:1] == "s":
        value, _ = _value(order, "s", message, place)
    serial = fields.get(_REPLY_SERIAL, 0)
    if not isinstance(serial, int):
        raise MalformedError("a number of a call that is none")
    return Message(message[1], serial, str(fields.get(_ERROR_NAME, "")), value)


def unit_path(unit: str) -> str:
    """The object of a unit of systemd: all but letters and digits are escaped, and a digit at the start."""
    plain = [c.isascii() and (c.isalpha() or (c.isdigit() and place > 0)) for place, c in enumerate(unit)]
    escaped = "".join(
        c if keep else "".join(f"_{byte:02x}" for byte in c.encode()) for c, keep in zip(unit, plain, strict=True)
    )
    return f"/org/freedesktop/systemd1/unit/{escaped}"


def _variant(order: str, message: bytes, place: int) -> tuple[Value, int]:
    length = message[place]
    signature = message[place + 1 : place + 1 + length].decode()
    return _value(order, signature, message, place + length + 2)


def _value(order: str, signature: str, message: bytes, place: int) -> tuple[Value, int]:
    if signature in _NUMBERS:
        form = f"{order}{_NUMBERS[signature]}"
        size = struct.calcsize(form)
        place += -place % size
        return struct.unpack_from(form, message, place)[0], place + size
    if signature not in _ALIGNMENTS:
        raise MalformedError(f"a value of type {signature!r}")
    place += -place % _ALIGNMENTS[signature]
    size = 1 if signature == "g" else 4
    length = message[place] if size == 1 else struct.unpack_from(f"{order}I", message, place)[0]
    text = message[place + size : place + size + length]
    if len(text) < length:
        raise MalformedError("a text that is cut off")
    return text.decode(), place + size + length + 1


def _order(message: bytes) -> str:
    orders = {b"l": "<", b"B": ">"}
    if len(message) < HEAD_BYTES or message[:1] not in orders:
        raise MalformedError("no message of D-Bus")
    return orders[message[:1]]


def _text(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack("<I", len(encoded)) + encoded + b"\0"


def _pad(to: bytearray, size: int) -> None:
    to += b"\0" * (-len(to) % size)
