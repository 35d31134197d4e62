"""What the sync loop knows of one pod."""

from dataclasses import dataclass, field
from enum import Enum

from agent.kubelet.pods.ending import PodEnds
from agent.kubelet.pods.resizing import Allocation
from agent.kubelet.pods.starts import PodStarts
from agent.kubelet.status.conditions import is_terminal
from agent.kubelet.status.resize import NO_RESIZES, Resizes, of_generation
from agent.wire.model import Pod


def is_to_end(pod: Pod) -> bool:
    """It is being deleted, or somebody says that it is over."""
    return pod.deletion_timestamp is not None or is_terminal(pod.status.phase)


class Stage(Enum):
    """Each hands over to the next, never back."""

    SYNCING = "syncing"
    TERMINATING = "terminating"
    TERMINATED = "terminated"


@dataclass(slots=True)
class PodState:
    """`pod`: the newest copy, kept after the API server lost it (`gone`). `takes_room`: not if it was over before we
    came. `refused`: it was never to run here. `ending`: it was seen that it is to end, whatever is said of it later.
    `removed`: it was gone at some time, so one of its uid that is there again is a new pod. `announced`: its status
    shows that it ends, and its containers are being ended; not after an attempt that failed."""

    pod: Pod
    takes_room: bool = True
    refused: bool = False
    ending: bool = False
    allocation: Allocation | None = None  # until it was seen
    stage: Stage = Stage.SYNCING
    gone: bool = False
    removed: bool = False
    announced: bool = False
    could_run: bool = True
    starts: PodStarts = field(default_factory=PodStarts)
    ends: PodEnds = field(default_factory=PodEnds)

    def is_static(self, namespace: str, name: str) -> bool:
        return self.pod.static and (self.pod.namespace, self.pod.name) == (namespace, name)

    def end(self, *, is_over: bool) -> None:
        """It is to end, and was not begun: `is_over`, if nothing of it runs any more (UpdatePod, the first time)."""
        self.refused, self.ending, self.takes_room, self.could_run = False, True, not is_over, not is_over
        self.stage = Stage.TERMINATING if is_over else Stage.SYNCING
        self.announced = is_over

    @property
    def facts(self) -> dict[str, str]:
        """For a log line."""
        return {"pod": f"{self.pod.namespace}/{self.pod.name}", "uid": self.pod.uid}

    @property
    def resizes(self) -> Resizes:
        return NO_RESIZES if self.allocation is None else of_generation(self.allocation.resizes, self.pod.generation)
