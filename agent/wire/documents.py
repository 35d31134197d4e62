"""YAML and JSON to values as the kubelet reads its manifests: go-yaml v2 below sigs.k8s.io/yaml. Pure.

Text that begins with a brace is JSON. Of several YAML documents the first counts. `yes`, `on` and `y` are booleans,
`010` is eight, and a date or `1:30` is text.
"""

import math
import re
from collections.abc import Hashable
from typing import Any

import msgspec
import yaml

from component.text import one_line
from kube.objects import UNREADABLE

MOST_ALIASES = 100  # each may stand for a large part of the document
_TAG = "tag:yaml.org,2002:"
_WORDS: dict[str, bool | float | None] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_INT = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))", re.ASCII)
_BASES = (16, 2, 8, 10)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_NUMBER_BEGINS = frozenset("+-.0123456789")


class DocumentError(Exception):
    """It is neither JSON nor YAML, or has what JSON has not. The text is one line."""


def document(data: bytes) -> Any:  # noqa: ANN401 - what JSON has
    """Raises DocumentError."""
    try:
        if data.lstrip().startswith(b"{"):
            return msgspec.json.decode(data)
        return _as_json(next(yaml.load_all(data, _Loader), None))
    except UNREADABLE as e:
        raise DocumentError(one_line(f"not JSON: {e}")) from e
    except yaml.MarkedYAMLError as e:
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if (mark := e.problem_mark) else ""
        raise DocumentError(one_line(f"not YAML: {where}{e.problem or e.context}")) from e
    except (yaml.YAMLError, ValueError, TypeError) as e:
        raise DocumentError(one_line(f"not YAML: {e}")) from e


def _as_json(value: Any) -> Any:  # noqa: ANN401
    """A float without a fraction is written as a whole number there."""
    if isinstance(value, dict):
        return {key: _as_json(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_as_json(inner) for inner in value]
    if isinstance(value, float):
        if not math.isfinite(value):
            raise DocumentError(f"not JSON: {value}")
        return int(value) if value.is_integer() else value
    if value is None or isinstance(value, (bool, int, str)):
        return value
    raise DocumentError(f"not JSON: a {type(value).__name__}")


def _key(key: object) -> str:
    """Keys are text in JSON."""
    if isinstance(key, bool):
        return str(key).lower()
    if isinstance(key, (str, int, float)):
        return str(key)
    raise DocumentError(f"a key is {key}, allowed: text")


def _scalar(text: str) -> bool | int | float | str | None:
    """What a plain scalar stands for: resolve() of go-yaml."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMBER_BEGINS:
        return text
    plain = text if text[0] == "." else text.replace("_", "")
    if found := _INT.fullmatch(plain):
        sign, *digits = found.groups()
        base, number = next((base, given) for base, given in zip(_BASES, digits, strict=True) if given is not None)
        value = int(number, base) * (-1 if sign == "-" else 1)
        if -(2**63) <= value < 2**64:
            return value
    return float(plain) if _FLOAT.fullmatch(plain) else text


class _Loader(yaml.SafeLoader):
    aliases = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:  # noqa: ANN401 - the key's node, too
        if self.check_event(yaml.AliasEvent):
            self.aliases += 1
            if self.aliases > MOST_ALIASES:
                raise yaml.MarkedYAMLError(problem="too many aliases", problem_mark=self.get_mark())
        return super().compose_node(parent, index)

    def scan_plain(self) -> yaml.ScalarToken:
        """In a flow collection `a:[` is the text `a:`, which makes what follows an error."""
        token: yaml.ScalarToken = super().scan_plain()
        while self.flow_level and self.index == token.end_mark.index and self.peek() == ":" and self.peek(1) in ",[]{}":
            token.value += ":"
            self.forward()
            token.end_mark = self.get_mark()
        return token

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        self.flatten_mapping(node)
        return {_key(self.construct_object(key, deep=True)): self.construct_object(v, deep) for key, v in node.value}

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> str:  # noqa: ANN401
        if kind is yaml.ScalarNode and implicit[0]:
            if value == "<<":
                return f"{_TAG}merge"
            return f"{_TAG}{_TYPES[type(_scalar(value))]}"
        return str(super().resolve(kind, value, implicit))  # type: ignore[no-untyped-call]


_TYPES = {bool: "bool", int: "int", float: "float", str: "str", type(None): "null"}


def _construct(_loader: _Loader, node: yaml.ScalarNode) -> object:
    return _scalar(node.value)


for _name in ("bool", "int", "float", "null"):
    _Loader.add_constructor(f"{_TAG}{_name}", _construct)
