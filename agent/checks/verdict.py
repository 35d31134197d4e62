"""From findings to the state of a check, and from states to the verdict on the node. Pure; thresholds as for probes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum

from agent.model import Result
from agent.prober.decide import Streak, next_state
from kube import contract

OUTPUT_LIMIT_BYTES = 256
MESSAGE_LIMIT_BYTES = 1024  # of the condition: a Pod with many failing checks must stay readable


class CheckState(StrEnum):
    STARTING = "starting"
    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "unknown"
    HUNG = "hung"


class Severity(StrEnum):
    GATE = "gate"
    WARN = "warn"


@dataclass(frozen=True, slots=True)
class Finding:
    """What one run of a check found: any state but starting."""

    state: CheckState
    output: str = ""


@dataclass(frozen=True, slots=True)
class Thresholds:
    success: int = 1
    failure: int = 3


@dataclass(frozen=True, slots=True)
class CheckStatus:
    """What is known of a check. `since`: when it began or ceased to pass (epoch, seconds). `output`: one line."""

    name: str
    severity: Severity
    since: float
    state: CheckState = CheckState.STARTING
    output: str = ""
    streak: Streak = Streak()  # noqa: RUF009 - frozen, so one is enough for all
    unknowns: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """`reason` is a word of kube.contract. `problems`: the gate checks that have not passed, in configured order."""

    healthy: bool
    reason: str
    problems: tuple[CheckStatus, ...] = ()
    checks: int = 0

    @property
    def identity(self) -> tuple[str, tuple[tuple[str, str], ...]]:
        """What makes two verdicts different ones: outputs change with every run and do not count."""
        return self.reason, tuple((check.name, check.state) for check in self.problems)


def next_status(status: CheckStatus, finding: Finding, thresholds: Thresholds, now: float) -> CheckStatus:
    """Adds one finding.

    Only what has passed is protected by the failure threshold; what is starting, unknown or failed shows the newest
    finding at once. A run that could not be made is neither a failure nor a success: it does not break their count, and
    after as many in a row as the failure threshold the check is unknown.
    """
    if finding.state is CheckState.UNKNOWN:
        status = replace(status, unknowns=status.unknowns + 1)
        if status.state is CheckState.PASSED and status.unknowns < thresholds.failure:
            return status
        return _moved(status, finding, now)
    passed = finding.state is CheckState.PASSED
    streak, stable = next_state(
        status.streak,
        Result.SUCCESS if passed else Result.FAILURE,
        success_threshold=thresholds.success,
        failure_threshold=thresholds.failure,
    )
    status = replace(status, streak=streak, unknowns=0)
    if stable or (not passed and status.state is not CheckState.PASSED):
        return _moved(status, finding, now)
    return status


def overdue(status: CheckStatus, late_s: float, now: float) -> CheckStatus:
    """The status of a check whose run has not come back `late_s` after its deadline."""
    if status.state is CheckState.HUNG:
        return status
    since = status.since if _failing(status.state) else now - late_s
    return replace(
        status, state=CheckState.HUNG, since=since, output=f"still running {late_s:.0f} s after its deadline"
    )


def verdict(statuses: Sequence[CheckStatus]) -> Verdict:
    """All gate checks passed: healthy. Else the reason is that of the worst."""
    problems = tuple(s for s in statuses if s.severity is Severity.GATE and s.state is not CheckState.PASSED)
    states = {problem.state for problem in problems}
    if states & {CheckState.FAILED, CheckState.HUNG}:
        reason = contract.REASON_CHECK_FAILED
    elif CheckState.UNKNOWN in states:
        reason = contract.REASON_CHECK_UNKNOWN
    elif states:
        reason = contract.REASON_STARTING
    else:
        reason = contract.REASON_CHECKS_PASSED
    return Verdict(not problems, reason, problems, len(statuses))


def readyz_text(result: Verdict, now: float) -> str:
    """`ok`, or one line per problem: name, state, since when in seconds, last output."""
    if result.healthy:
        return "ok\n"
    return "".join(
        f"{p.name}: {p.state} since {max(0, int(now - p.since))} s{f': {p.output}' if p.output else ''}\n"
        for p in result.problems
    )


def condition_message(result: Verdict) -> str:
    """The message of the condition, on one line. Times are absolute, so it does not change while nothing happens."""
    if result.healthy:
        return f"all checks passed ({result.checks})"
    parts = [
        f"{p.name}: {p.state} since {_rfc3339(p.since)}{f': {p.output}' if p.output else ''}" for p in result.problems
    ]
    return one_line("; ".join(parts), MESSAGE_LIMIT_BYTES)


def one_line(text: str, limit_bytes: int = OUTPUT_LIMIT_BYTES) -> str:
    """The text without line breaks and control characters, cut to so many bytes of UTF-8 at a character's border."""
    flat = " ".join("".join(c if c.isprintable() else " " for c in text[: limit_bytes * 8]).split())
    return flat.encode(errors="replace")[:limit_bytes].decode(errors="ignore")


def _moved(status: CheckStatus, finding: Finding, now: float) -> CheckStatus:
    same_side = _failing(status.state) if _failing(finding.state) else status.state is finding.state
    return replace(
        status,
        state=finding.state,
        output=one_line(finding.output),
        since=status.since if same_side else now,
    )


def _failing(state: CheckState) -> bool:
    return state in (CheckState.FAILED, CheckState.HUNG, CheckState.UNKNOWN)


def _rfc3339(seconds: float) -> str:
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
