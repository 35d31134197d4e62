"""Pure: what checks that do not pass said when that began, for alerts.

A series lives as long as its labels stay the same, so a text that changes with each run must not be one: it is kept
from the first time it was asked for until the check passes again.
"""

from collections.abc import Iterable, Mapping

from agent.checks.state import CheckState, CheckStatus, Severity

FAULTS = frozenset({CheckState.WARNED, CheckState.FAILED, CheckState.HUNG, CheckState.UNKNOWN, CheckState.SHARED})
OUTPUT_LIMIT = 200  # characters


class Said:
    """From one thread."""

    def __init__(self) -> None:
        self._outputs: dict[tuple[str, float], str] = {}

    def samples(self, statuses: Iterable[CheckStatus]) -> list[tuple[Mapping[str, str], float]]:
        """One with the value 1 for each check that applies and does not pass, or warns: its name, severity, state and
        output. A check that warns closes no node whatever its severity, so for alerts it is one of severity warn."""
        faults = [status for status in statuses if status.state in FAULTS]
        # The time is that at which it ceased to pass.
        self._outputs = {
            (s.name, s.since): self._outputs.get((s.name, s.since), s.output[:OUTPUT_LIMIT]) for s in faults
        }
        return [
            (
                {
                    "check": s.name,
                    "severity": str(Severity.WARN if s.state is CheckState.WARNED else s.severity),
                    "state": str(s.state),
                    "output": self._outputs[s.name, s.since],
                },
                1.0,
            )
            for s in faults
        ]
