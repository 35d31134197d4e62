"""What the machine has left: memory, file systems, tasks. Measured every ten seconds, as a kubelet does.

Memory and tasks are the kernel's own files. File systems are looked at by a child process, which can be killed where
one hangs: what was found before stays until all can be measured again. Where images and containers are the container
runtime says; while it cannot be asked nothing is measured, as by a kubelet.
"""

import json
import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from agent.kubelet.node.pressure import (
    CONTAINER_SIGNALS,
    IMAGE_SIGNALS,
    MEMORY,
    NODE_SIGNALS,
    PIDS,
    Observation,
    Pressure,
    Seen,
    Threshold,
    looked,
)
from agent.processes.command import ExecTimeout, RuntimeUnavailable
from agent.processes.single import SingleCommand, StillThere, python_command
from component.loop import Loop
from component.text import one_line

log = logging.getLogger(__name__)

LOOK_S = 10.0  # evictionMonitoringPeriod
WITHIN_S = 5.0
STUCK_AFTER_S = 60.0
SCRIPT = """
import json, os, sys
def look(folder):
    found = os.statvfs(folder)
    size = found.f_frsize
    return os.stat(folder).st_dev, found.f_blocks * size, found.f_bavail * size, found.f_files, found.f_ffree
print(json.dumps([look(folder) for folder in sys.argv[1:]]))
"""
Folders = tuple[str, str]
"""Of images and of containers."""


class CannotMeasureError(Exception):
    """One line."""


class Measure:
    """`folder`: on the file system of the volumes. `folders`: raises RuntimeUnavailable; None: without a container
    runtime. From one thread."""

    def __init__(self, folder: Path, root: Path = Path("/"), *, folders: Callable[[], Folders] | None = None) -> None:
        self._folder = str(folder)
        self._root = root
        self._folders = folders
        self._looked_at: tuple[str, ...] = (self._folder,)
        self._command = SingleCommand(python_command(SCRIPT, self._folder))

    def __call__(self) -> Seen:
        """Raises CannotMeasureError."""
        try:
            memory = memory_of((self._root / "proc/meminfo").read_text())
            limits = [(self._root / "proc/sys/kernel" / name).read_text() for name in ("pid_max", "threads-max")]
            tasks = tasks_of((self._root / "proc/loadavg").read_text(), limits)
            self._look_at(self._folder, *(self._folders() if self._folders else ()))
            done = self._command.run(WITHIN_S)
            if done.exit_code != 0:
                raise CannotMeasureError(one_line(done.stderr.decode(errors="replace").strip().rpartition("\n")[2]))
            return seen(memory, tasks, json.loads(done.stdout))
        except (OSError, StillThere, RuntimeUnavailable) as e:
            raise CannotMeasureError(str(e)) from e
        except ExecTimeout as e:
            raise CannotMeasureError(f"{' or '.join(self._looked_at)}: no answer within {WITHIN_S:g} s") from e
        except ValueError as e:
            raise CannotMeasureError(f"{' or '.join(self._looked_at)}: {e}") from e

    def _look_at(self, *folders: str) -> None:
        """They change where the runtime is configured anew. A process that hangs in old ones is left behind."""
        if folders != self._looked_at:
            self._looked_at = folders
            self._command = SingleCommand(python_command(SCRIPT, *folders))


def seen(memory: Observation, tasks: Observation, systems: Sequence[Sequence[int]]) -> Seen:
    """`systems`: of volumes, and with a container runtime of images and containers: device, bytes and files of each."""
    found = {MEMORY: memory, PIDS: tasks}
    signals = (NODE_SIGNALS, IMAGE_SIGNALS, CONTAINER_SIGNALS)[: len(systems)]
    for (of_bytes, of_files), (_, size, free, files, free_files) in zip(signals, systems, strict=True):
        found |= {of_bytes: Observation(size, free), of_files: Observation(files, free_files)}
    devices = [system[0] for system in systems]
    return Seen(found, images_apart=len(set(devices)) > 1, containers_apart=len(set(devices[1:])) > 1)


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
        measure: Callable[[], Seen],
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
        ignored = {t.signal for t in self.thresholds} & set(CONTAINER_SIGNALS)
        if before.thresholds is None and ignored:
            log.warning("thresholds ignored, those of nodefs or imagefs count", extra={"signals": sorted(ignored)})
        after = looked(before, self.thresholds, observed, self._transition_s, self._monotonic())
        self._pressure = after
        for kind in sorted(before.conditions ^ after.conditions):
            log.info("node pressure changed", extra={"condition": kind, "under": kind in after.conditions})
        return LOOK_S
