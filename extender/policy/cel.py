"""Pure: which DRA drivers a CEL expression of a DeviceClass or a request selects.

Only comparisons of `device.driver` with texts are read, joined by `&&`, `||` and parentheses. Every other part selects
any driver. So the answer contains at least all drivers whose devices the expression can select.
"""

import re
from functools import lru_cache

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
      | (?P<comment>//[^\n]*)
      | (?P<driver>device\.driver\b(?!\s*[.\[(]))
      | (?P<word>[A-Za-z_][A-Za-z0-9_.]*)
      | (?P<number>[0-9][0-9A-Za-z.]*)
      | (?P<symbol>&&|\|\||[=!<>]=|[-+*/%<>!?:.,()\[\]{}])
    )""",
    re.VERBOSE,
)
_DRIVER = "device.driver"
_ENDS = frozenset({"", "&&", "||", ")", "]", "}", "?", ":", ","})
_CLOSED_BY = {"(": ")", "[": "]", "{": "}"}
EXPRESSION_LIMIT = 10 * 1024  # characters, the limit of the API
DEPTH_LIMIT = 50

Drivers = frozenset[str] | None  # None = any


@lru_cache(maxsize=1024)
def drivers_of(expression: str) -> Drivers:
    """Returns the drivers whose devices the expression may select; None = any, also if the expression is not
    understood."""
    tokens = _tokens(expression)
    if tokens is None:
        return None
    reader = _Reader(tokens)
    found = reader.alternatives(0)
    return found if reader.next == "" else None


def both(one: Drivers, other: Drivers) -> Drivers:
    """Returns what two expressions select that must both be true."""
    if one is None or other is None:
        return other if one is None else one
    return one & other


def _tokens(expression: str) -> list[str] | None:
    """Returns the tokens; a text begins with its quote. Returns None if a part is no token."""
    if len(expression) > EXPRESSION_LIMIT:
        return None
    tokens, at, text = [], 0, expression.rstrip()
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            return None
        at = found.end()
        if found.lastgroup != "comment":
            tokens.append(found.group(str(found.lastgroup)))
    return tokens


class _Reader:
    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0

    @property
    def next(self) -> str:
        """Returns the empty text at the end."""
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def alternatives(self, depth: int) -> Drivers:
        found = self._conjunction(depth)
        while self.next == "||":
            self._at += 1
            other = self._conjunction(depth)
            found = None if found is None or other is None else found | other
        return found

    def _conjunction(self, depth: int) -> Drivers:
        found = self._term(depth)
        while self.next == "&&":
            self._at += 1
            found = both(found, self._term(depth))
        return found

    def _term(self, depth: int) -> Drivers:
        begin = self._at
        if self.next == "(" and depth < DEPTH_LIMIT:
            self._at += 1
            found = self.alternatives(depth + 1)
            if self.next == ")":
                self._at += 1
                if self.next in _ENDS:
                    return found
            self._at = begin
        return _compared(self._comparison())

    def _comparison(self) -> list[str]:
        """Reads a comparison: the tokens up to the next `&&`, `||` or closing parenthesis."""
        begin, closing = self._at, list[str]()
        while self.next and (closing or self.next not in _ENDS):
            token = self.next
            if token in _CLOSED_BY:
                closing.append(_CLOSED_BY[token])
            elif closing and token == closing[-1]:
                closing.pop()
            self._at += 1
        return self._tokens[begin : self._at]


def _compared(tokens: list[str]) -> Drivers:
    match tokens:
        case [str(left), "==", str(right)] if _DRIVER in (left, right):
            return _texts([right if left == _DRIVER else left])
        case ["device.driver", "in", "[", *listed, "]"]:
            return _texts([one for one in listed if one != ","])
    return None


def _texts(tokens: list[str]) -> Drivers:
    if any(one[0] not in "\"'" or "\\" in one for one in tokens):
        return None
    return frozenset(one[1:-1] for one in tokens)
