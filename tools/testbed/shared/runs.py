"""The folder of one run of the testbed, and the end of what crashed runs left."""

import contextlib
import hashlib
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
# Memory that looks like a folder, where this machine has it.
_MEMORY = Path("/dev/shm")
_MEMORY_PREFIX = f"readygate-{os.getuid()}-"
_MEMORY_BYTES = 2 << 30  # that must be free there: one control plane takes a tenth of it
# In a folder there: the run's own folder.
_OF = "of"
_FORGOTTEN_S = 3600.0  # after which a folder without that file is nobody's any more


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
    _forget_memory()
    return ended


def _available_bytes() -> int:
    """Memory that programs can have without others losing theirs; 0 where the kernel does not report it."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    return 0


def _memory_of(folder: Path) -> Path:
    """Where the run in `folder` has its data in memory, if it has."""
    return _MEMORY / f"{_MEMORY_PREFIX}{hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]}"


def _forget_memory() -> None:
    """Removes from memory what runs left whose folder is gone, of all checkouts of this user."""
    for path in _MEMORY.glob(f"{_MEMORY_PREFIX}*"):
        with contextlib.suppress(OSError):  # another run that begins or ends now has removed it
            of = path / _OF
            if of.exists():
                gone = not Path(of.read_text()).exists()
            else:  # another run is just making it, or was killed then
                gone = time.time() - path.stat().st_mtime > _FORGOTTEN_S
            if gone and path.lstat().st_uid == os.getuid():
                shutil.rmtree(path, ignore_errors=True)


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

    def volatile(self) -> Path:
        """A folder in memory, for data that are thrown away with the run; else the run's own, on disk.

        In memory only while there is plenty of it.
        """
        try:
            if min(shutil.disk_usage(_MEMORY).free, _available_bytes()) < _MEMORY_BYTES:
                return self.folder
            folder = _memory_of(self.folder)
            folder.mkdir(mode=0o700)
            (folder / _OF).write_text(str(self.folder))
        except OSError:  # there is no such place, or it may not be written
            return self.folder
        return folder

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
        _remove(_memory_of(folder))
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
