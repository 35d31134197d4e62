"""The state of one check: from findings, by thresholds as for probes, and from the time a run is late. Pure."""

from dataclasses import dataclass, replace
from enum import Enum, StrEnum

from agent.probe.result import HandlerResult, Outcome
from agent.probe.streak import Streak, next_state
from agent.wire.model import PROBE_DEFAULTS, Result
from component.text import one_line

FINDING_LIMIT_BYTES = 256  # of what a check says: a dozen of them fit into the message of the condition


class CheckState(StrEnum):
    """`warned`: passed, with something that must be said before it becomes a failure. `shared`: the run was made, and
    what is wrong lies beyond this node, for all nodes alike; so it says nothing of this one. `not applicable`: this
    node has nothing that the check could judge; it is neither a success nor a failure, and closes nothing."""

    STARTING = "starting"
    PASSED = "passed"
    WARNED = "warned"
    FAILED = "failed"
    UNKNOWN = "unknown"
    SHARED = "shared"
    HUNG = "hung"
    NOT_APPLICABLE = "not applicable"

    @property
    def is_good(self) -> bool:
        return self in (CheckState.PASSED, CheckState.WARNED)

    @property
    def closes_nothing(self) -> bool:
        return self.is_good or self is CheckState.NOT_APPLICABLE


class Severity(StrEnum):
    GATE = "gate"
    WARN = "warn"


