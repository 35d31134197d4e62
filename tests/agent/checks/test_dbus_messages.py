"""Messages of D-Bus: what is written can be read, and what cannot be read is refused."""

import random
import struct

import pytest

from agent.checks.dbus_messages import (
    HEAD_BYTES,
    REPLY,
    MalformedError,
    Message,
    call,
    read,
    size_of,
    unit_path,
)
from tools.fakes.system_bus import reply
from tools.kit.cases import cases


def test_a_call_is_as_the_specification_has_it() -> None:
    """The bytes are written out by hand from its chapters on the message format and on marshalling."""
    expected = (
        b"l\x01\x00\x01\x00\x00\x00\x00\x01\x00\x00\x00\x6d\x00\x00\x00"
        b"\x01\x01o\x00\x15\x00\x00\x00/org/freedesktop/DBus\x00\x00\x00"
        b"\x02\x01s\x00\x14\x00\x00\x00org.freedesktop.DBus\x00\x00\x00\x00"
        b"\x03\x01s\x00\x05\x00\x00\x00Hello\x00\x00\x00"
        b"\x06\x01s\x00\x14\x00\x00\x00org.freedesktop.DBus\x00\x00\x00\x00"
    )
    bus = "org.freedesktop.DBus"
    assert expected == call(1, bus, "/org/freedesktop/DBus", bus, "Hello")


@cases(
    "signature, value",
    ("a text", "s", "active"),
    ("an empty text", "s", ""),
    ("a text beyond ASCII", "s", "aktiv-ä"),
    ("a number of 32 bits", "u", 7),
    ("a number of 64 bits", "t", 2**40),
    ("yes", "b", 1),
)
def test_a_property_is_read(signature: str, value: object) -> None:
    for order in "<>":
        message = reply(5, signature, value, order=order)
        assert (len(message), Message(REPLY, 5, "", value)) == (size_of(message[:HEAD_BYTES]), read(message))


@cases(
    "unit, path",
    ("a service", "kubelet.service", "kubelet_2eservice"),
    ("a digit at the start", "9p.mount", "_39p_2emount"),
    ("a digit inside", "nfs4.mount", "nfs4_2emount"),
    ("an instance", "getty@tty1.service", "getty_40tty1_2eservice"),
    ("an escaped path", "var-lib-a\\x2db.mount", "var_2dlib_2da_5cx2db_2emount"),
)
def test_a_unit_has_an_object(unit: str, path: str) -> None:
    assert f"/org/freedesktop/systemd1/unit/{path}" == unit_path(unit)


def test_whatever_bytes_come_are_read_or_refused(seed: int) -> None:
    draw, good = random.Random(seed), reply(5, "s", "active")
    for _ in range(3000):
        message = bytearray(good[: draw.randrange(len(good) + 1)])
        for _ in range(draw.randrange(4)):
            if message:
                message[draw.randrange(len(message))] = draw.randrange(256)
        try:
            size_of(bytes(message))
            read(bytes(message))
        except MalformedError:
            continue


def test_a_message_that_is_too_large_is_refused() -> None:
    with pytest.raises(MalformedError, match="a message of "):
        size_of(struct.pack("<cBBBIII", b"l", REPLY, 0, 1, 2**30, 1, 8))
