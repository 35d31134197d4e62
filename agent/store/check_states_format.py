"""States of checks to bytes and back. Pure."""

from collections.abc import Mapping, Sequence
from typing import Annotated

import msgspec

from agent.checks.state import CheckState, CheckStatus, Severity, Thresholds
from agent.probe.streak import Streak
from agent.wire.model import Result

VERSION = 2
TENTHS = 10
# A state that was left behind longer ago says nothing any more: whoever was away so long has to look first.
LONGEST_S = 600.0
# What the wall's clock moves by beyond this, beside the time since the boot, is a step of it: dates move with it.
STEP_S = 5.0


Wall = Annotated[float, msgspec.Meta(ge=0.0, le=2.0**37)]
"""Seconds since the epoch, up to the year 6325: what is beyond cannot be written as a date, and never was one."""


class StateInvalid(Exception):  # noqa: N818 - what the file is
    """Why nothing is taken from these bytes."""


class _Check(msgspec.Struct, forbid_unknown_fields=True):
    """`key`: of the settings that it was run with."""

    key: str
    state: str
    since: Wall
    output: str
    last: int
    run: int
    unknowns: int
    kept: bool


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    """When it was written: by the wall, which somebody may set, and in seconds since the boot, which nobody can."""

    version: int
    boot_id: str
    written_at: Wall
    since_boot: float
    checks: dict[str, _Check]


class _Version(msgspec.Struct):
    version: int


def encode(
    statuses: Sequence[CheckStatus], keys: Mapping[str, str], *, boot_id: str, wall: float, since_boot: float
) -> bytes:
    """`keys`: of the settings, by name of check. A check that has not run yet is not written."""
    checks = {
        s.name: _Check(
            keys[s.name], s.state.value, s.since, s.output, s.streak.last.value, s.streak.run, s.unknowns, s.kept
        )
        for s in statuses
        if s.state is not CheckState.STARTING
    }
    return msgspec.json.encode(_Document(VERSION, boot_id, wall, since_boot, checks))


def decode(
    data: bytes,
    keys: Mapping[str, str],
    severities: Mapping[str, Severity],
    *,
    boot_id: str,
    wall: float,
    since_boot: float,
) -> dict[str, CheckStatus]:
    """The states by name, of the checks whose settings are the same. Raises StateInvalid."""
    try:
        if (version := msgspec.json.decode(data, type=_Version).version) != VERSION:
            raise StateInvalid(f"is of version {version}, ours is {VERSION}")
        document = msgspec.json.decode(data, type=_Document)
        if document.boot_id != boot_id:
            raise StateInvalid("is of another boot")
        age_s = since_boot - document.since_boot
        if not 0.0 <= age_s <= LONGEST_S:
            raise StateInvalid(f"was written {age_s:.0f} s ago")
        step_s = wall - document.written_at - age_s
        step_s = step_s if abs(step_s) >= STEP_S else 0.0
        return {
            name: CheckStatus(
                name,
                severities[name],
                since=min(check.since + step_s, wall),
                state=CheckState(check.state),
                output=check.output,
                streak=Streak(Result(check.last), max(0, check.run)),
                unknowns=max(0, check.unknowns),
                kept=check.kept,
            )
            for name, check in document.checks.items()
            if keys.get(name) == check.key
        }
    except (msgspec.DecodeError, UnicodeError, ValueError, RecursionError) as e:
        raise StateInvalid(f"does not parse: {e}") from e


def essence(statuses: Sequence[CheckStatus], thresholds: Mapping[str, Thresholds]) -> tuple[object, ...]:
    """What has to be written when it changes: not outputs, nor runs beyond the thresholds (by name)."""
    return tuple(
        (
            s.name,
            s.state,
            s.since,
            s.kept,
            s.streak.last,
            min(s.streak.run, max(thresholds[s.name].success, thresholds[s.name].failure)),
            _unknowns(s.unknowns, thresholds[s.name]),
        )
        for s in statuses
    )


def _unknowns(count: int, of: Thresholds) -> tuple[int, int]:
    """Up to the threshold each counts; then a restart may cost a tenth of the time it is kept for."""
    return min(count, of.failure), min(count, of.keep_runs + 1) * TENTHS // (of.keep_runs + 1)
