"""Turns the validator's message into one line a user can act on: the key's path, what is wrong, what is allowed."""

import re
import typing
from types import UnionType
from typing import Any

import msgspec

_AT = re.compile(r" - at `(?:key in )?\$(.*)`$")
_UNKNOWN = re.compile(r"^Object contains unknown field `(.*)`$", re.DOTALL)
_MISSING = re.compile(r"^Object missing required field `(.*)`$")
_STEP = re.compile(r"\.([^.\[]+)|\[(\.\.\.|\d+)\]")


def error_line(message: str, root: type[msgspec.Struct]) -> str:
    """One line for a message of msgspec.ValidationError about a value of type `root`."""
    at = _AT.search(message)
    path = at.group(1) if at else ""
    cause = message[: at.start()] if at else message
    key = path.lstrip(".")
    here = _type_at(root, path)
    unknown = _UNKNOWN.match(cause)
    if unknown:
        name = " ".join(unknown.group(1).split())[:64]
        return f"{_join(key, name)}: unknown key; allowed: {', '.join(_keys(here))}"
    missing = _MISSING.match(cause)
    if missing:
        return f"{_join(key, missing.group(1))}: missing; required here: {', '.join(_required(here))}"
    allowed = _choices(here)
    text = " ".join(cause.split())
    return f"{key or 'the file'}: {text[:1].lower()}{text[1:200]}" + (
        f"; allowed: {', '.join(allowed)}" if allowed else ""
    )


def _join(key: str, name: str) -> str:
    return f"{key}.{name}" if key else name


def _type_at(root: Any, path: str) -> Any:  # noqa: ANN401 - types are values here
    """The type that the keys of `path` lead to, None if they lead nowhere."""
    here: Any = root
    for name, _index in _STEP.findall(path):
        here = _bare(here)
        if name:
            fields = {f.encode_name: f.type for f in msgspec.structs.fields(here)} if _is_struct(here) else {}
            here = fields.get(name) if fields else (typing.get_args(here) or (None,))[-1]
        else:
            here = (typing.get_args(here) or (None,))[-1 if typing.get_origin(here) is dict else 0]
    return _bare(here)


def _bare(annotation: Any) -> Any:  # noqa: ANN401
    """The type without Annotated and without `| None`."""
    while True:
        origin = typing.get_origin(annotation)
        if origin is typing.Annotated:
            annotation = typing.get_args(annotation)[0]
        elif origin is UnionType or origin is typing.Union:
            annotation = next(a for a in typing.get_args(annotation) if a is not type(None))
        else:
            return annotation


def _is_struct(annotation: Any) -> bool:  # noqa: ANN401
    return isinstance(annotation, type) and issubclass(annotation, msgspec.Struct)


def _keys(annotation: Any) -> list[str]:  # noqa: ANN401
    return sorted(f.encode_name for f in msgspec.structs.fields(annotation)) if _is_struct(annotation) else []


def _required(annotation: Any) -> list[str]:  # noqa: ANN401
    if not _is_struct(annotation):
        return []
    return sorted(f.encode_name for f in msgspec.structs.fields(annotation) if f.required)


def _choices(annotation: Any) -> list[str]:  # noqa: ANN401
    if typing.get_origin(annotation) is typing.Literal:
        return [str(value) for value in typing.get_args(annotation)]
    return _keys(annotation)
