"""Equal results in a row, counted up to a threshold. Pure; used by probes and by checks."""

from collections.abc import Mapping
from dataclasses import dataclass

from agent.wire.model import ProbeType, Result


@dataclass(frozen=True, slots=True)
class Streak:
    """Equal results in a row. It starts as zero Successes, so the very first Success makes the run 1, not 2."""

    last: Result = Result.SUCCESS
    run: int = 0


@dataclass(frozen=True, slots=True)
class Kept:
    """What outlives a restart of the agent of one probe: its stable result, None where there was none; how many equal
    ones it has had, and whether it rests until there is a new container."""

    result: Result | None
    streak: Streak
    on_hold: bool


KeptResults = Mapping[tuple[str, ProbeType], Kept]
"""By container id and type."""


def next_state(
    streak: Streak, result: Result, *, success_threshold: int, failure_threshold: int
) -> tuple[Streak, bool]:
    """Counts one more result; True when the run has reached the threshold of its kind."""
    streak = Streak(result, streak.run + 1) if result is streak.last else Streak(result, 1)
    needed = 0
    if result is Result.SUCCESS:
        needed = success_threshold
    elif result is Result.FAILURE:
        needed = failure_threshold
    return streak, streak.run >= needed
