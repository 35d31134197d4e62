"""From findings to the state of a check, and from states to the verdict on the node. Pure; thresholds as for probes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum

from agent.model import Result
from agent.probe.streak import Streak, next_state
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
    """`keep_unknown`: a check that passed before and can no longer be run keeps the node open."""

    success: int = 1
    failure: int = 3
    keep_unknown: bool = True


@dataclass(frozen=True, slots=True)
class CheckStatus:
    """What is known of a check. `since`: when it began or ceased to pass (epoch, seconds). `output`: one line.

    `held`: it is unknown by now, but it passed before, and that result is kept.
    """

    name: str
    severity: Severity
    since: float
    state: CheckState = CheckState.STARTING
    output: str = ""
    streak: Streak = Streak()  # noqa: RUF009 - frozen, so one is enough for all
    unknowns: int = 0
    held: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """`reason` is a word of kube.contract. `problems`: the gate checks that close the node, in configured order.

    `notices`: what does not close it but must be told: failing checks of severity warn, and gate checks whose last
    result is kept.
    """

    healthy: bool
    reason: str
    problems: tuple[CheckStatus, ...] = ()
    checks: int = 0
    notices: tuple[CheckStatus, ...] = ()

    @property
    def identity(self) -> tuple[object, ...]:
        """What makes two verdicts different ones: outputs change with every run and do not count, nor do warnings."""
        gates = (*self.problems, *(check for check in self.notices if check.severity is Severity.GATE))
        return self.reason, tuple((check.name, check.state) for check in gates)

    @property
    def words(self) -> tuple[object, ...]:
        """As identity, warnings included: what makes a new line of the log."""
        return self.reason, tuple((check.name, check.state) for check in (*self.problems, *self.notices))


def next_status(status: CheckStatus, finding: Finding, thresholds: Thresholds, now: float) -> CheckStatus:
    """Adds one finding.

    Only what has passed is protected by the failure threshold; what is starting, unknown or failed shows the newest
    finding at once. A run that could not be made is neither a failure nor a success: it does not break their count, and
    after as many in a row as the failure threshold the check is unknown. One that never passed closes the node then;
    one that passed is held, if so wanted.
    """
    protected = status.state is CheckState.PASSED or status.held
    if finding.state is CheckState.UNKNOWN:
        status = replace(status, unknowns=status.unknowns + 1)
        if status.state is CheckState.PASSED and status.unknowns < thresholds.failure:
            return status
        return replace(_moved(status, finding, now), held=protected and thresholds.keep_unknown)
    passed = finding.state is CheckState.PASSED
    streak, stable = next_state(
        status.streak,
        Result.SUCCESS if passed else Result.FAILURE,
        success_threshold=thresholds.success,
        failure_threshold=thresholds.failure,
    )
    status = replace(status, streak=streak, unknowns=0)
    if stable or (not passed and not protected):
        return _moved(status, finding, now)
    return status


def overdue(status: CheckStatus, late_s: float, period_s: float, thresholds: Thresholds, now: float) -> CheckStatus:
    """The status of a check whose run has not come back `late_s` after its deadline: each run missed is a failure."""
    if status.state is CheckState.HUNG:
        return status
    failures = status.streak.run if status.streak.last is Result.FAILURE else 0
    protected = status.state is CheckState.PASSED or status.held
    if protected and failures + missed_runs(late_s, period_s) < thresholds.failure:
        return status
    since = status.since if _failing(status.state) else now - late_s
    return replace(
        status,
        state=CheckState.HUNG,
        since=since,
        held=False,
        output=f"still running {late_s:.0f} s after its deadline",
    )


def missed_runs(late_s: float, period_s: float) -> int:
    """How many runs a run `late_s` behind its deadline stands for: itself, and those it kept from being made."""
    return 1 + int(max(0.0, late_s) // period_s)


def verdict(statuses: Sequence[CheckStatus]) -> Verdict:
    """All gate checks passed, or their last result is kept: healthy. Else the reason is that of the worst."""
    bad = [s for s in statuses if s.state is not CheckState.PASSED]
    problems = tuple(s for s in bad if s.severity is Severity.GATE and not s.held)
    warnings = (s for s in bad if s.severity is Severity.WARN and s.state is not CheckState.STARTING)
    held = tuple(s for s in bad if s.severity is Severity.GATE and s.held)
    states = {problem.state for problem in problems}
    if states & {CheckState.FAILED, CheckState.HUNG}:
        reason = contract.REASON_CHECK_FAILED
    elif CheckState.UNKNOWN in states:
        reason = contract.REASON_CHECK_UNKNOWN
    elif states:
        reason = contract.REASON_STARTING
    else:
        reason = contract.REASON_CHECK_UNKNOWN if held else contract.REASON_CHECKS_PASSED
    return Verdict(not problems, reason, problems, len(statuses), (*held, *warnings))


def readyz_text(result: Verdict, now: float) -> str:
    """`ok`, or one line per problem: name, state, since when in seconds, last output. Then a line per notice."""
    told = (*result.problems, *result.notices)
    lines = [_told(check, f"{max(0, int(now - check.since))} s") for check in told]
    return "".join(f"{line}\n" for line in (["ok", *lines] if result.healthy else lines))


def condition_message(result: Verdict) -> str:
    """The message of the condition, on one line. Times are absolute, so it does not change while nothing happens."""
    told = (*result.problems, *result.notices)
    if not told:
        return f"all checks passed ({result.checks})"
    parts = [_told(check, _rfc3339(check.since)) for check in told]
    if result.healthy:
        parts.insert(0, "no gate check fails")
    return one_line("; ".join(parts), MESSAGE_LIMIT_BYTES)


def _told(check: CheckStatus, since: str) -> str:
    """What is said of a check that has not passed; what does not close the node says why."""
    mark = " (warn)" if check.severity is Severity.WARN else ", passed before and kept open," if check.held else ""
    return f"{check.name}: {check.state}{mark} since {since}{f': {check.output}' if check.output else ''}"


def one_line(text: str, limit_bytes: int = OUTPUT_LIMIT_BYTES) -> str:
    """The text without line breaks and control characters, cut to so many bytes of UTF-8 at a character's border."""
    flat = " ".join("".join(c if c.isprintable() else " " for c in text[: limit_bytes * 8]).split())
    return flat.encode(errors="replace")[:limit_bytes].decode(errors="ignore")


def _moved(status: CheckStatus, finding: Finding, now: float) -> CheckStatus:
    same_side = _failing(status.state) if _failing(finding.state) else status.state is finding.state
    if status.held and finding.state is not CheckState.UNKNOWN:
        same_side = False
    return replace(
        status,
        held=False,
        state=finding.state,
        output=one_line(finding.output),
        since=status.since if same_side else now,
    )


def _failing(state: CheckState) -> bool:
    return state in (CheckState.FAILED, CheckState.HUNG, CheckState.UNKNOWN)


def _rfc3339(seconds: float) -> str:
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
