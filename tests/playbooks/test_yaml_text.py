"""The reader of YAML that look.sh brings to hosts without PyYAML, beside PyYAML, on forms and on random texts."""

import importlib.util
import random
import sys
from types import ModuleType
from typing import Any

import pytest
import yaml

from tests.playbooks.rendering import ROLES
from tools.kit.cases import cases

FILES = ROLES / "readygate_node" / "files"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, FILES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


OURS = load("yaml_text")


class Texts(yaml.SafeLoader):
    """Makes nothing of a text but a text."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's own
        first: [(tag, pattern) for tag, pattern in found if tag.endswith(":merge")]
        for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def texts(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): texts(one) for key, one in value.items()}
    return [texts(one) for one in value] if isinstance(value, list) else "" if value is None else str(value)


def ours(text: str) -> Any:
    return texts(OURS.Reader(OURS.first_document(OURS.text_of(text.encode()))).document())


def theirs(text: str) -> Any:
    return texts(next(iter(yaml.load_all(text, Texts)), None))


@cases(
    "text, expected",
    ("a flow list over several lines", "a: [\n  b,\n  c,\n]\n", {"a": ["b", "c"]}),
    ("a quoted key", "\"a\":\n- b\n'c': d\n", {"a": ["b"], "c": "d"}),
    ("a key with a blank before its colon", "a : b\n", {"a": "b"}),
    ("a list as deep as its key, and deeper", "a:\n- b\nc:\n  - d\n", {"a": ["b"], "c": ["d"]}),
    ("lists in a list", "- - a\n  - b\n- c: d\n  e: f\n", [["a", "b"], {"c": "d", "e": "f"}]),
    ("a comment here and there", "# a\na: # b\n  - c # d\n  # e\n  - 'f # g'\n", {"a": ["c", "f # g"]}),
    ("a document's begin and end", "%YAML 1.1\n---\na: b\n...\nc: d\n", {"a": "b"}),
    ("of two the first", "--- # x\na: b\n---\na: c\n", {"a": "b"}),
    ("a value on the line of its begin", "--- {a: b}\n", {"a": "b"}),
    ("an anchor", "a: &x [b]\nc: *x\n", {"a": ["b"], "c": ["b"]}),
    (
        "a merged mapping",
        "x: &x {a: b, c: d}\ny:\n  <<: *x\n  a: e\n",
        {"x": {"a": "b", "c": "d"}, "y": {"a": "e", "c": "d"}},
    ),
    ("a tag", "a: !!str 1\nb: !!seq\n- c\n", {"a": "1", "b": ["c"]}),
    ("ends of lines of Windows", "a:\r\n- b\r\nc: d\r\n", {"a": ["b"], "c": "d"}),
    ("a byte order mark", "\ufeffa: b\n", {"a": "b"}),
    ("tabs between words", "a:\tb\t# c\nd: [\te\t]\n", {"a": "b", "d": ["e"]}),
    (
        "a colon in an address",
        "a: fd00::a\nb: [fd00::1, http://x:1/]\n",
        {"a": "fd00::a", "b": ["fd00::1", "http://x:1/"]},
    ),
    ("JSON's way without a blank", '{"a":["b","c"],"d":{"e":1}}', {"a": ["b", "c"], "d": {"e": "1"}}),
    ("a text of several lines", "a: b\n  c\n\n  d\ne: 'f\n  g'\n", {"a": "b c\nd", "e": "f g"}),
    ("escapes", 'a: "\\x41\\u00e4\\n\\\n  b"\n', {"a": "Aä\nb"}),
    ("blocks of text", "a: |\n  b\n   c\nd: >-\n  e\n  f\n", {"a": "b\n c\n", "d": "e f"}),
    ("nothing", "", ""),
    ("a key without a value", "a:\nb: c\n", {"a": "", "b": "c"}),
)
def test_forms(text: str, expected: Any) -> None:
    assert (expected, expected) == (ours(text), theirs(text.expandtabs(1)))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_encodings(encoding: str) -> None:
    mark = {"utf-16-le": "\ufeff", "utf-16-be": "\ufeff"}.get(encoding, "")
    assert {"clusterDomain": "ä.example"} == OURS.read((mark + "clusterDomain: ä.example\n").encode(encoding))


@pytest.mark.parametrize(
    "text",
    [
        "a: [b",
        "a: {b: c",
        "a: 'b",
        "a: b: c",
        "a: b\n c: d",
        "- a\nb: c",
        "a: *x",
        '"\\q"',
        "? a\n: b",
        "[" * 1000,
        "a: - b",
        "\xff: [",
        "a: @b",
    ],
)
def test_what_is_not_understood_is_an_error(text: str) -> None:
    with pytest.raises(OURS.NotUnderstoodError, match=r"^line \d+: "):
        ours(text)


SCALARS = ["a", "b c", "10.96.0.10", "fd00::a", "x: y", "# no", "a #b", "true", "null", "~", "", "-", "- a", "[", "{a}"]
SCALARS += [
    "'q'",
    '"d"',
    "two\nlines",
    "end\n",
    "  lead",
    "trail ",
    "a:b",
    "::",
    "http://x:1/y",
    "!t",
    "&x",
    "*y",
    "%p",
]
SCALARS += ["@a", "`b", "|", "> x", "é", "\ttab", "a\n\nb", "?", ":", ": b", "a,b", "long " * 30]


def drawn(draw: random.Random, deep: int) -> Any:
    kind = draw.random()
    if not deep or kind < 0.5:
        return draw.choice(SCALARS)
    if kind < 0.75:
        return [drawn(draw, deep - 1) for _ in range(draw.randrange(4))]
    return {draw.choice(SCALARS) or "k": drawn(draw, deep - 1) for _ in range(draw.randrange(4))}


def test_random_documents_in_each_style_are_read_as_by_pyyaml(seed: int) -> None:
    draw, read = random.Random(seed), 0
    for _ in range(300):
        text = yaml.safe_dump(
            {draw.choice(SCALARS) or "k": drawn(draw, 3) for _ in range(3)},
            default_style=draw.choice([None, None, "'", '"', "|", ">"]),
            default_flow_style=draw.choice([None, True, False]),
            width=draw.choice([20, 80, 1000]),
            allow_unicode=draw.random() < 0.5,
            indent=draw.choice([2, 4]),
            explicit_start=draw.random() < 0.3,
        )
        if "? " not in text:  # a key that is long, or of several lines
            read += 1
            assert theirs(text) == ours(text), text
    assert read > 100


PIECES = [
    "a: b\n",
    "- a\n",
    "  - b\n",
    "key:\n",
    "[a, b]",
    "{a: 1}",
    "  c: d\n",
    " # c\n",
    "\n",
    "'x'",
    '"y"',
    ": ",
    "x",
]
PIECES += [
    "\t",
    "  ",
    "|\n",
    "  text\n",
    ">-\n",
    "&a ",
    "*a",
    "!!str ",
    "---\n",
    "...\n",
    "? k\n",
    "k: [\n",
    ", ",
    "]",
    "}",
]


def test_random_pieces_end_in_a_value_or_an_error_of_its_own(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(2000):
        text = "".join(draw.choice(PIECES) for _ in range(draw.randrange(9)))
        try:
            ours(text)
        except OURS.NotUnderstoodError:
            continue
