"""What a planted fault is: a piece of one file's text replaced by another piece."""

from dataclasses import dataclass


class FaultError(Exception):
    """A fault cannot be planted; str names it and the cause."""


@dataclass(frozen=True, slots=True)
class Fault:
    """id: stays the same while the piece of code does. part: policy, agent, chart, ... start: an offset in characters.

    lines: those of the changed statement, or, for what runs once at import, of the code that uses it; empty: unknown.
    constant: the name that the changed statement gives a value at import, if it does.
    tests: files or folders that can catch it, for files that are not Python. regenerate: `make manifests` is run after.
    """

    id: str
    part: str
    file: str
    start: int
    old: str
    new: str
    what: str
    lines: tuple[int, ...] = ()
    tests: tuple[str, ...] = ()
    regenerate: bool = False
    constant: str = ""

    @property
    def python(self) -> bool:
        return not self.tests

    def planted_in(self, text: str) -> str:
        """Returns the text with the fault. Raises FaultError if it does not hold `old` at `start`."""
        end = self.start + len(self.old)
        if text[self.start : end] != self.old:
            raise FaultError(f"{self.id}: {self.file} does not hold {self.old!r} at character {self.start}")
        return text[: self.start] + self.new + text[end:]
