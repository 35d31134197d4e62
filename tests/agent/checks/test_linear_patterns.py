"""Regular expressions of users: the same matches as Python's `re`, in a time that is bounded."""

import random
import re

import pytest

from agent.checks import linear_patterns
from agent.checks.linear_patterns import CACHE_LIMIT, TEXT_LIMIT, Found, LinearPattern
from agent.checks.pattern_syntax import POSITIONS_LIMIT, PatternError
from tools.kit.cases import cases

ALPHABET = "ab1_ -"


@cases(
    "pattern, text, expected",
    ("words", "nvme: timeout", "nvme: timeout, aborting", True),
    ("from the beginning of the line alone", "timeout", "nvme: timeout", False),
    ("that may be anywhere", ".*timeout", "nvme: timeout", True),
    ("a beginning that is said", "^nvme", "nvme0", True),
    ("an end", "nvme: timeout$", "nvme: timeout, aborting", False),
    ("an end that is there", "nvme.*g$", "nvme: timeout, aborting", True),
    ("a dollar sign", r"a\$", "a$", True),
    ("a class", r"sd[a-z]+\d?: ", "sdab1: x", True),
    ("with ] and -", r"[]a-]+!", "]-a!", True),
    ("what is not of it", r"[^:]+:", "a b:", True),
    ("a class in a class", r"[\w.-]+!", "a_1.-!", True),
    ("no digit", r"\D+\d", "ab1", True),
    ("in any case", "(?i)nvme [A-C]", "NVMe b", True),
    ("a choice", "(?:sd|nvme)\\w+ (failed|gone)$", "nvme0 gone", True),
    ("another word", "(?:sd|nvme)\\w+ (failed|gone)$", "nvme0 went", False),
    ("counted", "(ab){2,3}$", "ababab", True),
    ("too few", "(ab){2,3}$", "ab", False),
    ("too many", "(ab){2,3}$", "abababab", False),
    ("two or more", "a{2,}b", "aaaab", True),
    ("by number", r"\x41\t\\", "A\t\\", True),
    ("what the kernel has escaped", r"a\\x0ab", "a\\x0ab", True),
    ("beyond ASCII", "a.b[^c]", "a\ufffdb\ufffd", True),
)
def test_an_expression_matches(pattern: str, text: str, expected: bool) -> None:
    assert expected is (LinearPattern(pattern).match(text) is not None)


@cases(
    "pattern, text, device",
    ("a word", r"(?P<device>\w+): failed", "sda: failed", "sda"),
    ("in Go's words", r".*dev (?<device>\w+),", "error, dev sdb, sector 1", "sdb"),
    ("as long as it can be", r"on (?P<device>[\w-]+)", "on dm-0, x", "dm-0"),
    ("the last that there is", r".*dev (?P<device>\w+)", "dev sda dev sdb", "sdb"),
    ("with more behind it", r"(?P<device>\w+).*", "sda: b: c", "sda"),
    ("of one choice alone", r"(?P<device>\w+): bad|all bad", "all bad", ""),
    ("of all of it", r"(?P<device>.+)$", "a b", "a b"),
)
def test_an_expression_names(pattern: str, text: str, device: str) -> None:
    assert Found(device) == LinearPattern(pattern).match(text)


@cases(
    "pattern, problem",
    (
        "an empty one",
        "",
        "at character 1: nothing to match, allowed: at least one character on each side of |, and in each group",
    ),
    (
        "one that matches all",
        ".*",
        "at character 1: it matches every line, allowed: an expression that needs a character",
    ),
    ("a ( without its )", "a(b", r"at character 2: a ( without its ), allowed: \( for the character"),
    ("a ) without its (", "a)b", r"at character 2: a ) without its (, allowed: \) for the character"),
    ("a [ without its ]", "a[b", r"at character 2: a [ without its ], allowed: \[ for the character"),
    ("nothing to repeat", "*a", r"at character 1: nothing to repeat, allowed: \* for the character"),
    (
        "a lazy repetition",
        "a+?b",
        "at character 3: a second repetition, or a lazy one, allowed: one repetition; a group in () to repeat it",
    ),
    (
        "a repetition without a number",
        "a{x}",
        r"at character 2: no number of repetitions, allowed: {2}, {2,} or {2,5}, at most 100; \{ for the character",
    ),
    (
        "too many",
        "a{1000}",
        r"at character 2: no number of repetitions, allowed: {2}, {2,} or {2,5}, at most 100; \{ for the character",
    ),
    ("a reference", r"(a)\1", r"at character 4: \1, allowed: \d, \w, \s, \D, \W, \S, \t, \x41, and \ before a sign"),
    (
        "the edge of a word",
        r"\bword",
        r"at character 1: \b, allowed: \d, \w, \s, \D, \W, \S, \t, \x41, and \ before a sign",
    ),
    (
        "a look ahead",
        "a(?=b)",
        "at character 2: a group of this kind, allowed: (...), (?:...) and (?P<device>...); (?i) at the beginning",
    ),
    (
        "another name",
        "(?P<disk>a)",
        "at character 1: a group of this kind, allowed: (...), (?:...) and (?P<device>...); (?i) at the beginning",
    ),
    ("two devices", "(?P<device>a)(?P<device>b)", "at character 14: a second group device, allowed: one"),
    (
        "a range that is none",
        "[z-a]",
        r"at character 1: a range that is none, allowed: two characters in their order, as a-z; \- for the character",
    ),
    ("a $ inside", "a$b", r"at character 2: $ inside, allowed: ^ first and $ last; \$ for the character"),
    (
        "nothing beside |",
        "a|",
        "at character 3: nothing to match, allowed: at least one character on each side of |, and in each group",
    ),
    (
        "one that is too long",
        "(a{100}){100}",
        "at character 1: it is too long, allowed: at most 256 characters and classes, with repetitions written out",
    ),
    ("too deep", "(" * 21 + "a" + ")" * 21, "at character 22: more than 20 groups in one another, allowed: fewer"),
)
def test_what_is_wrong_in_an_expression_is_named(pattern: str, problem: str) -> None:
    with pytest.raises(PatternError) as caught:
        LinearPattern(pattern)
    assert problem == str(caught.value)


