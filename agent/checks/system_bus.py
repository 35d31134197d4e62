"""Reads properties of systemd's units over the system bus. Changes nothing."""

import os
import socket
from collections.abc import Mapping, Sequence
from typing import Self

from agent.checks.dbus_messages import ERROR, HEAD_BYTES, REPLY, MalformedError, Message, Value, call, read, size_of
from agent.checks.dbus_messages import unit_path as path_of
from agent.checks.subprocess_reader import Patience

SYSTEMD = "org.freedesktop.systemd1"
_BUS, _PROPERTIES = "org.freedesktop.DBus", "org.freedesktop.DBus.Properties"
_LINE_LIMIT_BYTES = 2**12
PENDING = 60  # calls at once: dbus-daemon allows 128 without an answer to a connection
# The unit or the interface has no such property: older versions of systemd, or units of another type.
LACKING = tuple(f"{_BUS}.Error.{name}" for name in ("UnknownProperty", "UnknownInterface", "InvalidArgs"))


class BusError(Exception):
    """The bus or systemd gave no answer: one line."""


Property = tuple[str, str, str]  # unit, interface without its prefix, name


class SystemBus:
    """A connection. All calls together take at most `within_s`."""

    def __init__(self, path: str, within_s: float) -> None:
        """Raises BusError."""
        self._path, self._patience = path, Patience(within_s)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._serial = 0
        try:
            self._greet()
        except BaseException:
            self._socket.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def properties(self, wanted: Sequence[Property]) -> Mapping[Property, Value]:
        """Those that there are. Raises BusError."""
        found = dict[Property, Value]()
        for first in range(0, len(wanted), PENDING):
            found |= self._some(wanted[first : first + PENDING])
        return found

    def _some(self, wanted: Sequence[Property]) -> dict[Property, Value]:
        serials, found = dict[int, Property](), dict[Property, Value]()
        for asked in wanted:
            unit, interface, name = asked
            words = [f"{SYSTEMD}.{interface}", name]
            serials[self._call(SYSTEMD, path_of(unit), _PROPERTIES, "Get", words)] = asked
        while serials:
            answer = self._answer()
            answered = serials.pop(answer.serial, None)
            if answered is None:
                continue
            if answer.kind == ERROR and answer.error not in LACKING:
                raise BusError(f"{self._path}: {answered[0]}: {answer.error}")
            if answer.kind == REPLY and answer.value is not None:
                found[answered] = answer.value
        return found

    def _greet(self) -> None:
        try:
            self._socket.settimeout(self._left_s())
            self._socket.connect(self._path)
        except OSError as e:
            raise BusError(f"{self._path} cannot be reached ({e.strerror or 'no answer'})") from e
        self._send(b"\0AUTH EXTERNAL " + str(os.geteuid()).encode().hex().encode() + b"\r\n")
        if not (line := self._line()).startswith(b"OK "):
            raise BusError(f"{self._path} refuses this user: {line.decode(errors='replace')}")
        self._send(b"BEGIN\r\n")
        serial = self._call(_BUS, "/org/freedesktop/DBus", _BUS, "Hello")
        while (answer := self._answer()).serial != serial:
            pass
        if answer.kind == ERROR:
            raise BusError(f"{self._path}: {answer.error}")

    def _call(self, destination: str, path: str, interface: str, member: str, words: Sequence[str] = ()) -> int:
        self._serial += 1
        self._send(call(self._serial, destination, path, interface, member, words))
        return self._serial

    def _answer(self) -> Message:
        """The next message, also one that answers nothing."""
        try:
            head = self._bytes(HEAD_BYTES)
            return read(head + self._bytes(size_of(head) - HEAD_BYTES))
        except MalformedError as e:
            raise BusError(f"{self._path}: {e}") from e

    def _line(self) -> bytes:
        line = b""
        while not line.endswith(b"\r\n") and len(line) < _LINE_LIMIT_BYTES:
            line += self._bytes(1)
        return line.rstrip()

    def _bytes(self, count: int) -> bytes:
        found = bytearray()
        while len(found) < count:
            try:
                self._socket.settimeout(self._left_s())
                more = self._socket.recv(count - len(found))
            except OSError as e:
                raise BusError(f"{self._path} gives no answer ({e.strerror or 'too slow'})") from e
            if not more:
                raise BusError(f"{self._path} has closed the connection")
            found += more
        return bytes(found)

    def _send(self, data: bytes) -> None:
        try:
            self._socket.settimeout(self._left_s())
            self._socket.sendall(data)
        except OSError as e:
            raise BusError(f"{self._path} gives no answer ({e.strerror or 'too slow'})") from e

    def _left_s(self) -> float:
        if (left_s := self._patience.left_s()) <= 0:
            raise BusError(f"{self._path} gives no answer (too slow)")
        return left_s
