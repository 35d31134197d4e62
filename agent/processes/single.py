"""One command again and again, never beside itself: what outlived SIGKILL has to end before it is started anew.

So may a check look at what can hang: a file on a dead server, a disk, a driver. A child in uninterruptible sleep is one
process more, not one with each run, and a thread of ours never waits in it: the agent itself can always be ended.
"""

import sys
from collections.abc import Sequence

from agent.processes.command import OUTPUT_LIMIT_BYTES, Completed, ExecTimeout, run_command
from agent.processes.spawn import Process


class StillThere(Exception):  # noqa: N818 - what it is
    """The process of an earlier run cannot be killed."""


class SingleCommand:
    """From one thread."""

    def __init__(self, command: Sequence[str], *, output_limit_bytes: int = OUTPUT_LIMIT_BYTES) -> None:
        self._command = tuple(command)
        self._output_limit_bytes = output_limit_bytes
        self._leftover: Process | None = None

    def run(self, timeout_s: float) -> Completed:
        """Raises StillThere, ExecTimeout with what was written until then, RuntimeUnavailable."""
        if self._leftover is not None:
            if self._leftover.poll() is None:
                raise StillThere(f"process {self._leftover.pid} cannot be killed")
            self._leftover = None
        try:
            return run_command(
                self._command, timeout_s=timeout_s, output_limit_bytes=self._output_limit_bytes, sweep=True
            )
        except ExecTimeout as e:
            self._leftover = e.leftover
            raise


def python_command(script: str, *arguments: str) -> list[str]:
    """A command that runs `script`, which may use the standard library alone: ten milliseconds, 8 MiB while it runs."""
    return [sys.executable, "-I", "-S", "-c", script, *arguments]
