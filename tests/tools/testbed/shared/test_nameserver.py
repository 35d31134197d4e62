"""The testbed's name server, asked as resolvers do."""

import struct

import pytest

from tools.testbed.shared.nameserver import answer

NAMES = {"kubernetes.default.svc.cluster.local": "10.96.0.1", "broken.example": "SERVFAIL"}
A, AAAA = 1, 28


def query(name: str, kind: int) -> bytes:
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return b"\x12\x34" + struct.pack(">5H", 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">HH", kind, 1)


@pytest.mark.parametrize(
    ("name", "kind", "code", "addresses"),
    [
        pytest.param("kubernetes.default.svc.cluster.local", A, 0, [b"\x0a\x60\x00\x01"], id="a name it knows"),
        pytest.param("Kubernetes.Default.svc.cluster.local", A, 0, [b"\x0a\x60\x00\x01"], id="in capitals"),
        pytest.param("kubernetes.default.svc.cluster.local", AAAA, 0, [], id="that has no IPv6 address"),
        pytest.param("nowhere.example", A, 3, [], id="a name it does not know"),
        pytest.param("broken.example", A, 2, [], id="one that it is to fail at"),
    ],
)
def test_what_it_answers(name, kind, code, addresses):
    asked = query(name, kind)
    reply = answer(asked, NAMES)
    number, flags, questions, answers, *_ = struct.unpack(">6H", reply[:12])
    assert (0x1234, code, 1, len(addresses)) == (number, flags & 0xF, questions, answers)
    assert asked[12:] == reply[12 : len(asked)]
    assert addresses == [reply[-4:]] * answers
