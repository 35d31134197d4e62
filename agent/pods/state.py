"""What the sync loop knows of one pod."""

from dataclasses import dataclass, field
from enum import Enum

from agent.model import Pod
from agent.pods.ending import PodEnds
from agent.pods.starts import PodStarts


class Stage(Enum):
    """Each hands over to the next, never back."""

    SYNCING = "syncing"
    TERMINATING = "terminating"
    TERMINATED = "terminated"


@dataclass(slots=True)
class PodState:
    """`pod`: the newest copy, kept after the API server lost it (`gone`)."""

    pod: Pod
    stage: Stage = Stage.SYNCING
    gone: bool = False
    could_run: bool = True
    starts: PodStarts = field(default_factory=PodStarts)
    ends: PodEnds = field(default_factory=PodEnds)
