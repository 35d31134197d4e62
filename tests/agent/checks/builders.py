"""Statuses of checks, by a letter for the state."""

from agent.checks.state import CheckState, CheckStatus, Finding, Severity, Thresholds, next_status

WALL = 1_000_000.0
STATES = {
    "p": CheckState.PASSED,
    "w": CheckState.WARNED,
    "f": CheckState.FAILED,
    "u": CheckState.UNKNOWN,
    "S": CheckState.SHARED,
    "h": CheckState.HUNG,
    "s": CheckState.STARTING,
    "n": CheckState.NOT_APPLICABLE,
}


def check(state: str = "s", name: str = "cni", *, warn: bool = False, output: str = "") -> CheckStatus:
    severity = Severity.WARN if warn else Severity.GATE
    return CheckStatus(name, severity, since=WALL, state=STATES[state], output=output)


def after(findings: str, thresholds: Thresholds = Thresholds(), output: str = "") -> CheckStatus:  # noqa: B008 - frozen
    """A check that started at WALL and had a finding in each of the seconds after it."""
    status = check()
    for second, letter in enumerate(findings, start=1):
        status = next_status(status, Finding(STATES[letter], output), thresholds, WALL + second)
    return status
