"""The chart's README, its table of values made of the comments in values.yaml. Pure."""

import json
from dataclasses import dataclass

import yaml

TABLE = "<!-- values -->"


class Undocumented(Exception):  # noqa: N818 - the name says what is the matter
    """A value without a comment; str = its path."""


@dataclass(frozen=True)
class Row:
    """One value: its path, what it is unless given, and what the comment above it says."""

    path: str
    default: object
    text: str


def rows(values: str) -> list[Row]:
    """Of the text of a values.yaml, in its order. Raises Undocumented."""
    root = yaml.compose(values)
    assert isinstance(root, yaml.MappingNode)
    return list(_rows(root, values.splitlines(), yaml.safe_load(values), ""))


def _rows(node: yaml.MappingNode, lines: list[str], value: dict[str, object], path: str) -> list[Row]:
    found: list[Row] = []
    for key, below in node.value:
        inner, full = value[key.value], f"{path}{key.value}"
        text = _comment(lines, key.start_mark.line)
        if text:
            found.append(Row(full, inner, text))
        elif isinstance(below, yaml.MappingNode) and isinstance(inner, dict) and inner:
            found += _rows(below, lines, inner, f"{full}.")
        else:
            raise Undocumented(full)
    return found


def _comment(lines: list[str], line: int) -> str:
    indent = len(lines[line]) - len(lines[line].lstrip())
    taken: list[str] = []
    while line > 0 and lines[line - 1].startswith(" " * indent + "# "):
        line -= 1
        taken.insert(0, lines[line].strip().removeprefix("# "))
    return " ".join(taken)


def table(values: str) -> str:
    """In Markdown."""
    shown = ["| value | default | meaning |", "|---|---|---|"]
    for row in rows(values):
        default = json.dumps(row.default, sort_keys=True)
        shown.append(f"| `{row.path}` | `{default}` | {row.text.replace('|', chr(92) + '|')} |")
    return "\n".join(shown)


def readme(now: str, values: str) -> str:
    """The README with the table between its two marks renewed."""
    before, _, rest = now.partition(TABLE)
    _, _, after = rest.partition(TABLE)
    return f"{before}{TABLE}\n{table(values)}\n{TABLE}{after}"
