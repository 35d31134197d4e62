"""What the machine has left: memory, the file system of the pods, tasks. Measured every ten seconds, as a kubelet does.

Memory and tasks are the kernel's own files. The file system is looked at by a child process, which can be killed where
it hangs: what was found before stays until it can be measured again.
"""

import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from agent.node.pressure import MEMORY, NODEFS, NODEFS_INODES, PIDS, Observation, Pressure, Threshold, looked
from agent.processes.command import ExecTimeout, RuntimeUnavailable
from agent.processes.single import SingleCommand, StillThere, python_command
from component.loop import Loop

log = logging.getLogger(__name__)

LOOK_S = 10.0  # evictionMonitoringPeriod
WITHIN_S = 5.0
STUCK_AFTER_S = 60.0
SCRIPT = """
import json, os, sys
found = os.statvfs(sys.argv[1])
print(json.dumps([found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize, found.f_files, found.f_ffree]))
"""


class CannotMeasureError(Exception):
    """One line."""


class Measure:
    """`folder`: on the file system of the pods. From one thread."""

    def __init__(self, folder: Path, root: Path = Path("/")) -> None:
        self._folder = folder
        self._root = root
        self._command = SingleCommand(python_command(SCRIPT, str(folder)))

    def __call__(self) -> Mapping[str, Observation]:
        """By signal, as far as the machine tells. Raises CannotMeasureError."""
        try:
            memory = memory_of((self._root / "proc/meminfo").read_text())
            limits = [(self._root / "proc/sys/kernel" / name).read_text() for name in ("pid_max", "threads-max")]
            tasks = tasks_of((self._root / "proc/loadavg").read_text(), limits)
            done = self._command.run(WITHIN_S)
            blocks, free_blocks, files, free_files = json.loads(done.stdout)
        except (OSError, StillThere, RuntimeUnavailable) as e:
            raise CannotMeasureError(str(e)) from e
        except ExecTimeout as e:
            raise CannotMeasureError(f"{self._folder}: no answer within {WITHIN_S:g} s") from e
        except ValueError as e:
            raise CannotMeasureError(f"{self._folder}: {e}") from e
        return {
            MEMORY: memory,
            NODEFS: Observation(blocks, free_blocks),
            NODEFS_INODES: Observation(files, free_files),
            PIDS: tasks,
        }


def memory_of(meminfo: str) -> Observation:
    """What is neither free nor pages of files that nobody has used for long is the working set. Raises ValueError."""
    found = {}
    for line in meminfo.splitlines():
        name, _, amount = line.partition(":")
        found[name] = amount.split()[0] if amount.split() else ""
    try:
        total, free, inactive = (int(found[name]) * 2**10 for name in ("MemTotal", "MemFree", "Inactive(file)"))
    except KeyError as e:
        raise ValueError(f"/proc/meminfo has no {e}") from e
    return Observation(total, free + inactive)


def tasks_of(loadavg: str, limits: Sequence[str]) -> Observation:
    """As pidlimit.Stats. Raises ValueError."""
    words = loadavg.split()
    running = words[3].partition("/")[2] if len(words) > 3 else ""
    most = min(int(limit) for limit in limits)
    return Observation(most, most - int(running))


class PressureWatch:
    """A Service. `measure` may wait for some seconds."""

    name = "node pressure"

    def __init__(
        self,
        thresholds: Sequence[Threshold],
        transition_s: float,
        measure: Callable[[], Mapping[str, Observation]],
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.thresholds = thresholds
        self._transition_s = transition_s
        self._measure = measure
        self._monotonic = monotonic
        self._pressure = Pressure()  # replaced as a whole
        self._said = ""
        self._loop = Loop("node-pressure", self.turn, stuck_after_s=STUCK_AFTER_S, monotonic=monotonic)
        # A Service by its loop.
        self.start, self.stop, self.healthy = self._loop.start, self._loop.stop, self._loop.healthy

    @property
    def conditions(self) -> frozenset[str]:
        """The types of the Node's conditions that are true."""
        return self._pressure.conditions

    def turn(self) -> float:
        """One look; returns the seconds until the next."""
        before = self._pressure
        try:
            observed = self._measure()
        except CannotMeasureError as e:
            if str(e) != self._said:
                log.warning("node not measured", extra={"error": str(e)})
            self._said = str(e)
            return LOOK_S
        self._said = ""
        after = looked(before, self.thresholds, observed, self._transition_s, self._monotonic())
        self._pressure = after
        for kind in sorted(before.conditions ^ after.conditions):
            log.info("node pressure changed", extra={"condition": kind, "under": kind in after.conditions})
        return LOOK_S
