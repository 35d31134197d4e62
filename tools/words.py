"""Finds retired words in what an operator or a first reader sees. Pure, except for `check`.

Texts: each string of the product that has two words or more (log lines, errors, command output, help of arguments and
metrics), the first sentence of each docstring, task names, messages and descriptions of playbooks, the chart's
comments, alerts and notes, and headings of documents. `words.txt` lists the exceptions, each with its reason.
"""

import ast
import re
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

ALLOWED = Path(__file__).with_name("words.txt")
INSTEAD = {
    r"told|tells?|says?|said": "report, send, return, log, record, show",
    "heard": "received, last seen",
    "anew": "again",
    "for want of": "without, because ... is missing",
    "whoever|somebody|nobody": "the client, the caller, the process, unknown",
    "found no longer|no longer found": "cleared",
    "people|people's": "the dashboard, the status API",
    "blind": "stale",
    "we|us|our|ours": "readygate, the agent, the extender",
    r"(?:a|the|each|next|last|first|second|one) looks?": "check run, scan, sample",
    "kept": "saved, cached, retained",
    "stands": "is listed, is in",
    "of late": "recently",
    "meanwhile": "in the meantime",
    "beside": "next to",
    "thereby": "(leave it out)",
    "as good as|next to nothing": "(the number)",
    "rests": "is throttled",
}
RETIRED = re.compile("|".join(rf"(\b(?:{words})\b)" for words in INSTEAD), re.IGNORECASE)
PRODUCT = ("agent/", "cli/", "component/", "extender/", "kube/", "playbooks/")
SPOKEN = {"name", "msg", "fail_msg", "success_msg", "opens", "description", "short_description", "summary"}
"""Keys of YAML whose text Ansible or Prometheus shows."""


@dataclass(frozen=True, slots=True)
class Text:
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Allowed:
    """prefix: of paths. word: in lower case; None for all of them."""

    prefix: str
    word: str | None
    reason: str


def texts(path: str, source: str) -> list[Text]:
    """What readers see of a file; nothing for a file of another kind."""
    if path.endswith(".py"):
        return sorted(_python(ast.parse(source)), key=_line) if path.startswith(PRODUCT) else []
    if path.endswith((".yml", ".yaml")) and path.startswith(("playbooks/", "charts/readygate/files/")):
        return sorted(_yaml(source), key=_line)
    lines = [Text(number, line) for number, line in enumerate(source.splitlines(), 1)]
    if path.endswith("/NOTES.txt"):
        return lines
    if path.endswith("/values.yaml"):
        return [line for line in lines if line.text.lstrip().startswith("#")]
    if path.endswith(".md"):
        return [line for line in lines if line.text.startswith("#")]
    return []


def _line(text: Text) -> int:
    return text.line


def _python(tree: ast.Module) -> Iterator[Text]:
    docstrings = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", [])
        for one in body if isinstance(body, list) else []:
            match one:
                case ast.Expr(value=ast.Constant(value=str(text)) as constant):
                    docstrings.add(constant)
                    yield Text(constant.lineno, re.split(r"(?<=[.:])\s|\n\n", text, maxsplit=1)[0])
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if node not in docstrings and " " in text.strip():
                yield Text(node.lineno, text)


def _yaml(source: str) -> Iterator[Text]:
    nodes = [one for one in yaml.compose_all(source, Loader=yaml.SafeLoader) if one is not None]
    for node in nodes:  # which grows; the node of an anchor is visited once
        if isinstance(node, yaml.SequenceNode):
            nodes += [one for one in node.value if one not in nodes]
        if not isinstance(node, yaml.MappingNode):
            continue
        for key, value in node.value:
            nodes += [value] if value not in nodes else []
            spoken = value.value if isinstance(value, yaml.SequenceNode) else [value]
            for one in spoken if key.value in SPOKEN else []:
                if isinstance(one, yaml.ScalarNode):
                    yield Text(one.start_mark.line + 1, one.value)


def retired(path: str, source: str) -> Iterator[tuple[int, str, str]]:
    """Line, word in lower case, and what to write instead, for each retired word."""
    instead = list(INSTEAD.values())
    for text in texts(path, source):
        for match in RETIRED.finditer(text.text):
            yield text.line, match.group().lower(), instead[(match.lastindex or 1) - 1]


def allowed_in(lines: str) -> list[Allowed]:
    """Of `path[: word]  # reason`. Raises ValueError with the line that has no reason."""
    found = []
    for line in lines.splitlines():
        if not line or line.startswith("#"):
            continue
        what, _, reason = line.partition("  # ")
        if not reason:
            raise ValueError(f"{ALLOWED.name}: {line!r} has no reason")
        prefix, _, word = what.strip().partition(": ")
        found.append(Allowed(prefix, word or None, reason))
    return found


def check(root: Path, listed: Iterable[Allowed]) -> list[str]:
    """A line for each retired word in the files that git tracks below `root`, and for each exception without a use."""
    listed, used, found = list(listed), set(), []
    names = subprocess.run(["git", "ls-files"], cwd=root, check=True, capture_output=True, text=True).stdout
    for path in names.splitlines():
        for line, word, instead in retired(path, (root / path).read_text(errors="replace")):
            matching = {one for one in listed if path.startswith(one.prefix) and one.word in {None, word}}
            used |= matching
            if not matching:
                found.append(f"{path}:{line}: {word!r}; write instead: {instead}")
    return found + [f"{ALLOWED.name}: no use of {one.prefix} {one.word or ''}" for one in listed if one not in used]
