"""Child processes with a log, ended for certain."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tools.kit.guardian import CHILD_VARIABLE, mark_of_children
from tools.kit.pid import ProcessId
from tools.kit.waiting import wait_for

STOP_EVERY_S = 0.01
_CAUSE_CHARS = 200
# What the machine says when it is not the program's fault; a Go program buries it under the trace of its panic.
_MACHINE = re.compile(
    r"no space left on device|address already in use|cannot allocate memory|too many open files|disk quota exceeded"
    r"|read-only file system|permission denied|operation not permitted|exec format error",
    re.IGNORECASE,
)
_DIED = re.compile(r"^(panic: |fatal error: )|\"level\":\"(fatal|panic)\"", re.IGNORECASE)


class ProcessError(Exception):
    """A process ended or never became ready; str names it, its last words and its log."""


def last_words(log: str) -> str:
    """The cause in one line: what the machine refused, else what the program died of, else its last two lines."""
    lines = [line.strip() for line in log.splitlines() if line.strip() and not line.startswith("--- ")]
    for cause in (_MACHINE, _DIED):
        for line in reversed(lines):
            if found := cause.search(line):
                cut = max(0, found.end() - _CAUSE_CHARS)
                return f"{'... ' if cut else ''}{line[cut:][:_CAUSE_CHARS]}"
    return " / ".join(lines[-2:])[-500:]


def _exit_code(pid: int) -> int | None:
    """Of a child that is not reaped: None while it runs, minus the signal that ended it. It stays to be reaped."""
    ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if ended is None:
        return None
    return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status


class Child:
    """One child in a session of its own (Ctrl-C in the terminal reaches us, not it); its output goes to a log file.

    It ends when we do, however that is, and so does what it has started; not if it `survives`.
    Only stop() reaps it. Popen.poll() does too, under a lock that an interrupt at that moment leaves taken for good.
    note: called with the name and what was started; with None when it was ended.
    lifeline: its standard input stays open while we live; a program that reads it ends with us. Otherwise it is empty.
    """

    def __init__(
        self,
        name: str,
        argv: Sequence[str | Path],
        *,
        log: Path,
        environ: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        note: Callable[[str, ProcessId | None], None] = lambda _name, _process: None,
        lifeline: bool = False,
        survives: bool = False,
    ):
        self.name = name
        self.log = log
        self.started = 0.0  # by the monotonic clock
        self._argv = [str(word) for word in argv]
        self._note = note
        self._environ = {**os.environ, **(environ or {})}
        self._environ.pop(CHILD_VARIABLE, None)  # ours, if we are a child ourselves
        self._survives = survives
        self._cwd = cwd
        self._stdin = subprocess.PIPE if lifeline else subprocess.DEVNULL
        self._popen: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        return self._popen.pid if self._popen else None

    def start(self, **environ: str) -> None:
        """environ: more of it, this time. The log goes on where an earlier start left it."""
        mark = {} if self._survives else {CHILD_VARIABLE: mark_of_children()}
        with self.log.open("ab") as output:
            output.write(f"--- {' '.join(self._argv)}\n".encode())
            output.flush()
            self.started = time.monotonic()
            self._popen = subprocess.Popen(
                self._argv,
                stdin=self._stdin,
                stdout=output,
                stderr=output,
                env={**self._environ, **environ, **mark},
                cwd=self._cwd,
                start_new_session=True,
            )
        self._note(self.name, ProcessId.of(self._popen.pid))

    def running(self) -> bool:
        return self._popen is not None and _exit_code(self._popen.pid) is None

    def check(self) -> None:
        """Raises ProcessError when it ended by itself."""
        code = _exit_code(self._popen.pid) if self._popen else None
        if code is not None:
            raise ProcessError(f"{self.name} ended with code {code}: {self._last_words()} ({self.log})")

    def wait_ready(self, ready: Callable[[], object], *, timeout_s: float, every_s: float = 0.05) -> float:
        """Polls `ready` until it says yes; the seconds since the start. Raises ProcessError."""
        deadline = time.monotonic() + timeout_s
        while not ready():
            self.check()
            if time.monotonic() >= deadline:
                raise ProcessError(
                    f"{self.name} is not ready after {timeout_s:.0f} s: {self._last_words()} ({self.log})"
                )
            time.sleep(every_s)
        return time.monotonic() - self.started

    def stop(self, *, grace_s: float = 10.0, number: int = signal.SIGTERM) -> int | None:
        """The signal, SIGKILL to all of its group after `grace_s`. The exit code, None when it did not run."""
        popen, self._popen = self._popen, None
        if popen is None:
            return None
        if _exit_code(popen.pid) is None:
            os.kill(popen.pid, number)
            if not wait_for(lambda: _exit_code(popen.pid) is not None, timeout_s=grace_s, every_s=STOP_EVERY_S):
                os.killpg(popen.pid, signal.SIGKILL)
        popen.wait()
        if popen.stdin is not None:
            popen.stdin.close()
        self._note(self.name, None)
        return popen.returncode

    def signal(self, number: int) -> None:
        """To it alone; nothing when it has ended."""
        if self._popen is not None:
            os.kill(self._popen.pid, number)  # not reaped, so the number is still its own

    def kill(self) -> None:
        """As a crash would: no word of farewell, and what it started is left."""
        self.stop(number=signal.SIGKILL)

    def text(self) -> str:
        """What it has said so far."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def lines(self) -> list[str]:
        """What it has said so far, without our own words on each start."""
        return [line for line in self.text().splitlines() if not line.startswith("--- ")]

    def _last_words(self) -> str:
        if not self.log.exists():
            return "(its log was removed)"
        return last_words(self.text())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
