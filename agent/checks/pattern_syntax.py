"""Reads a regular expression into the automaton that `linear_patterns` runs. Pure.

The automaton is Glushkov's: a position is a character or a class of the expression, with repetitions written out. Sets
of positions are the bits of a number.
"""

import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import NoReturn

POSITIONS_LIMIT = 256
NESTING_LIMIT = 20
REPEAT_LIMIT = 100

_CLASSES = {
    "d": frozenset(string.digits),
    "s": frozenset(string.whitespace),
    "w": frozenset(string.ascii_letters + string.digits + "_"),
}
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v"}
_DEVICE_GROUPS = ("?P<device>", "?<device>")


class PatternError(ValueError):
    """One line: where the expression is wrong, what is wrong, and what is allowed."""

    def __init__(self, place: int, wrong: str, allowed: str) -> None:
        super().__init__(f"at character {place + 1}: {wrong}, allowed: {allowed}")


@dataclass(frozen=True, slots=True)
class Chars:
    """One character of `among`, or, if `others`, one that is not among them."""

    among: frozenset[str]
    others: bool = False

    def has(self, char: str) -> bool:
        return (char in self.among) is not self.others


@dataclass(slots=True)
class Automaton:
    """`follow`: by position, those that may come next. `device`: those in the group of that name. `to_the_end`: a match
    must end with the line."""

    chars: list[Chars] = field(default_factory=list)
    follow: list[int] = field(default_factory=list)
    first: int = 0
    last: int = 0
    device: int = 0
    to_the_end: bool = False


def parsed(text: str) -> Automaton:
    """Raises PatternError."""
    return _Parser(text).automaton()


def bits_of(number: int) -> Iterator[int]:
    while number:
        lowest = number & -number
        yield lowest.bit_length() - 1
        number ^= lowest


@dataclass(frozen=True, slots=True)
class _Part:
    """Of an automaton: whether it matches nothing, and at which positions it begins and ends."""

    empty: bool = True
    first: int = 0
    last: int = 0


_Build = Callable[[], _Part]  # makes new positions with each call, so that a part can be repeated


