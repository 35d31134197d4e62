"""YAML as Kubernetes reads it (sigs.k8s.io/yaml, go.yaml.in/yaml/v2, resolve.go), which is not quite as Python does.

There `y` is true and 1e3 a number, where Python reads texts and would write them without quotes; and a date or 22:22
is a text, where Python reads a day or 1342, and would write that. Tabs may stand between words, where Python reads
nothing at all. Used on the controller only.
"""

import json
import re
from typing import Any, ClassVar, Dict, List, Optional

import yaml

_BOOLEAN = re.compile(r"^(y|Y|yes|Yes|YES|n|N|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$")
_INTEGER = re.compile(r"^[-+]?(0[bB][01_]+|0[xX][0-9a-fA-F_]+|0[oO]?[0-7_]+|0|[1-9][0-9_]*)$")
_NUMBER = re.compile(
    r"^([-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$"
)
_BASES = {"b": 2, "o": 8, "x": 16}
_RESOLVED = (
    ("tag:yaml.org,2002:bool", _BOOLEAN, "yYnNtTfFoO"),
    ("tag:yaml.org,2002:int", _INTEGER, "-+0123456789"),
    ("tag:yaml.org,2002:float", _NUMBER, "-+0123456789."),
)
_OURS = {tag for tag, _, _ in _RESOLVED} | {"tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:value"}


class Loader(yaml.SafeLoader):
    """Reads plain words as Go does, and tabs (scannerc.go: scan_to_next_token, scan_plain_scalar)."""

    # Without Python's own rules for these tags.
    yaml_implicit_resolvers: ClassVar[Dict[str, Any]] = {
        first: [(tag, pattern) for tag, pattern in found if tag not in _OURS]
        for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    bool_values: ClassVar[Dict[str, bool]] = {**yaml.SafeLoader.bool_values, "y": True, "n": False}

    def scan_to_next_token(self) -> None:
        super().scan_to_next_token()
        while self.peek() == "\t" and (self.flow_level or not self.allow_simple_key):
            self.forward()
            super().scan_to_next_token()

    def scan_plain_spaces(self, indent: int, start_mark: Any) -> List[str]:  # noqa: ANN401 - a type of PyYAML's own
        length = 0
        while self.peek(length) in (" ", "\t"):
            length += 1
        blanks = self.prefix(length)
        if "\t" in blanks:
            self.forward(length)
        found = super().scan_plain_spaces(indent, start_mark)  # None where the document ends
        return [blanks] if found == [] and "\t" in blanks else list(found or [])


class Dumper(yaml.SafeDumper):
    """Quotes each text that Go or Python would read as another type."""


for _tag, _pattern, _firsts in _RESOLVED:
    Loader.add_implicit_resolver(_tag, _pattern, list(_firsts))
    Dumper.add_implicit_resolver(_tag, _pattern, list(_firsts))


def _integer(loader: Loader, node: yaml.ScalarNode) -> int:
    text = str(loader.construct_scalar(node)).replace("_", "").lower()
    sign, digits = (-1 if text.startswith("-") else 1), text.lstrip("-+")
    base = _BASES.get(digits[1:2], 8) if digits.startswith("0") and digits != "0" else 10
    return sign * int(digits[2:] if digits[1:2] in _BASES else digits, base)


def _number(loader: Loader, node: yaml.ScalarNode) -> float:
    text = str(loader.construct_scalar(node)).replace("_", "").lower()
    return float(text.replace(".", "") if text.endswith(("inf", "nan")) else text)


Loader.add_constructor("tag:yaml.org,2002:int", _integer)
Loader.add_constructor("tag:yaml.org,2002:float", _number)


def document(text: Optional[str]) -> Dict[str, Any]:
    """The first document, as the kubelet and kube-scheduler read it. Empty if it is no mapping."""
    try:
        read = json.loads(text or "")  # YAML but for tabs
    except ValueError:
        try:
            read = next(yaml.load_all(text or "", Loader), None)
        except (yaml.YAMLError, ValueError):
            return {}
    return read if isinstance(read, dict) else {}


def written(value: Any, beyond_ascii: bool = False) -> str:  # noqa: ANN401
    """Plain values as YAML. beyond_ascii: characters beyond ASCII are written as they are."""
    return str(yaml.dump(value, Dumper=Dumper, default_flow_style=False, width=10000, allow_unicode=beyond_ascii))
