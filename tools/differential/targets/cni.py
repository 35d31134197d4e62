"""How a file of CNI configuration is read: any bytes by Go's encoding/json, and the types of a list's and a plugin's
fields as libcni has them. A file's bytes are characters of Latin-1. Left out: other files, and 10,000 levels.
"""

import json
from random import Random
from typing import Any

from agent.checks.go_json import decoded
from agent.checks.networks import BrokenError, network_in
from agent.wire.semantics import Semantics
from tools.differential.target import Answers, History
from tools.differential.worlds import maybe

FILES = {"list": "a.conflist", "one": "a.conf"}
PIECES = (
    *(
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        '"',
        "\\",
        " ",
        "\t",
        "\r",
        "\n",
        "\f",
        "\v",
        "\x00",
        "/",
        "#",
        "'",
        "\x7f",
        "\x1f",
    ),
    *(
        "null",
        "true",
        "false",
        "True",
        "NaN",
        "Infinity",
        "0",
        "01",
        "-0",
        "-",
        "1.5",
        "1.",
        ".5",
        "1e5",
        "1E+9",
        "1e",
        "+1",
    ),
    *("1e308", "1e309", "-1e999", "1e-999", "9" * 20, '"a"', '"a": 1', '"', "\\u0041", "\\ud800", "\\udc00", "\\u12g4"),
    *("\\ud83d\\ude00", "\\n", "\\/", "\\x", "\\u", "\xff", "\xc3\xbc", "\xe4\xbd", "\xed\xa0\x80", "\xf0\x9f\x98\x80"),
    *(
        "\xef\xbb\xbf",
        "\xff\xfe",
        "\xc2\xa0",
        "\xe2\x80\xa8",
        "\xc0\x80",
        "\xf4\x90\x80\x80",
        "[[[[",
        "]]]]",
        "//",
        "/**/",
    ),
)
KEYS = (
    *(
        "type",
        "type",
        "Type",
        "TYPE",
        "name",
        "Name",
        "cniVersion",
        "cniversion",
        "cniVer\u017fion",
        "ipam",
        "IPAM",
        "dns",
    ),
    *(
        "capabilities",
        "Capabilitie\u017f",
        "prevResult",
        "nameservers",
        "Search",
        "domain",
        "options",
        "plugins",
        "Plugins",
    ),
    *(
        "disableCheck",
        "disableGC",
        "loadOnlyInlinedPlugins",
        "cniVersions",
        "other",
        "",
        "\u212aey",
        "t\u0131pe",
        "\u00fc",
    ),
)
VALUES: tuple[Any, ...] = (
    *(
        "bridge",
        "host-local",
        "",
        "0.3.1",
        "1.0",
        "1.0.0.0",
        "v1",
        "+1.0",
        " 1",
        "9999999999999999999",
        "true",
        "FALSE",
        "yes",
    ),
    *(
        None,
        None,
        True,
        False,
        0,
        1,
        0.4,
        -1e300,
        [],
        {},
        ["a"],
        [None],
        [1],
        ["1.0.0"],
        ["x"],
        {"type": "x"},
        {"Type": 1},
    ),
    *(
        {"a": True},
        {"a": None},
        {"a": "true"},
        {"nameservers": ["1"]},
        {"search": "x"},
        "\u212a",
        "\ufffd",
        "\U0001f600",
    ),
)

FIELDS: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("cniVersions", (["1.0.0.0"], ["1.0", "x"], ["0.4.0", "9.0"], ["1.0.0"], "1.0.0", [1], [])),
    ("cniVersion", ("1.0.0.0", "v1", "", 1, None)),
    ("disableCheck", ("True", "FALSE", "yes", True, 0, None)),
    ("capabilities", ({"a": True}, {"a": None}, {"a": "true"}, ["a"], None)),
    ("Type", ("x", None, "", 1, [])),
    ("type", ("y", None, "", 1, [])),
)
TOKENS = (
    "01",
    "-0",
    "1.",
    "1e999",
    "-1e999",
    "1e-999",
    "0.5e+2",
    "1E5",
    "00",
    "-",
    "NaN",
    '"\\ud800"',
    '"\\ud83d\\ude00"',
)


class CniTarget:
    name = "cni"

    def draw(self, random: Random) -> History:
        kind = random.choice(("json", "list", "list", "one"))
        text = _text(random, _list(random) if kind == "list" else _plugin(random))
        for _ in range(random.choice((0, 0, 1, 2)) if kind != "json" else random.choice((1, 1, 2, 5))):
            at, until = sorted(random.randint(0, len(text)) for _ in range(2))
            piece = random.choice(PIECES)
            text = text[:at] + piece + text[at if maybe(random, 0.7) else min(until, at + 3) :]
        return {"kind": kind, "text": text}

    def answer(self, history: History, semantics: Semantics) -> Answers:  # noqa: ARG002 - no gate is asked
        content = history["text"].encode("latin-1")
        said: dict[str, Any] = {"refused": False, "value": None, "name": "", "types": None}
        try:
            if history["kind"] == "json":
                return {**said, "value": decoded(content)}
            network = network_in(content, FILES[history["kind"]])
        except (BrokenError, ValueError):
            return {**said, "refused": True}
        return {**said, "name": network.name, "types": network.types}

    def told(self, answer: Answers) -> Answers:
        return _even(answer)


def _even(value: Any) -> Any:
    """Numbers alike: what is whole may be either in JSON."""
    if isinstance(value, dict):
        return {key: _even(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_even(one) for one in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


class _Token(str):
    """Written as it is."""

    __slots__ = ()


class _Pairs(list[tuple[str, Any]]):
    """An object whose keys may be there twice."""


def _list(random: Random) -> _Pairs:
    pairs = _Pairs([("name", "net"), ("plugins", [_plugin(random) for _ in range(random.choice((1, 1, 2)))])])
    return _changed(random, pairs)


def _plugin(random: Random) -> _Pairs:
    return _changed(random, _Pairs([("type", "bridge"), ("name", "net")]))


def _changed(random: Random, pairs: _Pairs) -> _Pairs:
    for _ in range(random.choice((0, 1, 2, 4))):
        key, values = random.choice(FIELDS) if maybe(random, 0.4) else (random.choice(KEYS), VALUES)
        value = _Token(random.choice(TOKENS)) if maybe(random, 0.15) else random.choice(values)
        pairs.insert(random.randint(0, len(pairs)), (key, value))
    if maybe(random, 0.1):
        pairs.pop(random.randrange(len(pairs)))
    return pairs


def _text(random: Random, value: Any) -> str:
    """As bytes of UTF-8, a character each."""
    gap = random.choice(("", "", " ", "\r\n", "\t"))
    is_ascii = maybe(random, 0.5)

    def written(one: Any) -> str:
        if isinstance(one, _Token):
            return one
        if isinstance(one, _Pairs):
            return "{" + gap + f",{gap}".join(f"{written(key)}:{gap}{written(item)}" for key, item in one) + "}"
        if isinstance(one, list):
            return "[" + ",".join(map(written, one)) + gap + "]"
        return json.dumps(one, ensure_ascii=is_ascii)

    return written(value).encode().decode("latin-1")
