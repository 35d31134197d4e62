"""Pure: what is remembered, in the steps it is made of; the same over the feed. Times are monotonic seconds.

A Memory is what its entries make of it, so one who is told them has the same. They are small, and immutable.
"""

import msgspec

CAUSES_MAX = 255  # one byte each
NAME_BYTES = 5  # a node that is known is a number of four bytes, and a code
# Characters of namespace, name and uid that a pod has for nothing: those of an ordinary one are bounded by the number
# of pods. The others are held twice, as the key has most of them too.
TEXTS_FREE = 128
TEXTS_TIMES = 2
TEXT_BYTES = 57  # of a text, and of its place, besides its characters


class Reset(msgspec.Struct, frozen=True, tag="anew", array_like=True):
    """Forget all; the first entry. since: from when on all is remembered that follows."""

    since: float


class Named(msgspec.Struct, frozen=True, tag="named", array_like=True):
    """The names that get the next numbers, from first on."""

    first: int
    names: list[str]


class Cause(msgspec.Struct, frozen=True, gc=False, tag="cause", array_like=True):
    """What code stands for. gate: "" for a name that no snapshot held. shadow: the gate would have refused."""

    code: int
    gate: str
    reason: str
    shadow: bool


class PodRecord(msgspec.Struct, frozen=True, gc=False, tag="pod", array_like=True):
    """What is remembered of one pod; takes the place of what was.

    first, last: when kube-scheduler asked, whatever was answered. answered, unanswered: attempts; unanswered_why: of
    the last such one. refused_times: answered attempts with at least one node refused.

    The rest is of the last answered attempt, at `at`; None if there was none. nodes: numbers as array("I"), of those
    refused and then those a gate in shadow would have; refused: how many the former are. codes: the cause of each.
    unknown: names of refused nodes that no snapshot held, the first few; unknown_count: all of those.
    """

    namespace: str
    name: str
    uid: str
    first: float
    last: float
    answered: int = 0
    unanswered: int = 0
    unanswered_why: str = ""
    refused_times: int = 0
    at: float | None = None
    asked: int = 0
    passed: int = 0
    complete: bool = True
    exempt: str = ""
    nominated: bool = False
    refused: int = 0
    nodes: bytes = b""
    codes: bytes = b""
    unknown: tuple[str, ...] = ()
    unknown_count: int = 0

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def names(self) -> int:
        """What it holds, for the bounds of all: in names of known nodes, of NAME_BYTES each. Texts that only a client
        with ill intent makes so long, or so many, count by their bytes."""
        held = len(self.codes)
        if self.unknown:
            held += sum(len(name) + TEXT_BYTES for name in self.unknown) // NAME_BYTES
        texts = len(self.namespace) + len(self.name) + len(self.uid)
        if texts > TEXTS_FREE:
            held += (texts - TEXTS_FREE) * TEXTS_TIMES // NAME_BYTES
        return held


class Forgotten(msgspec.Struct, frozen=True, tag="forgotten", array_like=True):
    """Pods of which nothing is remembered any more, by key."""

    keys: list[str]


class Event(msgspec.Struct, frozen=True, gc=False, tag="event", array_like=True):
    """serial: 1 for the first since `since`. kind, and the rest: as in report.Change."""

    serial: int
    at: float
    kind: str
    gate: str = ""
    node: str = ""
    reason: str = ""
    evidence: str = ""
    held_by: str = ""
    note: str = ""


class Tally(msgspec.Struct, frozen=True, tag="tally", array_like=True):
    """What one gate has refused, or in shadow would have, since `since`: takes the place of the last one.

    names, calls, pods, and hits: as in report.Impact. recent: calls by the ten-second interval of the monotonic clock.
    """

    gate: str
    armed: bool
    since: float
    names: int = 0
    calls: int = 0
    pods: int = 0
    pods_at_least: bool = False
    most_closed: int = 0
    cap_hits: int = 0
    storm_hits: int = 0
    recent: dict[int, int] = {}


class Dropped(msgspec.Struct, frozen=True, gc=False, tag="dropped", array_like=True):
    """Since the start: attempts that could not be remembered, and decisions that are missing in the events."""

    attempts: int
    decisions: int = 0


Entry = Reset | Named | Cause | PodRecord | Forgotten | Event | Tally | Dropped
