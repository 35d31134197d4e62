"""The folder of one run of the testbed, and the end of what crashed runs left."""

import contextlib
import itertools
import os
import shutil
import signal
import stat
import tempfile
import time
from collections.abc import Container, Iterable
from pathlib import Path

from tools.kit.child import Child
from tools.kit.pid import ProcessId, end_all
from tools.kit.whole import end_marked
from tools.testbed.shared.processes import RUN_VARIABLE, Ledger

# Logs outlive the run: they are what a person reads after a failure. LOGS/NAME/latest leads to the last run's.
LOGS = Path(__file__).resolve().parents[3] / "build" / "logs"
_LATEST = "latest"
_KEPT = 10
_LEDGER = "processes.json"
# In a folder of logs: the run's own folder, which is gone when the run is.
_RUN = "run"
_count = itertools.count(1)


def runs_folder() -> Path:
    """`$READYGATE_TESTBED_DIR`, else a folder of this user under the folder for temporary files. Mode 0700."""
    named = os.environ.get("READYGATE_TESTBED_DIR")
    folder = Path(named) / "planes" if named else Path(tempfile.gettempdir()) / f"readygate-testbed-{os.getuid()}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    about = folder.lstat()
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid():
        raise RuntimeError(f"{folder} is not a folder of this user: remove it or set READYGATE_TESTBED_DIR")
    return folder


def end_crashed_runs() -> list[str]:
    """Ends what is left of runs whose owner is gone, and removes their folders. Returns their names."""
    ended = []
    for folder in sorted(runs_folder().iterdir()):
        # A folder without a ledger is just being made by another run.
        if not (folder / _LEDGER).exists():
            continue
        owner = Ledger.read(folder / _LEDGER).owner
        if owner and not owner.alive():
            Run.end(folder)
            ended.append(folder.name)
    return ended


class Run:
    """Folder, logs and ledger of one run. A run that is `lasting` stays when the process that began it ends.

    Two runs never share a folder of logs. A lasting run that is up has its logs where it began them, whoever asks.
    """

    def __init__(self, name: str, *, lasting: bool = False):
        self.name = name
        number = f"{os.getpid()}-{next(_count)}"
        self.folder = runs_folder() / (name if lasting else f"{name}-{number}")
        self.ledger = Ledger.read(self.folder / _LEDGER)
        self._own_logs = LOGS / name / f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{number}"
        self._lasting = lasting

    @property
    def logs(self) -> Path:
        return self.ledger.logs or self._own_logs

    @property
    def temporary(self) -> Path:
        """For temporary files of the run's processes: those of a killed one go with the run."""
        return self.folder / "tmp"

    def begin(self) -> None:
        """A fresh folder; ends what an earlier run of that folder and crashed runs left."""
        end_crashed_runs()
        Run.end(self.folder)
        self._begin_logs()
        self.folder.mkdir(mode=0o700)
        self.temporary.mkdir()
        self.ledger = Ledger(self.folder / _LEDGER)
        self.ledger.logs = self._own_logs
        self.ledger.owner = None if self._lasting else ProcessId.of(os.getpid())
        self.ledger.write()

    def _begin_logs(self) -> None:
        self._own_logs.mkdir(parents=True)
        (self._own_logs / _RUN).write_text(f"{self.folder}\n")
        others = self._own_logs.parent
        link = others / f"{_LATEST}.{self._own_logs.name}"
        link.symlink_to(self._own_logs.name)
        link.replace(others / _LATEST)
        _forget_old_logs(others)

    def process(self, name: str, argv: list[str | Path], **options: object) -> Child:
        """A process of this run, not started."""
        environ = {
            RUN_VARIABLE: str(self.folder),
            "TMPDIR": str(self.temporary),
            **dict(options.pop("environ", None) or {}),
        }
        log, note = self.logs / f"{name}.log", self.ledger.note
        return Child(name, argv, log=log, note=note, environ=environ, survives=self._lasting, **options)

    def end_all_but(self, kept: Container[str]) -> None:
        """Ends the recorded processes of other names, politely."""
        end_all([process for name, process in reversed(self.ledger.processes.items()) if name not in kept], grace_s=5.0)

    def kill(self, names: Iterable[str]) -> None:
        """Ends the recorded processes of these names at once."""
        for name in names:
            if name in self.ledger.processes:
                self.ledger.processes[name].signal(signal.SIGKILL)

    def finish(self) -> None:
        """Ends all that still runs and removes the folder; the logs stay."""
        Run.end(self.folder)

    @staticmethod
    def end(folder: Path) -> None:
        """Ends every process of the run in `folder`, the youngest first, and removes the folder."""
        if not folder.exists():
            return
        recorded = list(Ledger.read(folder / _LEDGER).processes.values())
        end_all([process for process in reversed(recorded) if process.alive()], grace_s=3.0)
        end_marked(str(folder), variable=RUN_VARIABLE)
        _remove(folder)


def _forget_old_logs(folder: Path) -> None:
    """Keeps the logs of the last runs of one name, and those of any run that is still there."""
    begun: dict[Path, tuple[int, str]] = {}
    for path in folder.iterdir():
        with contextlib.suppress(OSError):  # not a run's, or another run that begins now has forgotten it
            if path.name != _LATEST:
                begun[path] = (path / _RUN).stat().st_mtime_ns, (path / _RUN).read_text().strip()
    for logs in sorted(begun, key=lambda path: begun[path][0])[:-_KEPT]:
        if Ledger.read(Path(begun[logs][1]) / _LEDGER).logs != logs:
            shutil.rmtree(logs, ignore_errors=True)


def _remove(folder: Path) -> None:
    deadline = time.monotonic() + 3.0
    while folder.exists():
        shutil.rmtree(folder, ignore_errors=time.monotonic() < deadline)
