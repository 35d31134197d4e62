"""JSON by the rules of Go's encoding/json, which every runtime and CNI plugin reads its configuration with. Pure.

Syntax: UTF-8 alone, so a byte order mark or UTF-16 is refused; invalid bytes inside a text become U+FFFD, and so do
lone surrogates; 10,000 levels at most; a number that no float64 holds is refused. Structs: keys match without case;
null leaves a field as it was; of a key that is there twice the last counts, and the first is checked all the same.

A child process runs this for each look. It imports nothing that takes long: not `json`, `re`, `typing` or `enum`.
"""

from __future__ import annotations

from _json import scanstring

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    Field = Callable[[Any, Any, "Order"], Any]  # value so far, value that is decoded, order of keys
    Order = Callable[["Object"], Iterable[tuple[str, Any]]]

DEPTH_LIMIT = 10_000
REPLACEMENT = "\ufffd"
BYTE_ORDER_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_WHITE = " \t\r\n"
_DIGITS = "0123456789"
_CLOSING = {"{": "}", "[": "]"}
_WORDS = {"t": ("true", True), "f": ("false", False), "n": ("null", None)}


class Object(dict):  # type: ignore[type-arg]  # of any JSON values
    """What a map of Go's holds. `pairs`: as they are written, with every key that is there twice."""

    __slots__ = ("pairs",)

    def __init__(self) -> None:
        super().__init__()
        self.pairs: list[tuple[str, Any]] = []

    def add(self, name: str, value: Any) -> None:  # noqa: ANN401 - any JSON value
        self.pairs.append((name, value))
        self[name] = value


def decoded(data: bytes, depth_limit: int = DEPTH_LIMIT) -> Any:  # noqa: ANN401 - any JSON value
    """The value: Object, list, str, float, bool or None. Raises ValueError, which says what is wrong, and where."""
    if data.startswith(BYTE_ORDER_MARKS):
        raise ValueError("it begins with a byte order mark: it has to be UTF-8 without one")
    text = _characters(data)
    containers: list[Any] = []
    names: list[str] = []  # of the open objects: the key whose value comes next
    at = 0
    while True:
        at = _after_white(text, at)
        opening = text[at : at + 1]
        value: Any
        if opening in _CLOSING:
            if len(containers) == depth_limit:
                raise _wrong(text, at, "too many levels")
            value = Object() if opening == "{" else []
            at = _after_white(text, at + 1)
            if text[at : at + 1] == _CLOSING[opening]:
                at += 1
            else:
                containers.append(value)
                if opening == "{":
                    name, at = _name(text, at)
                    names.append(name)
                continue
        else:
            value, at = _scalar(text, at)
        value, at, is_whole = _closed(text, at, value, containers, names)
        if is_whole:
            return value


def _closed(text: str, at: int, value: Any, containers: list[Any], names: list[str]) -> tuple[Any, int, bool]:  # noqa: ANN401
    """Puts a value into its container, and that one into its own where it ends. Whether nothing follows."""
    while containers:
        container = containers[-1]
        is_object = isinstance(container, Object)
        if is_object:
            container.add(names[-1], value)
        else:
            container.append(value)
        at = _after_white(text, at)
        ending = text[at : at + 1]
        if ending == ",":
            at += 1
            if is_object:
                names[-1], at = _name(text, _after_white(text, at))
            return value, at, False
        if ending != ("}" if is_object else "]"):
            raise _wrong(text, at, "no comma, and no end of the object or list")
        at += 1
        value = containers.pop()
        if is_object:
            names.pop()
    at = _after_white(text, at)
    if at < len(text):
        raise _wrong(text, at, "more than one value")
    return value, at, True


def folded(name: str) -> str:
    """A key as structs compare it, whose fields have ASCII names."""
    return name.lower().replace("\u017f", "s")  # the Kelvin sign's lower case is k; the long s is lower case itself


def as_written(value: Object) -> Iterable[tuple[str, Any]]:
    return value.pairs


def as_marshalled(value: Object) -> Iterable[tuple[str, Any]]:
    """As a map of Go's is written: each key once, in the order of bytes."""
    return sorted(value.items(), key=lambda pair: pair[0])


def struct(fields: Mapping[str, Field]) -> Field:
    """A struct of these fields, by folded name. It decodes into a dict, and raises TypeError as Go does."""

    def decode(so_far: Any, value: Any, order: Order) -> Any:  # noqa: ANN401 - any JSON value
        found = so_far or {}
        if value is None:
            return found
        if not isinstance(value, Object):
            raise TypeError(f"{_called(value)} instead of an object")
        for key, item in order(value):
            name = folded(key)
            if name in fields:
                try:
                    found[name] = fields[name](found.get(name), item, order)
                except TypeError as e:
                    raise TypeError(f"{key}: {e}") from None
        return found

    return decode


