"""A system bus with systemd behind it, for one property after the other."""

import os
import socket
import struct
import threading
from collections.abc import Mapping
from pathlib import Path

_REPLY, _ERROR, _SIGNAL = 2, 3, 4
Properties = Mapping[tuple[str, str], object]  # by the unit's object and the name of the property


def reply(serial: int, signature: str, value: object, *, order: str = "<") -> bytes:
    """An answer whose body is a variant."""
    body = _variant(order, signature, value)
    return _message(_REPLY, [(5, "u", serial), (8, "g", "v")], body, order)


def error(serial: int, name: str) -> bytes:
    return _message(_ERROR, [(5, "u", serial), (4, "s", name)], b"", "<")


class FakeBus:
    """`silent`: it takes calls and answers none. `refuses`: it knows nobody."""

    def __init__(self, path: Path, properties: Properties, *, silent: bool = False, refuses: bool = False) -> None:
        self.properties, self.silent, self.refuses = dict(properties), silent, refuses
        self.pending = 0  # the most calls that came at once
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(timeout=10)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                try:
                    self._talk(connection)
                except (OSError, EOFError):
                    continue

    def _talk(self, connection: socket.socket) -> None:
        line = _until(connection, b"\r\n")
        wanted = b"\0AUTH EXTERNAL " + str(os.geteuid()).encode().hex().encode() + b"\r\n"
        connection.sendall(b"REJECTED EXTERNAL\r\n" if self.refuses or line != wanted else b"OK 1234deadbeef\r\n")
        _until(connection, b"BEGIN\r\n")
        while True:
            serial, path, member, words = _call(connection)
            if self.silent and member != "Hello":
                continue
            if member == "Hello":
                signal = [(1, "o", "/org/freedesktop/DBus"), (2, "s", "x.y"), (3, "s", "NameAcquired"), (8, "g", "s")]
                text = struct.pack("<I", 4) + b":1.7\0"
                named = _message(_REPLY, [(5, "u", serial), (8, "g", "s")], text, "<")
                connection.sendall(named + _message(_SIGNAL, signal, text, "<"))
                continue
            value = self.properties.get((path.rpartition("/")[2], words[1]))
            if value is None:
                connection.sendall(error(serial, "org.freedesktop.DBus.Error.UnknownProperty"))
            elif isinstance(value, PermissionError):
                connection.sendall(error(serial, "org.freedesktop.DBus.Error.AccessDenied"))
            else:
                connection.sendall(reply(serial, "s" if isinstance(value, str) else "t", value))


def _until(connection: socket.socket, end: bytes) -> bytes:
    found = b""
    while not found.endswith(end):
        found += _exactly(connection, 1)
    return found


def _exactly(connection: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        if not (more := connection.recv(count - len(found))):
            raise EOFError
        found += more
    return found


def _call(connection: socket.socket) -> tuple[int, str, str, list[str]]:
    head = _exactly(connection, 16)
    body, serial, size = struct.unpack("<III", head[4:])
    rest = _exactly(connection, size + -size % 8 + body)
    place, fields = 0, dict[int, str]()
    while place < size:
        place += -place % 8
        code, kind = rest[place], chr(rest[place + 2])
        text, place = _text_at(rest, place + 4, 1 if kind == "g" else 4)
        fields[code] = text
    place, words = size + -size % 8, list[str]()
    for _ in fields.get(8, ""):
        place += -place % 4
        text, place = _text_at(rest, place, 4)
        words.append(text)
    return serial, fields[1], fields[3], words


def _text_at(data: bytes, place: int, size: int) -> tuple[str, int]:
    length = data[place] if size == 1 else struct.unpack_from("<I", data, place)[0]
    start = place + size
    return data[start : start + length].decode(), start + length + 1


def _message(kind: int, fields: list[tuple[int, str, object]], body: bytes, order: str) -> bytes:
    packed = b""
    for code, signature, value in fields:
        packed += b"\0" * (-len(packed) % 8) + bytes([code]) + _variant(order, signature, value, 1)
    head = struct.pack(f"{order}cBBBIII", b"l" if order == "<" else b"B", kind, 0, 1, len(body), 9, len(packed))
    return head + packed + b"\0" * (-len(packed) % 8) + body


def _variant(order: str, signature: str, value: object, at: int = 0) -> bytes:
    """`at`: the place of its first byte."""
    begin = bytes([1, ord(signature), 0])
    if signature == "g":
        return begin + bytes([len(str(value))]) + str(value).encode() + b"\0"
    pad = b"\0" * (-(at + len(begin)) % (8 if signature == "t" else 4))
    if signature in ("s", "o"):
        text = str(value).encode()
        return begin + pad + struct.pack(f"{order}I", len(text)) + text + b"\0"
    return begin + pad + struct.pack(f"{order}{'Q' if signature == 't' else 'I'}", value)
