"""Processes the testbed starts, and the ledger by which a later run can end exactly these and nothing else."""

import json
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from tests.kit.pid import ProcessId, find_processes

_CAUSE_CHARS = 200
# Names the run's folder in the environment of everything a run starts, so that also its grandchildren are found: a
# killed agent leaves the processes of its pods behind, and nobody else knows of them.
RUN_VARIABLE = "READYGATE_TESTBED_RUN"


class ProcessError(Exception):
    """A process of the testbed ended or never became ready; str names it, its last words and its log."""


def carrying(run: Path) -> list[ProcessId]:
    """Living processes that carry `run` in RUN_VARIABLE, without this one."""
    wanted = f"{RUN_VARIABLE}={run}".encode()
    return find_processes(lambda _, environ: wanted in environ)


class Ledger:
    """What a run started, kept on disk. `owner` None: the run outlives the process that began it.

    `logs`: the folder of the run's logs, None before it began.
    """

    def __init__(self, path: Path):
        self._path = path
        self._lock = threading.Lock()  # processes are started by several threads at once
        self.owner: ProcessId | None = None
        self.logs: Path | None = None
        self.processes: dict[str, ProcessId] = {}

    @classmethod
    def read(cls, path: Path) -> "Ledger":
        """An empty ledger when the file is missing or was cut by a crash."""
        ledger = cls(path)
        try:
            document = json.loads(path.read_text())
            ledger.owner = ProcessId(**document["owner"]) if document["owner"] else None
            ledger.logs = Path(document["logs"]) if document.get("logs") else None
            ledger.processes = {name: ProcessId(**fields) for name, fields in document["processes"].items()}
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            pass
        return ledger

    def write(self) -> None:
        document = {
            "owner": asdict(self.owner) if self.owner else None,
            "logs": str(self.logs) if self.logs else None,
            "processes": {name: asdict(process) for name, process in self.processes.items()},
        }
        part = self._path.with_suffix(".part")
        part.write_text(json.dumps(document, indent=1))
        part.replace(self._path)

    def note(self, name: str, process: ProcessId | None) -> None:
        """`process` None: it was ended."""
        with self._lock:
            if process:
                self.processes[name] = process
            else:
                self.processes.pop(name, None)
            self.write()


# What the machine says when it is not the program's fault; a Go program buries it under the trace of its panic.
_MACHINE = re.compile(
    r"no space left on device|address already in use|cannot allocate memory|too many open files|disk quota exceeded"
    r"|read-only file system|permission denied|operation not permitted|exec format error",
    re.IGNORECASE,
)
_DIED = re.compile(r"^(panic: |fatal error: )|\"level\":\"(fatal|panic)\"", re.IGNORECASE)


def last_words(log: str) -> str:
    """The cause in one line: what the machine refused, else what the program died of, else its last two lines."""
    lines = [line.strip() for line in log.splitlines() if line.strip() and not line.startswith("--- ")]
    for cause in (_MACHINE, _DIED):
        for line in reversed(lines):
            if found := cause.search(line):
                cut = max(0, found.end() - _CAUSE_CHARS)
                return f"{'... ' if cut else ''}{line[cut:][:_CAUSE_CHARS]}"
    return " / ".join(lines[-2:])[-500:]


class Process:
    """One child in a session of its own (Ctrl-C in the terminal reaches us, not it); its output goes to a log file."""

    def __init__(
        self,
        name: str,
        argv: Sequence[str | Path],
        *,
        log: Path,
        ledger: Ledger,
        environ: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ):
        self.name = name
        self.log = log
        self._argv = [str(word) for word in argv]
        self._ledger = ledger
        self._environ = {**os.environ, **(environ or {})}
        self._cwd = cwd
        self._popen: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        return self._popen.pid if self._popen else None

    def start(self) -> None:
        with self.log.open("ab") as output:
            output.write(f"--- {' '.join(self._argv)}\n".encode())
            output.flush()
            self._popen = subprocess.Popen(
                self._argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=self._environ,
                cwd=self._cwd,
                start_new_session=True,
            )
        self._ledger.note(self.name, ProcessId.of(self._popen.pid))

    def running(self) -> bool:
        return self._popen is not None and self._popen.poll() is None

    def check(self) -> None:
        """Raises ProcessError when it ended by itself."""
        if self._popen is not None and self._popen.poll() is not None:
            raise ProcessError(
                f"{self.name} ended with code {self._popen.returncode}: {self._last_words()} ({self.log})"
            )

    def wait_ready(self, ready: Callable[[], bool], *, timeout_s: float) -> None:
        """Polls `ready` until it says True. Raises ProcessError."""
        deadline = time.monotonic() + timeout_s
        while not ready():
            self.check()
            if time.monotonic() >= deadline:
                raise ProcessError(
                    f"{self.name} is not ready after {timeout_s:.0f} s: {self._last_words()} ({self.log})"
                )
            time.sleep(0.05)

    def stop(self, *, grace_s: float = 10.0) -> int | None:
        """SIGTERM, SIGKILL after `grace_s`; 0 kills at once. Returns the exit code, None when it did not run."""
        popen, self._popen = self._popen, None
        if popen is None:
            return None
        if popen.poll() is None:
            popen.send_signal(signal.SIGTERM if grace_s else signal.SIGKILL)
            try:
                popen.wait(grace_s or 10.0)
            except subprocess.TimeoutExpired:
                popen.kill()
                popen.wait()
        self._ledger.note(self.name, None)
        return popen.returncode

    def kill(self) -> None:
        """As a crash would: no word of farewell."""
        self.stop(grace_s=0)

    def _last_words(self) -> str:
        if not self.log.exists():
            return "(its log was removed)"
        return last_words(self.log.read_text(errors="replace"))
