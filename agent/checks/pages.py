"""What people are shown of the checks: all as JSON or as a table, and what one is about. Pure."""

from collections.abc import Sequence
from typing import Any

import msgspec

from agent.checks.catalogue import CheckSection, CheckSpec, Kind, rights_of
from agent.checks.health import NodeHealth
from agent.checks.rights import Rights
from agent.checks.state import Severity, Shown
from component.text import one_line
from kube.times import format_time

HEAD = ("CHECK", "KIND", "STATE", "SECONDS", "SAYS")
SAYS_LIMIT = 200  # characters of a line of the table


class _Check(msgspec.Struct):
    name: str
    kind: str
    severity: str
    state: str
    kept: bool
    since: str
    seconds: float | None
    output: str

    @classmethod
    def of(cls, shown: Shown) -> "_Check":
        status, took_s = shown.status, shown.took_s
        return cls(
            name=status.name,
            kind=shown.kind,
            severity=str(status.severity),
            state=str(status.state),
            kept=status.kept,
            since=format_time(status.since),
            seconds=None if took_s is None else round(took_s, 3),
            output=status.output,
        )


class _Page(msgspec.Struct):
    healthy: bool
    reason: str
    checks: list[_Check]


def checks_json(health: NodeHealth, shown: Sequence[Shown]) -> str:
    """The body of /checks and of `--once -o json`; `seconds`: of the last run, null before the first is over."""
    document = _Page(health.healthy, health.reason, [_Check.of(one) for one in shown])
    return msgspec.json.format(msgspec.json.encode(document)).decode() + "\n"


def checks_table(health: NodeHealth, shown: Sequence[Shown]) -> str:
    """A line a check, and last what follows for the node."""
    rows = [HEAD, *(_row(one) for one in shown)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD) - 1)]
    lines = ["  ".join([*(c.ljust(w) for c, w in zip(row, widths, strict=False)), row[-1]]).rstrip() for row in rows]
    return "\n".join([*lines, f"node: {'healthy' if health.healthy else 'not healthy'} ({health.reason})"]) + "\n"


def _row(one: Shown) -> tuple[str, ...]:
    status = one.status
    warns = " (warn)" if status.severity is Severity.WARN and not status.state.closes_nothing else ""
    took = "-" if one.took_s is None else f"{one.took_s:.3f}"
    return status.name, one.kind, f"{status.state}{warns}", took, one_line(status.output, SAYS_LIMIT)


def kind_text(name: str, kind: Kind[Any]) -> str:
    """What a kind of check is about, in plain text."""
    return f"{name}: {kind.doc}\n\n{body_of(kind.about)}\n\n{needs(kind.rights)}\n"


def check_text(check: CheckSection, spec: CheckSpec, kind: Kind[Any]) -> str:
    """The same for a check of the settings, with its own values."""
    values = msgspec.to_builtins(getattr(check, spec.kind))
    keys = "".join(f"  {key}: {msgspec.json.encode(value).decode()}\n" for key, value in values.items())
    return (
        f"{spec.name}, of kind {spec.kind}: {kind.doc}\n\n{body_of(kind.about)}\n\n{timing(spec)}\n\n{keys}\n"
        f"{needs(rights_of(check))}\n"
    )


def timing(spec: CheckSpec) -> str:
    """When it runs, and what that makes of a fault."""
    failures, successes = spec.thresholds.failure, spec.thresholds.success
    found_s = failures * spec.period_s + spec.limit_s
    usual = "" if spec.calls == 1 else f" ({failures * spec.period_s + spec.timeout_s:g} s where a run makes one call)"
    what = "closes the node" if spec.severity is Severity.GATE else "is reported, closes nothing,"
    return (
        f"Runs every {spec.period_s:g} s, each at most {spec.limit_s:g} s. What has passed {what} after {failures} "
        f"failing runs in a row, {found_s:g} s after the fault at the latest{usual}. It takes {successes} that pass to "
        "heal."
    )


def body_of(about: str) -> str:
    """A docstring without its first paragraph, which says what the file is."""
    return about.partition("\n\n")[2].strip() or about.strip().strip('"')


def needs(rights: Rights) -> str:
    """One sentence."""
    return "Needs " + ("; ".join(rights.lines) or "nothing beyond an ordinary container") + "."
