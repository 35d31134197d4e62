"""Regular expressions whose time is bounded: a line of n characters takes at most n steps. Pure.

Python's `re` goes back and tries again, so an expression as `(a+)+b` takes a time that doubles with each character.
This module follows all ways through an expression at once, and a step leads from one set of positions to the next.
Steps are remembered, up to a limit.

The syntax is that of Go's `regexp` and of `re`, without what cannot be matched so (references to groups, look-around)
and without what makes no difference here (lazy repetition). An expression matches from the beginning of a line on.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from agent.checks.pattern_syntax import bits_of, parsed

TEXT_LIMIT = 4096  # characters: the kernel's lines have at most 1,024 bytes, each escaped as four characters at most
CACHE_LIMIT = 1000  # steps that are remembered
BEGIN = -1  # before the first character


@dataclass(frozen=True, slots=True)
class Found:
    """A match. `device`: what the group of that name matched, or empty."""

    device: str = ""

    def groups(self) -> Sequence[str]:
        return (self.device,)


class LinearPattern:
    """An expression, ready to match. From one thread."""

    def __init__(self, text: str) -> None:
        """Raises PatternError."""
        made = parsed(text)
        self.positions, self.has_device = len(made.chars), bool(made.device)
        self._made = made
        self._before = [
            sum(1 << other for other, after in enumerate(made.follow) if after >> position & 1)
            for position in range(self.positions)
        ]
        self._steps = dict[tuple[int, str], int]()

    def match(self, text: str, /) -> Found | None:
        """From the beginning of `text`: the longest match."""
        text, current, states, ended = text[:TEXT_LIMIT], BEGIN, list[int](), 0
        for char in text:
            current = self.step(current, char)
            if not current:
                break
            states.append(current)
            if current & self._made.last and (not self._made.to_the_end or len(states) == len(text)):
                ended = len(states)
                if not self.has_device:
                    return Found()
        return Found(self._named(text, states[:ended])) if ended else None

    def step(self, current: int, char: str) -> int:
        """The positions after one more character. Costs twice as much as there are positions at most."""
        if (known := self._steps.get((current, char))) is not None:
            return known
        coming, after = self._made.first, 0
        if current != BEGIN:
            coming = 0
            for position in bits_of(current):
                coming |= self._made.follow[position]
        for position in bits_of(coming):
            if self._made.chars[position].has(char):
                after |= 1 << position
        if len(self._steps) >= CACHE_LIMIT:
            self._steps.clear()
        self._steps[current, char] = after
        return after

    def _named(self, text: str, states: Sequence[int]) -> str:
        """Goes back on one way of those there are: in the group as long as it can, else by the first position."""
        begin = end = -1
        coming = self._made.last
        for place in reversed(range(len(states))):
            fitting = states[place] & coming
            inside = fitting & self._made.device if end >= 0 else 0
            position = next(bits_of(inside or fitting))
            if self._made.device >> position & 1:
                begin, end = place, end if end >= 0 else place + 1
            elif end >= 0:
                break
            coming = self._before[position]
        return text[begin:end] if end >= 0 else ""
