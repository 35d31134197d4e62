"""Pure: label selectors, parsed and matched as Kubernetes does (apimachinery pkg/labels: Parse, Requirement.Matches).

    a=b  a==b  a!=b    a in (b,c)  a notin (b,c)    a  !a    a>1  a<1        all of them, separated by commas

A missing label satisfies `!=` and `notin`. The empty text selects everything.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from component.text import one_line

_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?\Z")
_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
_PREFIX_LIMIT = 253
_WORDS = re.compile(r"[ \t\r\n]*(==|!=|[=!(),<>]|[^ \t\r\n=!(),<>]+)")
_SYMBOLS = frozenset({"==", "!=", "=", "!", "(", ")", ",", "<", ">"})
_INTEGER = re.compile(r"[-+]?[0-9]+\Z", re.ASCII)
_INT64 = 1 << 63
SELECTOR_LIMIT = 4096  # characters
_TERM_BEGINS = "a key or '!'"


class SelectorError(ValueError):
    """The selector is invalid. The text says why, in a few words."""


class Operator(StrEnum):
    """As of a NodeSelectorRequirement; `=` and `!=` are In and NotIn with one value."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    LT = "Lt"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One term. Made by requirement() or parse(), which check it."""

    key: str
    operator: Operator
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case Operator.IN:
                return value is not None and value in self.values
            case Operator.NOT_IN:
                return value is None or value not in self.values
            case Operator.EXISTS:
                return value is not None
            case Operator.DOES_NOT_EXIST:
                return value is None
        number = _integer(value)
        (limit,) = (_integer(text) for text in self.values)
        if number is None or limit is None:
            return False
        return number > limit if self.operator is Operator.GT else number < limit

    def __str__(self) -> str:
        values = ",".join(sorted(self.values))
        match self.operator:
            case Operator.EXISTS:
                return self.key
            case Operator.DOES_NOT_EXIST:
                return f"!{self.key}"
            case Operator.IN:
                return f"{self.key}={values}" if len(self.values) == 1 else f"{self.key} in ({values})"
            case Operator.NOT_IN:
                return f"{self.key}!={values}" if len(self.values) == 1 else f"{self.key} notin ({values})"
        return f"{self.key}{'>' if self.operator is Operator.GT else '<'}{values}"


@dataclass(frozen=True, slots=True)
class Selector:
    """All terms of a selector."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(one.matches(labels) for one in self.requirements)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


def requirement(key: str, operator: str, values: Sequence[str] = ()) -> Requirement:
    """Makes a term, checked as the API server does. Raises SelectorError."""
    _check_key(key)
    try:
        kind = Operator(operator)
    except ValueError as e:
        raise SelectorError(f"{one_line(operator, 64)!r} is no operator") from e
    count = {
        Operator.IN: len(values) > 0,
        Operator.NOT_IN: len(values) > 0,
        Operator.GT: len(values) == 1,
        Operator.LT: len(values) == 1,
    }
    if not count.get(kind, not values):
        raise SelectorError(f"{len(values)} values for {kind}")
    for value in values:
        if kind in (Operator.GT, Operator.LT) and _integer(value) is None:
            raise SelectorError(f"{one_line(value, 64)!r} is not a whole number")
        if value and not _NAME.match(value):
            raise SelectorError(f"{one_line(value, 64)!r} is not a valid label value")
    return Requirement(key, kind, frozenset(values))


def parse(text: str) -> Selector:
    """Parses a selector. Raises SelectorError."""
    if len(text) > SELECTOR_LIMIT:
        raise SelectorError(f"more than {SELECTOR_LIMIT} characters")
    words = _Words(text)
    found = []
    while not words.ended:
        found.append(_requirement(words))
        if not words.ended:
            words.expect(",")
            if words.ended:
                raise SelectorError(f"the end, expected: {_TERM_BEGINS}")
    return Selector(tuple(found))


class _Words:
    def __init__(self, text: str) -> None:
        self._words = [match[1] for match in _WORDS.finditer(text)]
        self._at = 0

    @property
    def next(self) -> str:
        return "" if self.ended else self._words[self._at]

    @property
    def ended(self) -> bool:
        return self._at >= len(self._words)

    @property
    def found(self) -> str:
        return "the end" if self.ended else repr(one_line(self.next, 64))

    def take(self) -> str:
        word = self.next
        self._at += 1
        return word

    def expect(self, *words: str) -> str:
        if self.next not in words:
            wanted = " or ".join(map(repr, words))
            raise SelectorError(f"{self.found}, expected: {wanted}")
        return self.take()

    def value(self) -> str:
        """Returns a word that is no symbol, or the empty text if there is none."""
        return "" if self.next in _SYMBOLS else self.take()


def _requirement(words: _Words) -> Requirement:
    if words.next == "!":
        words.take()
        return requirement(_key(words), Operator.DOES_NOT_EXIST)
    key = _key(words)
    if words.ended or words.next == ",":
        return requirement(key, Operator.EXISTS)
    match words.expect("=", "==", "!=", "in", "notin", "<", ">"):
        case "=" | "==":
            return requirement(key, Operator.IN, [words.value()])
        case "!=":
            return requirement(key, Operator.NOT_IN, [words.value()])
        case ">":
            return requirement(key, Operator.GT, [words.value()])
        case "<":
            return requirement(key, Operator.LT, [words.value()])
        case "in":
            return requirement(key, Operator.IN, _values(words))
    return requirement(key, Operator.NOT_IN, _values(words))


def _key(words: _Words) -> str:
    if words.ended or words.next in _SYMBOLS:
        raise SelectorError(f"{words.found}, expected: {_TERM_BEGINS}")
    return words.take()


def _values(words: _Words) -> list[str]:
    words.expect("(")
    values = [words.value()]
    while words.expect(",", ")") == ",":
        values.append(words.value())
    return values


def _check_key(key: str) -> None:
    prefix, slash, name = key.rpartition("/")
    if not _NAME.match(name) or (slash and not (len(prefix) <= _PREFIX_LIMIT and _PREFIX.match(prefix))):
        raise SelectorError(f"{one_line(key, 64)!r} is not a valid label key")


def _integer(text: str | None) -> int | None:
    """Parses an integer as Go's strconv.ParseInt of 64 bits."""
    if text is None or not _INTEGER.match(text) or len(text) > SELECTOR_LIMIT:
        return None
    number = int(text)
    return number if -_INT64 <= number < _INT64 else None
