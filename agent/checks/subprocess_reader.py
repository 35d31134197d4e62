"""A look at files in a child process: where a mount hangs, that child is killed, and no thread of ours waits for it.

What is called there needs the standard library alone, takes and gives what JSON has, and may raise OSError. What its
module imports is paid for by each look: half of that is `json`, `pathlib` and the like, so what goes to and fro is
marshalled.
"""

import marshal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agent.checks.state import CheckState, Finding
from agent.processes.command import ExecTimeout, RuntimeUnavailable
from agent.processes.single import SingleCommand, StillThere, python_command

OUTPUT_LIMIT_BYTES = 2**24
ROOT = Path(__file__).resolve().parents[2]  # where `agent` is imported from

SCRIPT = """
import marshal, sys
root, module, name, arguments = sys.argv[1:]
sys.path.insert(0, root)
try:
    __import__(module)
    said = {"said": getattr(sys.modules[module], name)(*marshal.loads(bytes.fromhex(arguments)))}
except OSError as e:
    said = {"error": [e.errno, e.strerror, e.filename and str(e.filename)]}
sys.stdout.buffer.write(marshal.dumps(said))
"""


class NoAnswerError(Exception):
    """The look gave none: `finding` says why."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.output)
        self.finding = finding


class Elsewhere:
    """`look(*arguments)`, in a child; `where`: what is looked at, for people. From one thread."""

    def __init__(self, look: Callable[..., Any], *arguments: Any, where: str) -> None:  # noqa: ANN401 - any JSON
        words = (str(ROOT), look.__module__, look.__name__, marshal.dumps(arguments).hex())
        self._command = SingleCommand(python_command(SCRIPT, *words), output_limit_bytes=OUTPUT_LIMIT_BYTES)
        self._where = where

    def __call__(self, within_s: float) -> Any:  # noqa: ANN401 - any JSON
        """Raises OSError as the look did, NoAnswerError."""
        try:
            done = self._command.run(within_s)
        except StillThere as e:
            raise NoAnswerError(Finding(CheckState.HUNG, f"{self._where}: {e}")) from e
        except ExecTimeout as e:
            raise NoAnswerError(Finding(CheckState.HUNG, f"{self._where}: no end after {within_s:g} s")) from e
        except RuntimeUnavailable as e:
            raise NoAnswerError(Finding(CheckState.UNKNOWN, str(e))) from e
        try:
            (how, said), *_ = marshal.loads(done.stdout).items()  # noqa: S302 - of our own program
        except (AttributeError, EOFError, TypeError, ValueError) as e:
            last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
            words = " ".join(last) or f"the child process ended with {done.exit_code}"
            raise NoAnswerError(Finding(CheckState.UNKNOWN, f"cannot look at {self._where}: {words}")) from e
        if how == "error":
            raise OSError(*said)
        return said


class Patience:
    """One deadline for all that one run does."""

    def __init__(self, within_s: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._until = monotonic() + within_s
        self._monotonic = monotonic

    def left_s(self) -> float:
        return max(0.0, self._until - self._monotonic())
