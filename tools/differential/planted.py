"""Puts an error into a copy of the agent, and looks in how many histories the comparison finds it."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from threading import Event, Lock
from typing import Self

import msgspec

from tools.differential.compare import AGAIN, BATCH, BY_REAL_TIME, drawn_batch
from tools.differential.judge import NONE, Batch, batch_line
from tools.differential.kubelet import Kubelet
from tools.differential.planted_error import Planted
from tools.differential.target import History, Target

ROOT = Path(__file__).resolve().parents[2]
MOST = 100_000
"""Most errors show in the first hundred histories. One that shows in one of 3,000 would be missed by each 800th run of
20,000, and there are many errors: what is not found there is looked for five times as long. Fewer of a target whose
histories are slow."""

over = Event()
"""Set where the search is to end at once."""


class Answered:
    """Batches of a target with the kubelet's answers: what all errors of the target are looked for in, so asked once.

    A context, used by several threads.
    """

    def __init__(self, executable: Path, target: Target, seed: int) -> None:
        self._target, self._seed = target, seed
        self._kubelet = Kubelet(executable)
        self._lines: list[bytes] = []
        self._lock = Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        self._kubelet.close()

    def batch(self, number: int) -> bytes:
        """A line for the judge."""
        with self._lock:
            while len(self._lines) <= number:
                gates, drawn = drawn_batch(self._target, len(self._lines), BATCH, self._seed)
                self._lines.append(self._line(gates, drawn))
            return self._lines[number]

    def again(self, batch: Batch, at: int) -> bytes:
        """A line of one history of a batch, to which the kubelet is asked anew."""
        with self._lock:
            return self._line(batch.gates, batch.histories[at : at + 1])

    def _line(self, gates: dict[str, bool], histories: list[History]) -> bytes:
        self._kubelet.ask(self._target.name, gates, histories)
        return batch_line(gates, histories, self._kubelet.answers())


def found(error: Planted, answered: Answered) -> int | None:
    """In how many histories a comparison with the planted error comes upon a difference, None where it does not.

    Raises ValueError where it cannot be planted.
    """
    if over.is_set():
        return None
    with tempfile.TemporaryDirectory(prefix="readygate-planted-") as folder:
        plant(error, Path(folder))
        judge = subprocess.Popen(
            [sys.executable, "-m", "tools.differential.judge", error.target],
            cwd=folder,  # where `agent` is found first
            env={"PYTHONPATH": f"{folder}:{ROOT}", "PATH": "/usr/bin:/bin"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        try:
            for number in range(MOST // BATCH):
                if over.is_set():
                    break
                if (at := _found_in(error, judge, answered, number)) != NONE:
                    return number * BATCH + at + 1
            return None
        finally:
            judge.kill()
            judge.communicate()


def _found_in(error: Planted, judge: "subprocess.Popen[bytes]", answered: Answered, number: int) -> int:
    """Which history of a batch is the first that differs, or NONE. Where probes meet a network, one that does so each
    time: what a busy machine makes late is no planted error."""
    line, first = answered.batch(number), 0
    while (at := _differs(error, judge, line)) != NONE:
        if error.target not in BY_REAL_TIME:
            return at
        batch = msgspec.json.decode(line, type=Batch)
        if all(_differs(error, judge, answered.again(batch, at)) != NONE for _ in range(AGAIN)):
            return first + at
        first += at + 1
        line = batch_line(batch.gates, batch.histories[at + 1 :], batch.kubelet[at + 1 :])
    return NONE


def _differs(error: Planted, judge: "subprocess.Popen[bytes]", batch: bytes) -> int:
    """Which history of the batch is the first that differs, or NONE."""
    assert judge.stdin is not None
    assert judge.stdout is not None
    try:
        judge.stdin.write(batch)
        judge.stdin.flush()
        return int(judge.stdout.readline())
    except (BrokenPipeError, ValueError) as e:
        raise ValueError(f"{error}: the agent with it does not start, or ends (code {judge.wait()})") from e


def plant(error: Planted, folder: Path) -> None:
    """Copies the agent to the folder, with the error in it."""
    shutil.copytree(ROOT / "agent", folder / "agent", ignore=shutil.ignore_patterns("__pycache__"))
    file = folder / "agent" / error.file
    text = file.read_text()
    if text.count(error.was) != 1:
        raise ValueError(f"{error}: is there {text.count(error.was)} times")
    file.write_text(text.replace(error.was, error.becomes))