def drawn(draw: random.Random, depth: int = 0) -> str:
    """An expression that both engines know."""
    kind = draw.randrange(9 if depth < 3 else 5)
    if kind < 3:
        return draw.choice(ALPHABET.replace("-", ""))
    if kind < 5:
        return draw.choice([".", r"\w", r"\d", r"\W", "[ab]", "[^a]", "[a1_-]", r"\s"])
    if kind == 5:
        return f"(?:{drawn(draw, depth + 1)}|{drawn(draw, depth + 1)})"
    if kind == 6:
        return f"(?:{drawn(draw, depth + 1)}){draw.choice(['*', '+', '?', '{2}', '{1,2}', '{0,3}', '{2,}'])}"
    return drawn(draw, depth + 1) + drawn(draw, depth + 1)


def test_drawn_expressions_match_as_those_of_python(seed: int) -> None:
    draw, matched = random.Random(seed), 0
    for _ in range(1500):
        pattern = drawn(draw) + draw.choice(["", "", "$"])
        if re.compile(f"(?:{pattern.removesuffix('$')})", re.ASCII).match(""):
            continue  # it matches an empty line, so it is refused
        own, other = LinearPattern(pattern), re.compile(pattern.replace("$", r"\Z"), re.ASCII)
        for _ in range(6):
            text = "".join(draw.choices(ALPHABET, k=draw.randrange(9)))
            assert (other.match(text) is None) == (own.match(text) is None), (pattern, text)
            matched += own.match(text) is not None
    assert matched > 500


def test_drawn_devices_are_such_that_the_expression_matches_with_them(seed: int) -> None:
    draw, named = random.Random(seed), 0
    for _ in range(3000):
        before, device, after = drawn(draw, 2), drawn(draw, 2), drawn(draw, 2)
        try:
            own = LinearPattern(f"{before}(?P<device>{device}){after}")
        except PatternError:
            continue
        for _ in range(4):
            text = "".join(draw.choices(ALPHABET, k=draw.randrange(9)))
            if (found := own.match(text)) is not None and found.device:
                named += 1
                assert re.fullmatch(device, found.device, re.ASCII), (before, device, after, text)
                assert re.match(f"(?:{before})(?:{re.escape(found.device)})(?:{after})", text, re.ASCII)
    assert named > 100


CATASTROPHES = [
    ("nested repetitions", "(a+)+b", "a"),
    ("a choice of the same", "(a|a)*b", "a"),
    ("an optional one, many times", "(?:a?){30}a{30}b", "a"),
    ("many stars", ".*.*.*.*.*.*.*.*b$", "a"),
    ("a word and a blank", r"(\w+\s?)*!", "a"),
    ("the device among stars", r"(.*)*(?P<device>\w+)(.*)*!", "a"),
]


@cases("pattern, text", *CATASTROPHES)
def test_the_time_of_a_line_is_bounded(monkeypatch: pytest.MonkeyPatch, pattern: str, text: str) -> None:
    """In steps, not seconds. Python's `re` does not come back from most of these."""
    work = 0
    bits_of = linear_patterns.bits_of

    def counted(number: int):
        nonlocal work
        for bit in bits_of(number):
            work += 1
            yield bit

    monkeypatch.setattr(linear_patterns, "bits_of", counted)
    own = LinearPattern(pattern)
    assert own.match(text * 100_000) is None
    assert work <= 2 * own.positions * TEXT_LIMIT


def test_what_is_remembered_is_bounded(seed: int) -> None:
    draw = random.Random(seed)
    own = LinearPattern("(?:.{1,40}a){2}" + "b")
    for _ in range(40):
        own.match("".join(draw.choices("abcdefghij\ufffd", k=400)))
    assert len(own._steps) <= CACHE_LIMIT


def test_the_longest_expression_that_is_allowed() -> None:
    longest = LinearPattern("a" * POSITIONS_LIMIT)
    assert longest.match("a" * POSITIONS_LIMIT) is not None
