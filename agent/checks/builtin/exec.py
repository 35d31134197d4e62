"""The check `exec`: a command of the agent's own container; exit code 0 is passed."""

from typing import Annotated

from msgspec import Meta

from agent.checks.rights import NO_RIGHTS
from agent.checks.state import CheckState, Finding
from agent.probe.exec import outcome_of
from agent.probe.result import HandlerResult
from agent.processes.command import ExecTimeout, RuntimeUnavailable
from agent.processes.single import SingleCommand, StillThere
from component.settings import Section

DOC = "the command ends with exit code 0 within the timeout"
RIGHTS = NO_RIGHTS


class Settings(Section, frozen=True):
    command: Annotated[tuple[str, ...], Meta(min_length=1, description="a list of one word or more")]


class Check:
    """A command that outlived SIGKILL (uninterruptible sleep) is not started a second time beside itself."""

    def __init__(self, settings: Settings, timeout_s: float) -> None:
        self._command = SingleCommand(settings.command)
        self._timeout_s = timeout_s

    def __call__(self) -> Finding:
        """PASSED, FAILED with the exit code, HUNG when it was killed, UNKNOWN when it could not be started."""
        try:
            done = self._command.run(self._timeout_s)
        except StillThere as e:
            return Finding(CheckState.HUNG, str(e))
        except ExecTimeout as e:
            output = e.output.decode(errors="replace").strip()
            return Finding(CheckState.HUNG, f"killed after {self._timeout_s:g} s" + (f"; {output}" if output else ""))
        except RuntimeUnavailable as e:
            return Finding(CheckState.UNKNOWN, str(e))
        outcome = outcome_of(done)
        if outcome.result is HandlerResult.SUCCESS:
            return Finding(CheckState.PASSED, outcome.output)
        ended = f"signal {-done.exit_code}" if done.exit_code < 0 else f"exit code {done.exit_code}"
        return Finding(CheckState.FAILED, f"{ended}: {outcome.output}" if outcome.output.strip() else ended)