def text(so_far: Any, value: Any, _order: Order) -> Any:  # noqa: ANN401 - any JSON value
    return so_far if value is None else _of(str, value, "a text")


def flag(so_far: Any, value: Any, _order: Order) -> Any:  # noqa: ANN401 - any JSON value
    return so_far if value is None else _of(bool, value, "true or false")


def anything(_so_far: Any, value: Any, _order: Order) -> Any:  # noqa: ANN401 - any JSON value
    return value


def map_of(item: Field) -> Field:
    def decode(so_far: Any, value: Any, order: Order) -> Any:  # noqa: ANN401 - any JSON value
        if value is None:
            return None
        _of(Object, value, "an object")
        return {**(so_far or {}), **{key: item(None, one, order) for key, one in order(value)}}

    return decode


def list_of(item: Field) -> Field:
    def decode(_so_far: Any, value: Any, order: Order) -> Any:  # noqa: ANN401 - any JSON value
        return None if value is None else [item(None, one, order) for one in _of(list, value, "a list")]

    return decode


def _of(kind: type, value: Any, wanted: str) -> Any:  # noqa: ANN401 - any JSON value
    if not isinstance(value, kind):
        raise TypeError(f"{_called(value)} instead of {wanted}")
    return value


def _called(value: Any) -> str:  # noqa: ANN401 - any JSON value
    kinds = ((Object, "an object"), (list, "a list"), (str, "a text"), (bool, "a truth value"), (float, "a number"))
    return next((name for kind, name in kinds if isinstance(value, kind)), "null")


def _characters(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return _whole(data.decode(errors="surrogateescape"))  # one for each byte, as in Go


def _whole(text: str) -> str:
    """Surrogates, which are no characters, become U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join(REPLACEMENT if "\ud800" <= character <= "\udfff" else character for character in text)
    return text


def _after_white(text: str, at: int) -> int:
    while text[at : at + 1] in _WHITE and at < len(text):
        at += 1
    return at


def _name(text: str, at: int) -> tuple[str, int]:
    """A key and where its value begins. Raises ValueError."""
    if text[at : at + 1] != '"':
        raise _wrong(text, at, "no key of an object")
    name, at = _string(text, at)
    at = _after_white(text, at)
    if text[at : at + 1] != ":":
        raise _wrong(text, at, "no colon after a key")
    return name, at + 1


def _string(text: str, at: int) -> tuple[str, int]:
    try:
        found, end = scanstring(text, at + 1, True)
    except (ValueError, SystemError):  # SystemError: before CPython 3.13 it does not import the class of its own errors
        raise _wrong(text, at, "a text with no end, a control character or an invalid escape") from None
    return _whole(found), end


def _scalar(text: str, at: int) -> tuple[Any, int]:
    first = text[at : at + 1]
    if first == '"':
        return _string(text, at)
    word, value = _WORDS.get(first, ("", None))
    if word and text.startswith(word, at):
        return value, at + len(word)
    if first and first in "-" + _DIGITS:
        return _number(text, at)
    raise _wrong(text, at, "no value")


def _number(text: str, at: int) -> tuple[float, int]:
    begin, at = at, at + (text[at] == "-")
    end = at + 1 if text[at : at + 1] == "0" else _after_digits(text, at)
    if text[end : end + 1] == ".":
        end = _after_digits(text, end + 1)
    if text[end : end + 1] in ("e", "E"):
        end += 1
        end = _after_digits(text, end + (text[end : end + 1] in ("+", "-")))
    value = float(text[begin:end])
    if value in (float("inf"), float("-inf")):
        raise _wrong(text, begin, "a number that is too large")
    return value, end


def _after_digits(text: str, at: int) -> int:
    """At least one. Raises ValueError."""
    end = at
    while text[end : end + 1] in _DIGITS and end < len(text):
        end += 1
    if end == at:
        raise _wrong(text, at, "a number with no digit")
    return end


def _wrong(text: str, at: int, what: str) -> ValueError:
    begin = text.rfind("\n", 0, at) + 1
    where = f"line {text.count(chr(10), 0, at) + 1}, character {at - begin + 1}"
    return ValueError(f"{where}: {what if at < len(text) else 'the text ends'}")
