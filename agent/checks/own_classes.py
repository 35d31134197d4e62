"""Classes of lines of the kernel's log that the settings define, for the check `kernelLog`. Pure."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from agent.checks.kernel_lines import CLASSES, FOR_EVER, LogClass, Named
from agent.checks.linear_patterns import LinearPattern
from agent.checks.pattern_syntax import PatternError
from agent.wire.setting_types import NonEmpty
from component.settings import Section

POSITIONS_LIMIT = 500  # of all expressions of a check together
PATTERNS_LIMIT = 32
_Name = Annotated[
    str,
    Meta(
        pattern=r"^[a-z][A-Za-z0-9]*\Z",
        max_length=63,
        description="letters and digits, the first a lower case letter, at most 63",
    ),
]
_Count = Annotated[int, Meta(ge=1, le=100, description="a whole number, 1 to 100")]
_Seconds = Annotated[int, Meta(ge=1, le=31_536_000, description="whole seconds, 1 to 31536000")]
Severity = Literal["gate", "warn", "note"]


class PatternSection(Section, frozen=True):
    """One class. `scope`: whether it is of the node, or of a block device, which the group `device` of `line` names.
    `lasts_seconds` None: no end by time."""

    name: _Name = msgspec.field(name="class")
    line: NonEmpty
    severity: Severity = "warn"
    scope: Literal["node", "device"] = "node"
    count: _Count = 1
    window_seconds: _Seconds = 60
    lasts_seconds: _Seconds | None = 600
    end_line: NonEmpty | None = None
    exclude: tuple[NonEmpty, ...] = ()

    def __post_init__(self) -> None:
        if self.name in CLASSES:
            taken = "a name of its own; gate, warn and note are for the classes that there are"
            raise ValueError(f"class: {self.name} is a class of readygate's, allowed: {taken}")
        line = compiled(self.line, "line")
        if self.scope == "device" and not line.has_device:
            allowed = r"an expression with the group device, as error, dev (?P<device>[\w!.-]+)"
            raise ValueError(f"line: names no device, but scope: device takes one, allowed: {allowed}")
        if self.end_line is not None:
            compiled(self.end_line, "endLine")
        compiled_all(self.exclude, "exclude")


class _Excluding:
    """Lines of an expression, without those of others."""

    def __init__(self, line: LinearPattern, exclude: Sequence[LinearPattern]) -> None:
        self._line, self._exclude = line, exclude

    def match(self, string: str, /) -> Named | None:
        found = self._line.match(string)
        return None if found is None or any(one.match(string) for one in self._exclude) else found


def classes_of(patterns: Sequence[PatternSection]) -> Mapping[str, LogClass]:
    """By name."""
    return {one.name: _class(one) for one in patterns}


def check(patterns: Sequence[PatternSection], exclude: Sequence[str]) -> None:
    """The rules across keys. Raises ValueError: key, what is wrong, what is allowed."""
    if twice := [
        one.name for place, one in enumerate(patterns) if one.name in {other.name for other in patterns[:place]}
    ]:
        raise ValueError(f"patterns: the class {twice[0]} is there twice, allowed: one pattern a class, with | inside")
    lines = [compiled(one.line, "patterns") for one in patterns]
    ends = [compiled(one.end_line, "patterns") for one in patterns if one.end_line is not None]
    others = [compiled_all(one.exclude, "patterns") for one in patterns]
    size = sum(each.positions for each in [*lines, *ends, *(each for some in others for each in some)])
    size += sum(each.positions for each in compiled_all(exclude, "exclude"))
    if size > POSITIONS_LIMIT:
        allowed = f"{POSITIONS_LIMIT}, with repetitions written out"
        raise ValueError(f"patterns: all expressions together have {size} characters and classes, allowed: {allowed}")


def compiled(text: str, key: str) -> LinearPattern:
    """Raises ValueError with the key."""
    try:
        return LinearPattern(text)
    except PatternError as e:
        raise ValueError(f"{key}: {e}") from e


def compiled_all(texts: Sequence[str], key: str) -> list[LinearPattern]:
    return [compiled(text, f"{key}[{place}]") for place, text in enumerate(texts)]


def _class(pattern: PatternSection) -> LogClass:
    return LogClass(
        _Excluding(LinearPattern(pattern.line), [LinearPattern(text) for text in pattern.exclude]),
        pattern.count,
        pattern.window_seconds,
        FOR_EVER if pattern.lasts_seconds is None else pattern.lasts_seconds,
        healed=None if pattern.end_line is None else LinearPattern(pattern.end_line),
        device=pattern.scope == "device",
    )
