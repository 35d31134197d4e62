"""A list that comes as one message, item by item: the same as read at once, whatever it holds."""

import random

import pytest
from google.protobuf.message import DecodeError

from agent.cri import api_pb2 as cri
from agent.cri.convert import ANNOTATION_RESTART_COUNT, lighter
from agent.cri.messages import MalformedError, items_of
from tools.kit.scope import draws


def listed(*texts: str) -> bytes:
    return bytes(cri.ListContainersResponse(containers=[cri.Container(id=text) for text in texts]).SerializeToString())


MORE = b"\x10\x96\x01" + b"\x1a\x02hi" + b"\x21" + b"8" * 8 + b"\x2d" + b"4" * 4  # fields 2 to 5, of each form


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        pytest.param(b"", [], id="none"),
        pytest.param(listed("a", "", "b" * 300), ["a", "", "b" * 300], id="three"),
        pytest.param(MORE + listed("a") + MORE + listed("b") + MORE, ["a", "b"], id="among fields of a later version"),
    ],
)
def test_items(message: bytes, expected: list[str]) -> None:
    assert expected == [cri.Container.FromString(one).id for one in items_of(message)]
    assert expected == [one.id for one in cri.ListContainersResponse.FromString(message).containers]


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(listed("abc")[:-1], id="cut in an item"),
        pytest.param(b"\x0a", id="cut before its length"),
        pytest.param(b"\x0a\xff", id="cut in its length"),
        pytest.param(b"\x0a" + b"\xff" * 10 + b"\x01", id="a length without end"),
        pytest.param(b"\x10", id="cut in a number"),
        pytest.param(b"\x21" + b"8" * 7, id="cut in eight bytes"),
        pytest.param(b"\x02\x00", id="field 0"),
        pytest.param(b"\x0f", id="a form that there is none"),
        pytest.param(b"\xff" * 64, id="nothing of it all"),
    ],
)
def test_what_is_no_message(message: bytes) -> None:
    for read in (lambda: list(items_of(message)), lambda: cri.ListContainersResponse.FromString(message)):
        with pytest.raises((DecodeError, MalformedError)):
            read()


def test_any_bytes_are_read_as_protobuf_reads_them(seed: int) -> None:
    """Or refused: groups, which no message of the CRI has, are not passed over."""
    draw = random.Random(seed)
    for _ in range(draws(400, 2000)):
        message = bytearray(MORE + listed("a", "b" * draw.randrange(300)) + MORE)
        for _ in range(draw.choice((0, 1, 1, 2))):
            message[draw.randrange(len(message))] = draw.randrange(256)
        found, ours = whole(bytes(message)), one_by_one(bytes(message))
        assert found is None or ours in (None, found), bytes(message)


def whole(message: bytes) -> list[str] | None:
    try:
        return [one.id for one in cri.ListContainersResponse.FromString(message).containers]
    except DecodeError:
        return None


def one_by_one(message: bytes) -> list[str] | None:
    try:
        return [cri.Container.FromString(one).id for one in items_of(message)]
    except (DecodeError, MalformedError):
        return None


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        pytest.param({}, {}, id="none"),
        pytest.param({ANNOTATION_RESTART_COUNT: "3"}, {ANNOTATION_RESTART_COUNT: "3"}, id="the one that is looked at"),
        pytest.param({ANNOTATION_RESTART_COUNT: "3", "a": "b"}, {ANNOTATION_RESTART_COUNT: "3"}, id="another one too"),
        pytest.param({"a": "b" * 5000}, {}, id="one that is long"),
    ],
)
def test_what_is_kept_of_an_item(annotations: dict[str, str], expected: dict[str, str]) -> None:
    one = cri.Container(id="a", labels={"l": "m"}, annotations=annotations)
    assert cri.Container(id="a", labels={"l": "m"}, annotations=expected) == lighter(one)