class _Parser:
    def __init__(self, text: str) -> None:
        self._text, self._place, self._nesting = text, 0, 0
        self._ignore_case = self._took("(?i)")
        self._made = Automaton()
        self._has_device = False

    def automaton(self) -> Automaton:
        self._took("^")
        part = self._alternatives()()
        self._made.to_the_end = self._took("$")
        if self._place < len(self._text):
            self._fail("a ) without its (", "\\) for the character")
        if part.empty:
            raise PatternError(0, "it matches every line", "an expression that needs a character")
        self._made.first, self._made.last = part.first, part.last
        return self._made

    def _alternatives(self) -> _Build:
        choices = [self._sequence()]
        while self._took("|"):
            choices.append(self._sequence())
        if len(choices) == 1:
            return choices[0]

        def build() -> _Part:
            parts = [choice() for choice in choices]
            first, last = 0, 0
            for part in parts:
                first, last = first | part.first, last | part.last
            return _Part(any(part.empty for part in parts), first, last)

        return build

    def _sequence(self) -> _Build:
        items = list[_Build]()
        while self._place < len(self._text) and self._text[self._place] not in "|)":
            if self._text[self._place] == "$" and self._place == len(self._text) - 1:
                break
            items.append(self._repeated(self._atom()))
        if not items:
            self._fail("nothing to match", "at least one character on each side of |, and in each group")

        def build() -> _Part:
            part = _Part()
            for item in items:
                part = self._then(part, item())
            return part

        return build

    def _repeated(self, atom: _Build) -> _Build:
        least, most = self._times()
        if (least, most) == (1, 1):
            return atom
        if self._text[self._place : self._place + 1] in ("*", "+", "?", "{"):
            self._fail("a second repetition, or a lazy one", "one repetition; a group in () to repeat it")

        def build() -> _Part:
            part = _Part()
            for copy in range(least if most is None else most):
                each = atom()
                if most is None and copy == least - 1:
                    self._loop(each)
                part = self._then(part, each if copy < least else replace(each, empty=True))
            if most is None and least == 0:
                each = atom()
                self._loop(each)
                part = self._then(part, replace(each, empty=True))
            return part

        return build

    def _times(self) -> tuple[int, int | None]:
        """How often what comes before may come: least, and most (None: without end)."""
        for sign, times in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._took(sign):
                return times
        begin = self._place
        if not self._took("{"):
            return 1, 1
        least, comma, most = self._until("}").partition(",")
        numbers = [int(n) for n in (least, most) if n.isascii() and n.isdigit() and len(n) < 4]
        given = 1 if not comma or not most else 2
        if len(numbers) != given or not 1 <= numbers[-1] <= REPEAT_LIMIT or numbers[0] > numbers[-1]:
            self._place = begin
            self._fail(
                "no number of repetitions", f"{{2}}, {{2,}} or {{2,5}}, at most {REPEAT_LIMIT}; \\{{ for the character"
            )
        return numbers[0], None if comma and not most else numbers[-1]

    def _atom(self) -> _Build:
        begin, char = self._place, self._text[self._place]
        self._place += 1
        match char:
            case "(":
                return self._group(begin)
            case "[":
                return self._one(self._class(begin))
            case ".":
                return self._one(Chars(frozenset(), others=True))
            case "\\":
                return self._one(self._escaped(begin))
            case "*" | "+" | "?" | "{":
                self._place = begin
                self._fail("nothing to repeat", f"\\{char} for the character")
            case "^" | "$":
                self._place = begin
                self._fail(f"{char} inside", f"^ first and $ last; \\{char} for the character")
        return self._one(Chars(frozenset(char)))

    def _group(self, begin: int) -> _Build:
        is_device = any(self._took(words) for words in _DEVICE_GROUPS)
        if not is_device and not self._took("?:") and self._text[self._place : self._place + 1] == "?":
            self._place = begin
            self._fail("a group of this kind", "(...), (?:...) and (?P<device>...); (?i) at the beginning")
        if is_device and self._has_device:
            self._place = begin
            self._fail("a second group device", "one")
        self._has_device |= is_device
        self._nesting += 1
        if self._nesting > NESTING_LIMIT:
            self._fail(f"more than {NESTING_LIMIT} groups in one another", "fewer")
        inner = self._alternatives()
        self._nesting -= 1
        if not self._took(")"):
            self._place = begin
            self._fail("a ( without its )", "\\( for the character")
        if not is_device:
            return inner

        def build() -> _Part:
            before = len(self._made.chars)
            part = inner()
            self._made.device |= (1 << len(self._made.chars)) - (1 << before)
            return part

        return build

    def _class(self, begin: int) -> Chars:
        others, found, first = self._took("^"), set[str](), self._place
        while self._place == first or not self._took("]"):
            if self._place >= len(self._text):
                self._place = begin
                self._fail("a [ without its ]", "\\[ for the character")
            low = self._member()
            if (
                self._text[self._place : self._place + 1] == "-"
                and self._text[self._place + 1 : self._place + 2] != "]"
            ):
                self._place += 1
                high = self._member()
                if len(low.among) != 1 or len(high.among) != 1 or min(low.among) > min(high.among):
                    self._place = begin
                    self._fail("a range that is none", "two characters in their order, as a-z; \\- for the character")
                found |= {chr(code) for code in range(ord(min(low.among)), ord(min(high.among)) + 1)}
            elif low.others:
                self._place = begin
                self._fail("what is not a class, inside of one", "\\D, \\W and \\S outside of [ ]")
            else:
                found |= low.among
        return Chars(frozenset(found), others)

    def _member(self) -> Chars:
        begin, char = self._place, self._text[self._place]
        self._place += 1
        return self._escaped(begin) if char == "\\" else Chars(frozenset(char))

    def _escaped(self, begin: int) -> Chars:
        char = self._text[self._place : self._place + 1]
        self._place += 1
        if char.lower() in _CLASSES:
            return Chars(_CLASSES[char.lower()], others=char.isupper())
        if char in _CONTROLS:
            return Chars(frozenset(_CONTROLS[char]))
        if (
            char == "x"
            and len(code := self._text[self._place : self._place + 2]) == 2
            and set(code) <= set(string.hexdigits)
        ):
            self._place += 2
            return Chars(frozenset(chr(int(code, 16))))
        if not char or char.isalnum():
            self._place = begin
            self._fail(f"\\{char}", "\\d, \\w, \\s, \\D, \\W, \\S, \\t, \\x41, and \\ before a sign")
        return Chars(frozenset(char))

    def _one(self, chars: Chars) -> _Build:
        if self._ignore_case:
            both = {other for char in chars.among for other in (char.lower(), char.upper()) if len(other) == 1}
            chars = replace(chars, among=chars.among | both)

        def build() -> _Part:
            if len(self._made.chars) >= POSITIONS_LIMIT:
                allowed = f"at most {POSITIONS_LIMIT} characters and classes, with repetitions written out"
                raise PatternError(0, "it is too long", allowed)
            self._made.chars.append(chars)
            self._made.follow.append(0)
            position = 1 << len(self._made.chars) - 1
            return _Part(empty=False, first=position, last=position)

        return build

    def _then(self, left: _Part, right: _Part) -> _Part:
        for position in bits_of(left.last):
            self._made.follow[position] |= right.first
        return _Part(
            left.empty and right.empty,
            left.first | (right.first if left.empty else 0),
            right.last | (left.last if right.empty else 0),
        )

    def _loop(self, part: _Part) -> None:
        for position in bits_of(part.last):
            self._made.follow[position] |= part.first

    def _took(self, words: str) -> bool:
        is_there = self._text.startswith(words, self._place)
        self._place += len(words) if is_there else 0
        return is_there

    def _until(self, end: str) -> str:
        found, is_there, _ = self._text[self._place :].partition(end)
        self._place += len(found) + len(is_there)
        return found if is_there else ""

    def _fail(self, wrong: str, allowed: str) -> NoReturn:
        raise PatternError(self._place, wrong, allowed)
