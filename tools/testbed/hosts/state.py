"""What a run of ring 3 has made, on disk, so that any later process can find it, use it and remove it."""

import dataclasses
import fcntl
import json
import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from tools.kit.cache import key_of
from tools.kit.pid import ProcessId
from tools.testbed.hosts.errors import HostsError

_DEFAULT_FOLDER = "/var/lib/readygate-testbed"


@dataclass
class State:
    """`phase`: starting | up. `processes`: host name -> its systemd-nspawn. `cgroups`: folders that are ours."""

    phase: str = "starting"
    since: str = ""
    processes: dict[str, ProcessId] = field(default_factory=dict)
    cgroups: list[str] = field(default_factory=list)

    def alive(self) -> bool:
        """Every host of a complete start still runs."""
        return self.phase == "up" and all(process.alive() for process in self.processes.values())


class RunFolder:
    """The folder of one set of hosts, beside those of others; `READYGATE_TESTBED_DIR`: another place for all."""

    def __init__(self, folder: Path | None = None, name: str = "hosts") -> None:
        self.path = folder or Path(os.environ.get("READYGATE_TESTBED_DIR", _DEFAULT_FOLDER)) / name
        self.run_id = key_of([str(self.path)])[:6]
        self._state_file = self.path / "state.json"
        self._lock_file = self.path.with_name(f"{name}.lock")
        self._lock: IO[str] | None = None

    def read(self) -> State | None:
        """None when there is no run, or none that got as far as to write its state."""
        try:
            raw = json.loads(self._state_file.read_text())
            processes = {name: ProcessId(**process) for name, process in raw.pop("processes").items()}
            raw.pop("limits", None)  # of hosts that an earlier checkout has started
            return State(processes=processes, **raw)
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def write(self, state: State) -> None:
        new = self._state_file.with_suffix(".new")
        new.write_text(json.dumps(dataclasses.asdict(state)))
        new.replace(self._state_file)

    def lock(self) -> None:
        """Only the holder may make or remove hosts; the kernel lets go when the holder dies. Raises HostsError."""
        if self._lock:
            return
        self._lock_file.parent.mkdir(parents=True, exist_ok=True)
        file = self._lock_file.open("a+")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as e:
            file.seek(0)
            holder = file.read().strip() or "another process"
            file.close()
            raise HostsError(f"the hosts of ring 3 are in use by {holder}: wait for its end, or end it") from e
        file.truncate(0)
        file.write(f"process {os.getpid()}")
        file.flush()
        self._lock = file

    def unlock(self) -> None:
        if self._lock:
            self._lock.close()
            self._lock = None

    def unmount(self) -> None:
        """Everything mounted below the folder, innermost first."""
        below = re.compile(re.escape(str(self.path)) + "/")
        targets = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
        for target in reversed([target for target in targets if below.match(target)]):
            subprocess.run(["umount", "--lazy", target], capture_output=True, check=False)
