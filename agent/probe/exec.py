"""The exec handler, as pkg/probe/exec: the runtime runs the command, its exit code is the verdict."""

from collections.abc import Callable, Sequence

from agent.probe.result import HandlerError, HandlerResult, Outcome
from agent.processes.command import OUTPUT_LIMIT_BYTES, Completed, ExecTimeout, RuntimeUnavailable

Execute = Callable[[str, Sequence[str], float], Completed]
"""(container id, command, timeout in seconds). Raises ExecTimeout, RuntimeUnavailable."""


def exec_command(execute: Execute, container_id: str, command: Sequence[str], timeout_s: float) -> Outcome:
    """One probe. A timeout is a failure; raises HandlerError when the runtime could not run the command."""
    try:
        done = execute(container_id, command, timeout_s)
    except ExecTimeout as e:
        return Outcome(HandlerResult.FAILURE, str(e))
    except (RuntimeUnavailable, OSError) as e:
        raise HandlerError(str(e), HandlerResult.UNKNOWN) from e
    return outcome_of(done)


def outcome_of(done: Completed) -> Outcome:
    """The exit code is the result; stdout, then stderr, up to 10 KiB together, is the output."""
    output = (done.stdout + done.stderr)[:OUTPUT_LIMIT_BYTES].decode(errors="replace")
    return Outcome(HandlerResult.SUCCESS if done.exit_code == 0 else HandlerResult.FAILURE, output)


def timeouts_are_no_failures(execute: Execute) -> Execute:
    """As of old: a command that takes too long could not be run, so its probe has no result."""

    def run(container_id: str, command: Sequence[str], timeout_s: float) -> Completed:
        try:
            return execute(container_id, command, timeout_s)
        except ExecTimeout as e:
            raise RuntimeUnavailable(str(e)) from e

    return run
