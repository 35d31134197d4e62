"""The ledger of the processes a run started, by which a later run can end exactly these and nothing else."""

import json
import threading
from dataclasses import asdict
from pathlib import Path

from tools.kit.pid import ProcessId

# Names the run's folder in the environment of everything a run starts, so that also its grandchildren are found: a
# killed agent leaves the processes of its pods behind, and nobody else knows of them.
RUN_VARIABLE = "READYGATE_TESTBED_RUN"


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
