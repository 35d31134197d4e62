"""Which worker answers, which is on its way in, which on its way out. Pure.

The old one answers until the new one has synced; there are never more than two. What is asked of us while a change is
under way is done after it, once.
"""

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple

from component.backoff import Backoff

# A list of 15,000 nodes and as many pods takes a few seconds; a new worker that has read nothing by then never will.
SYNC_LIMIT_S = 60.0
# A retiring worker ends by itself long before; this is for one that hangs.
LEAVE_LIMIT_S = 20.0
# After the second of several that died before they had synced: each of them has asked the API server for everything.
AGAIN = Backoff(first_s=1.0, limit_s=5.0)


class Step(Enum):
    """What the master has to do. The first four are about one worker.

    KEEP: the reload has come to nothing, the configuration of before is in force again. RELOAD: begin one.
    """

    ACCEPT = auto()
    RETIRE = auto()
    END = auto()
    KILL = auto()
    SPAWN = auto()
    KEEP = auto()
    RELOAD = auto()


class Do(NamedTuple):
    """why: for the log."""

    step: Step
    pid: int = 0
    why: str = ""


@dataclass
class Generations:
    """Process ids, 0 for none; times are of the monotonic clock."""

    current: int = 0
    incoming: int = 0
    leaving: int = 0
    again: bool = False
    _due: float = 0.0  # of the incoming worker: to have synced
    _gone_by: float = 0.0  # of the leaving one
    _has_synced: bool = False  # the current one
    _in_vain: Backoff | None = None  # how long to wait after another one that died before it had
    _spawn_at: float = 0.0

    def may_reload(self) -> bool:
        """Whether a reload may begin; if not now, turn() says when."""
        self.again = bool(self.incoming or self.leaving or not self.current)
        return not self.again

    def spawned(self, pid: int, monotonic: float) -> None:
        if self.current:
            self.incoming, self._due = pid, monotonic + SYNC_LIMIT_S
        else:
            self.current, self._has_synced = pid, False

    def turn(self, alive: Collection[int], synced: Collection[int], monotonic: float) -> list[Do]:
        """What follows from who lives and who has synced. To be called after each change of these, and each second."""
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
        """Who takes the place of the current one, which has gone."""
        if not self.current:
            pass  # it has been waited for
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
            # An old worker without a snapshot of its own has no verdicts to lose.
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
