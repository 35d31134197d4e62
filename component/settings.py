"""Configuration files: YAML -> frozen sections, or SettingsError: one line, `key: what is wrong, allowed: what`.

Unknown keys, keys given twice and wrong types are refused, and so are YAML's aliases, which can grow without bound.
A rule across keys of a section: its `__post_init__` raises ValueError("key: what is wrong, allowed: what").
"""

import types
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
import yaml

from component.text import one_line

_KEY = "a key that is not text, allowed: text, in quotes if it is a number, yes, no, on, off or null"
_WORDS = {bool: "true or false", str: "text", int: "a whole number", float: "a number", type(None): "null"}
T = TypeVar("T")


class SettingsError(Exception):
    """The configuration cannot be used. The text is one line: file, key, what is wrong, what is allowed there."""

    def __init__(self, text: str) -> None:
        super().__init__(one_line(text, 1000))


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A mapping of the file; its fields are the keys, in camel case. Meta(description=...) says what is allowed."""


def read(path: str | Path, parse: Callable[[bytes], T]) -> T:
    """What `parse` makes of the bytes of a file. Raises SettingsError, its own and those of `parse`, with the path."""
    try:
        return parse(Path(path).read_bytes())
    except (OSError, SettingsError) as e:
        unread = f"cannot be read: {getattr(e, 'strerror', '')}, allowed: a file that this user may read"
        raise SettingsError(f"{path}: {unread if isinstance(e, OSError) else e}") from e


def document(text: bytes | str) -> Any:  # noqa: ANN401 - mappings, lists and scalars
    """One YAML document, {} for an empty text. Raises SettingsError, with line and column where they are known."""
    try:
        found = _Loader(text if isinstance(text, str) else text.decode()).get_single_data()
    except yaml.MarkedYAMLError as e:
        where = f"line {mark.line + 1}, column {mark.column + 1}" if (mark := e.problem_mark) else "not YAML"
        raise SettingsError(f"{where}: {e.problem or e.context}") from e
    except Exception as e:  # the package has no type of its own for a number, date or tag that it cannot read
        raise SettingsError(f"not YAML: {'nested too deeply' if isinstance(e, RecursionError) else e}") from e
    return {} if found is None else found


def convert(value: object, root: type[T]) -> T:
    """A document as section `root`. Raises SettingsError."""
    try:
        return msgspec.convert(value, root)
    except msgspec.ValidationError as e:
        rule, _, at = str(e).rstrip("`").partition(" - at `$")  # other faults come from a __post_init__
        raise SettingsError(next(_faults(root, value, ""), _join(at.strip("."), rule) if at else rule)) from e


class _Loader(yaml.SafeLoader):
    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:  # noqa: ANN401 - the key's node, too
        if self.check_event(yaml.AliasEvent):
            mark = self.get_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(problem="an alias, allowed: the value itself", problem_mark=mark)
        node = super().compose_node(parent, index)
        if isinstance(node, yaml.ScalarNode):
            try:  # two halves, as JSON escapes a character, are one
                node.value = node.value.encode("utf-16", "surrogatepass").decode("utf-16")
            except UnicodeDecodeError as e:
                what = f"{index.value}: half a character" if isinstance(index, yaml.Node) else "half a character"
                raise yaml.MarkedYAMLError(problem=f"{what}, allowed: whole ones", problem_mark=node.start_mark) from e
        return node

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:  # noqa: ANN401
        node = super().compose_mapping_node(anchor)
        seen: set[str] = set()
        for key, _ in node.value:
            text = key.tag == "tag:yaml.org,2002:str"
            if not text or key.value in seen:
                what = f"the key {key.value} is given twice, allowed: once" if text else _KEY
                raise yaml.MarkedYAMLError(problem=what, problem_mark=key.start_mark)
            seen.add(key.value)
        return node


def _faults(kind: Any, value: Any, path: str) -> Iterator[str]:  # noqa: ANN401 - types are values here
    """Yields a line for each part of `value` that is not of type `kind`."""
    inside = _inside(kind, value)
    if inside is None:
        try:
            msgspec.convert(value, kind)
        except msgspec.ValidationError:
            yield f"{path}{path and ': '}is {_shown(value)}, allowed: {_allowed(kind)}"
    elif _is_section(inside):
        fields = {field.encode_name: field for field in msgspec.structs.fields(inside)}
        keys = ", ".join(fields)
        yield from (f"{_join(path, key)}: unknown key, allowed: {keys}" for key in value if key not in fields)
        for key, field in fields.items():
            if key in value:
                yield from _faults(field.type, value[key], _join(path, key))
            elif field.required:
                yield f"{_join(path, key)}: missing, allowed: {_allowed(field.type)}"
    else:
        for place, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _faults(typing.get_args(inside)[isinstance(value, dict)], item, _join(path, place))


def _inside(kind: Any, value: object) -> Any:  # noqa: ANN401
    """The type in `kind` whose parts a mapping or list is to be compared with; None where there is no such."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (Annotated, typing.Union, types.UnionType):
        return next((found for choice in inner if (found := _inside(choice, value))), None)
    wanted = dict if _is_section(kind) else {tuple: list}.get(origin, origin)
    return kind if wanted is type(value) and (value or wanted is dict) else None


def _is_section(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, Section)


def _join(path: str, key: str | int) -> str:
    return f"{path}[{key}]" if isinstance(key, int) else f"{path}{path and '.'}{key}"


def _shown(value: object) -> str:
    if isinstance(value, str):
        return f'the text "{one_line(value, 64)}"'
    if isinstance(value, dict | list):
        return f"{'a' if value else 'an empty'} {'list' if isinstance(value, list) else 'mapping'}"
    huge = isinstance(value, int) and value.bit_length() > 64
    return "empty" if value is None else "a huge number" if huge else one_line(str(value).lower(), 64)


def _allowed(kind: Any) -> str:  # noqa: ANN401
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        return next((meta.description for meta in kind.__metadata__ if meta.description), _allowed(inner[0]))
    if origin in (tuple, dict):
        return f"a {'list' if origin is tuple else 'mapping'}, each {_allowed(inner[origin is dict])}"
    if _is_section(kind):
        return f"a mapping with the keys {', '.join(field.encode_name for field in msgspec.structs.fields(kind))}"
    return (", " if origin is Literal else " or ").join(map(_allowed, inner)) or _WORDS.get(kind) or str(kind)
