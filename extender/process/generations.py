"""Which worker answers, which one starts, and which one leaves. Pure.

The current worker answers until the new one has synced; there are never more than two. Requests for a reload during a
change are done after it, once.
"""

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple

from component.backoff import Backoff

# A list of 15,000 nodes and as many pods takes a few seconds; a worker that has read nothing by then never will.
SYNC_LIMIT_S = 60.0
# A retiring worker ends itself long before; this limit is for a hung one.
LEAVE_LIMIT_S = 20.0
# After the second of several workers that died before they had synced: each has requested everything from the API
# server.
AGAIN = Backoff(first_s=1.0, limit_s=5.0)


class Step(Enum):
    """What the master must do. The first four are about one worker.

    KEEP: the reload has failed, the previous configuration is in force again. RELOAD: begin one.
    """

    ACCEPT = auto()
    RETIRE = auto()
    END = auto()
    KILL = auto()
    SPAWN = auto()
    KEEP = auto()
    RELOAD = auto()


class Do(NamedTuple):
    """A step for one worker. why: for the log."""

    step: Step
    pid: int = 0
    why: str = ""


@dataclass
class Generations:
    """The workers of one master. Process ids, 0 for none; times are of the monotonic clock."""

    current: int = 0
    incoming: int = 0
    leaving: int = 0
    again: bool = False
    _due: float = 0.0  # deadline of the incoming worker to sync
    _gone_by: float = 0.0  # deadline of the leaving worker
    _has_synced: bool = False  # of the current worker
    _in_vain: Backoff | None = None  # the pause after another worker that died before it had synced
    _spawn_at: float = 0.0

    def may_reload(self) -> bool:
        """Returns whether a reload may begin; if not now, turn() returns RELOAD later."""
        self.again = bool(self.incoming or self.leaving or not self.current)
        return not self.again

    def spawned(self, pid: int, monotonic: float) -> None:
        if self.current:
            self.incoming, self._due = pid, monotonic + SYNC_LIMIT_S
        else:
            self.current, self._has_synced = pid, False

    def turn(self, alive: Collection[int], synced: Collection[int], monotonic: float) -> list[Do]:
        """Returns the steps that follow from which workers live and which have synced. Called after each change of
        these, and each second."""
        steps: list[Do] = []
        self._has_synced |= self.current in synced
        if self.leaving not in alive:
            self.leaving = 0
        elif monotonic >= self._gone_by:
            steps.append(Do(Step.KILL, self.leaving))
        if self.incoming and self.incoming not in alive:
            self.incoming = 0
            steps.append(Do(Step.KEEP, why="the new worker ended before it had synced"))
        if self.current not in alive:
            steps += self._followed(monotonic)
        if self.incoming:
            steps += self._changed(synced, monotonic)
        if self.again and self.current in alive and self.may_reload():
            steps.append(Do(Step.RELOAD))
        return steps

    def _followed(self, monotonic: float) -> list[Do]:
        """Replaces the current worker, which is gone."""
        if not self.current:
            pass  # its restart is due later
        elif self._has_synced:
            self._in_vain = None
        elif self._in_vain is None:
            self._in_vain = AGAIN
        else:
            pause_s, self._in_vain = self._in_vain.next(lambda: 0.0)
            self._spawn_at = monotonic + pause_s
        self.current, self.incoming, self._has_synced = self.incoming, 0, False
        if self.current:
            return [Do(Step.ACCEPT, self.current)]
        return [Do(Step.SPAWN)] if monotonic >= self._spawn_at else []

    def _changed(self, synced: Collection[int], monotonic: float) -> list[Do]:
        late = monotonic >= self._due
        if self.incoming in synced or (late and self.current not in synced):
            # An old worker without a snapshot has no verdicts to lose.
            steps = [Do(Step.ACCEPT, self.incoming), Do(Step.RETIRE, self.current)]
            self.current, self.leaving = self.incoming, self.current
        elif late:
            why = f"the new worker has not synced within {SYNC_LIMIT_S:.0f} s"
            steps = [Do(Step.END, self.incoming), Do(Step.KEEP, why=why)]
            self.leaving = self.incoming
        else:
            return []
        self.incoming, self._gone_by = 0, monotonic + LEAVE_LIMIT_S
        return steps
