"""From the states of all checks to the health of the node, and the words that say it. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from agent.checks.state import CheckState, CheckStatus, Severity
from agent.wire.condition import REASON_CHECK_FAILED, REASON_CHECK_UNKNOWN, REASON_CHECKS_PASSED, REASON_STARTING
from component.text import one_line
from kube import contract
from kube.times import format_time

MESSAGE_LIMIT_BYTES = 1024  # of the condition: a Pod with many failing checks must stay readable


@dataclass(frozen=True, slots=True)
class NodeHealth:
    """`reason` is one of `wire.condition`. `problems`: the gate checks that close the node, in configured order.

    `notices`: what does not close it but must be said: gate checks whose last result is kept, or whose fault is shared
    with other nodes, failing checks of severity warn, and checks that warn. `checks`: how many there are that apply.
    `not_applicable`: the others.
    """

    healthy: bool
    reason: str
    problems: tuple[CheckStatus, ...] = ()
    checks: int = 0
    notices: tuple[CheckStatus, ...] = ()
    not_applicable: tuple[CheckStatus, ...] = ()

    @property
    def identity(self) -> tuple[object, ...]:
        """What makes two of them different ones: outputs change with every run and do not count, nor do warnings, nor
        what is shared or not applicable: that comes to all nodes at once, who would all write."""
        return self.reason, tuple((check.name, check.state) for check in (*self.problems, *self.kept))

    @property
    def kept(self) -> tuple[CheckStatus, ...]:
        """The gate checks whose last result is kept."""
        return tuple(check for check in self.notices if _is_kept(check))

    @property
    def log_key(self) -> tuple[object, ...]:
        """Identity, warnings, and what does not apply; a change is logged."""
        checks = (*self.problems, *self.notices, *self.not_applicable)
        return self.reason, tuple((check.name, check.state) for check in checks)


def node_health(statuses: Sequence[CheckStatus]) -> NodeHealth:
    """All gate checks passed, or their last result is kept: healthy. Else the reason is that of the worst."""
    not_applicable = tuple(s for s in statuses if s.state is CheckState.NOT_APPLICABLE)
    bad = [s for s in statuses if not s.state.closes_nothing]
    problems = tuple(s for s in bad if s.severity is Severity.GATE and not s.kept)
    warnings = (s for s in statuses if _is_warning(s))
    kept = tuple(s for s in bad if _is_kept(s))
    shared = (s for s in bad if s.severity is Severity.GATE and s.kept and s.state is CheckState.SHARED)
    states = {problem.state for problem in problems}
    if states & {CheckState.FAILED, CheckState.HUNG}:
        reason = REASON_CHECK_FAILED
    elif states & {CheckState.UNKNOWN, CheckState.SHARED}:
        reason = REASON_CHECK_UNKNOWN
    elif states:
        reason = REASON_STARTING
    else:
        reason = REASON_CHECK_UNKNOWN if kept else REASON_CHECKS_PASSED
    count = len(statuses) - len(not_applicable)
    return NodeHealth(not problems, reason, problems, count, (*kept, *shared, *warnings), not_applicable)


def readyz_text(health: NodeHealth, wall: float) -> str:
    """`ok`, or one line per problem: name, state, since when in seconds, last output. Then a line per notice."""
    checks = (*health.problems, *health.notices)
    lines = [_described(check, f"{max(0, int(wall - check.since))} s") for check in checks]
    return "".join(f"{line}\n" for line in (["ok", *lines] if health.healthy else lines))


def condition_message(health: NodeHealth) -> str:
    """The message of the condition, on one line. Times are absolute, so it does not change while nothing happens."""
    checks = (*health.problems, *health.notices)
    if not checks:
        return one_line(_all_passed(health), limit_bytes=MESSAGE_LIMIT_BYTES)
    said = "; ".join(_described(check, format_time(check.since)) for check in checks)
    return one_line(f"{contract.HEALTHY_BUT if health.healthy else ''}{said}", limit_bytes=MESSAGE_LIMIT_BYTES)


def _all_passed(health: NodeHealth) -> str:
    names = ", ".join(check.name for check in health.not_applicable)
    if names and not health.checks:
        return f"no check is applicable: {names}"
    return f"all checks passed ({health.checks})" + (f"; not applicable: {names}" if names else "")


def status_line(health: NodeHealth) -> str:
    """One line for systemd, which does not change while nothing happens: `healthy`, `starting` or `not healthy`, and
    the condition's message."""
    word = "healthy" if health.healthy else "starting" if health.reason == REASON_STARTING else "not healthy"
    return f"{word}: {condition_message(health)}"


def log_text(checks: Sequence[CheckStatus]) -> str:
    """The checks for a fact of the log: name, state, last output where there is one."""
    return "; ".join(f"{check.name}: {check.state}{_output(check)}" for check in checks)


def _is_kept(check: CheckStatus) -> bool:
    return check.severity is Severity.GATE and check.kept and check.state is not CheckState.SHARED


def _is_warning(check: CheckStatus) -> bool:
    if check.severity is Severity.GATE:
        return check.state is CheckState.WARNED
    return check.state not in (CheckState.PASSED, CheckState.STARTING, CheckState.NOT_APPLICABLE)


def _described(check: CheckStatus, since: str) -> str:
    """One line about a failing check; notices say why they do not close the node."""
    warns = check.severity is Severity.WARN and check.state is not CheckState.WARNED
    kept = ", not of this node alone," if check.state is CheckState.SHARED else ", passed before and kept open,"
    mark = " (warn)" if warns else kept if check.kept else ""
    return f"{check.name}: {check.state}{mark} since {since}{_output(check)}"


def _output(check: CheckStatus) -> str:
    return f": {check.output}" if check.output else ""