@dataclass(frozen=True, slots=True)
class Finding:
    """What one run of a check found: any state but starting. `output` is free text."""

    state: CheckState
    output: str = ""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Equal findings in a row that it takes. `keep_runs`: a check that passed before and can no longer be run keeps the
    node open for so many runs. Counted, so that no step of a clock makes it old."""

    success: int = PROBE_DEFAULTS.success_threshold
    failure: int = PROBE_DEFAULTS.failure_threshold
    keep_runs: int = 360


class _Side(Enum):
    """What `since` of a check dates: its way from one of these to another."""

    STARTING = 0
    PASSING = 1
    WARNING = 2
    KEPT = 3
    SHARED = 4
    FAILING = 5
    NOT_APPLICABLE = 6


@dataclass(frozen=True, slots=True)
class CheckStatus:
    """What is known of a check. `since`: when it began or ceased to pass (wall). `output`: one line.

    `kept`: it is unknown by now, but it passed before, and that result is kept; or it is shared, and nothing was found
    of this node before. `unknowns`: runs in a row that could not be made.
    """

    name: str
    severity: Severity
    since: float
    state: CheckState = CheckState.STARTING
    output: str = ""
    streak: Streak = Streak()  # noqa: RUF009 - frozen, so one is enough for all
    unknowns: int = 0
    kept: bool = False

    @property
    def has_passed(self) -> bool:
        """Only what has passed, or did not apply, is protected by the failure threshold."""
        return self.state.closes_nothing or self.kept


@dataclass(frozen=True, slots=True)
class Shown:
    """A check as it is now, for people. `kind`: of the catalogue. `took_s`: its last run; None before that is over."""

    kind: str
    status: CheckStatus
    took_s: float | None = None


def next_status(status: CheckStatus, finding: Finding, thresholds: Thresholds, wall: float) -> CheckStatus:
    """The status after one more finding. The cells: new state, since.

    | status                | finding: passed *| failed, hung              | unknown                        |
    |-----------------------|------------------|---------------------------|--------------------------------|
    | starting              | passed, now      | as found, now             | unknown, now                   |
    | passed                | passed, as it was| as found, now **          | unknown, now ** (kept ***)     |
    | unknown, kept         | passed, now      | as found, now **          | unknown, as it was (kept ***)  |
    | failed, hung, unknown | passed, now      | as found, as it was       | unknown, as it was             |
    | not applicable        | passed, now      | as found, now **          | as it was ***, then unknown    |

    A warning is a success: warned stands in the cells of passed, but dates its own beginning.
    * at the success threshold, ** at the failure threshold; before it nothing changes but the count. *** up to
    `keep_runs` of them in a row; what is not kept any more is unknown, now. A run that could not be made is neither a
    failure nor a success: it has a count of its own and does not break theirs.

    A finding that is shared leaves every count as it is, and the node as it was: open where the check passed, was kept,
    or has said nothing yet, and for as long as it lasts; closed where the check had failed or was never able to look.

    A check that is not applicable is so at once, and counts again from zero after it: no threshold delays that.
    """
    if finding.state is status.state is CheckState.PASSED and _is_settled(status, thresholds.success):
        return status if finding.output == status.output else replace(status, output=_line(finding.output))
    if finding.state is CheckState.SHARED:
        kept = status.has_passed or status.state is CheckState.STARTING
        return _moved(status, finding, wall, streak=status.streak, unknowns=status.unknowns, kept=kept)
    if finding.state is CheckState.NOT_APPLICABLE:
        return _moved(status, finding, wall, streak=Streak(), unknowns=0)
    if finding.state is CheckState.UNKNOWN:
        unknowns = status.unknowns + 1
        if status.state is CheckState.NOT_APPLICABLE and unknowns <= max(thresholds.keep_runs, thresholds.failure - 1):
            return replace(status, unknowns=unknowns)
        if status.state.is_good and unknowns < thresholds.failure:
            return replace(status, unknowns=unknowns)
        kept = status.has_passed and unknowns <= thresholds.keep_runs
        return _moved(status, finding, wall, streak=status.streak, unknowns=unknowns, kept=kept)
    passed = finding.state.is_good
    streak, at_threshold = next_state(
        status.streak,
        Result.SUCCESS if passed else Result.FAILURE,
        success_threshold=thresholds.success,
        failure_threshold=thresholds.failure,
    )
    if at_threshold or (not passed and not status.has_passed):
        return _moved(status, finding, wall, streak=streak, unknowns=0)
    return replace(status, streak=streak, unknowns=0)


def _is_settled(status: CheckStatus, successes: int) -> bool:
    """It passes, and counts no further."""
    return status.streak.last is Result.SUCCESS and status.streak.run >= successes and not status.unknowns


def _line(text: str) -> str:
    return one_line(text, limit_bytes=FINDING_LIMIT_BYTES)


def overdue(status: CheckStatus, late_s: float, period_s: float, thresholds: Thresholds, wall: float) -> CheckStatus:
    """The status of a check whose run has not come back `late_s` after its deadline: each run missed is a failure."""
    if status.state is CheckState.HUNG:
        return status
    failures = status.streak.run if status.streak.last is Result.FAILURE else 0
    if status.has_passed and failures + missed_runs(late_s, period_s) < thresholds.failure:
        return status
    finding = Finding(CheckState.HUNG, f"still running {late_s:.0f} s after its deadline")
    return _moved(status, finding, wall - late_s, streak=status.streak, unknowns=status.unknowns)


def finding_of(outcome: Outcome) -> Finding:
    """What a handler of a probe said, as a finding: a warning is a success, as for the kubelet."""
    passed = outcome.result in (HandlerResult.SUCCESS, HandlerResult.WARNING)
    return Finding(CheckState.PASSED if passed else CheckState.FAILED, outcome.output)


def missed_runs(late_s: float, period_s: float) -> int:
    """How many runs a run `late_s` behind its deadline stands for: itself, and those it kept from being made."""
    return 1 + int(max(0.0, late_s) // period_s)


def _moved(
    status: CheckStatus, finding: Finding, wall: float, *, streak: Streak, unknowns: int, kept: bool = False
) -> CheckStatus:
    output = _line(finding.output)
    since = status.since if _side(finding.state, kept=kept) is _side(status.state, kept=status.kept) else wall
    return CheckStatus(status.name, status.severity, since, finding.state, output, streak, unknowns, kept)


def _side(state: CheckState, *, kept: bool) -> _Side:
    match state:
        case CheckState.STARTING:
            return _Side.STARTING
        case CheckState.PASSED:
            return _Side.PASSING
        case CheckState.WARNED:
            return _Side.WARNING
        case CheckState.NOT_APPLICABLE:
            return _Side.NOT_APPLICABLE
        case CheckState.SHARED if kept:
            return _Side.SHARED
        case _:
            return _Side.KEPT if kept else _Side.FAILING
