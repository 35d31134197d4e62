"""Pure: the entries that the history is made of; the feed sends them, too. Times are monotonic seconds.

A History is the result of its entries, so a replica that applies them has the same. Entries are small and immutable.
"""

import msgspec

CAUSES_MAX = 255  # one byte each
NAME_BYTES = 5  # a known node is a number of four bytes, and a code
# Characters of namespace, name and uid that a pod has for free: the bound of pods covers them. Longer ones are held
# twice, because the key has most of them, too.
TEXTS_FREE = 128
TEXTS_TIMES = 2
TEXT_BYTES = 57  # of a text with its reference, without its characters


class Reset(msgspec.Struct, frozen=True, tag="reset", array_like=True):
    """Drops everything; the first entry. since: the beginning of the history."""

    since: float


class Named(msgspec.Struct, frozen=True, tag="named", array_like=True):
    """Names that get the next numbers, from `first` on."""

    first: int
    names: list[str]


class Cause(msgspec.Struct, frozen=True, gc=False, tag="cause", array_like=True):
    """The meaning of a code. gate: "" for a name that no snapshot has. shadow: the gate would have refused."""

    code: int
    gate: str
    reason: str
    shadow: bool


class PodRecord(msgspec.Struct, frozen=True, gc=False, tag="pod", array_like=True):
    """The record of one pod; replaces its previous one.

    first, last: when kube-scheduler called, whatever was answered. answered, unanswered: attempts; unanswered_why: of
    the last such one. refused_times: answered attempts with at least one refused node.

    The rest is of the last answered attempt, at `at`; None if there was none. nodes: numbers as array("I"): refused
    nodes, then those that a gate in shadow would have refused; refused: how many the former are. codes: the cause of
    each. unknown: names of refused nodes that no snapshot has, the first few; unknown_count: all of those.
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
        """The size for all bounds: in names of known nodes, of NAME_BYTES each. Texts that only a malicious client
        makes so long, or so many, count by their bytes."""
        held = len(self.codes)
        if self.unknown:
            held += sum(len(name) + TEXT_BYTES for name in self.unknown) // NAME_BYTES
        texts = len(self.namespace) + len(self.name) + len(self.uid)
        if texts > TEXTS_FREE:
            held += (texts - TEXTS_FREE) * TEXTS_TIMES // NAME_BYTES
        return held


class Forgotten(msgspec.Struct, frozen=True, tag="forgotten", array_like=True):
    """Pods whose records are dropped, by key."""

    keys: list[str]


class Event(msgspec.Struct, frozen=True, gc=False, tag="event", array_like=True):
    """An event. serial: 1 for the first since `since`. kind, and the rest: as in schema.Change."""

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
    """What one gate has refused, or in shadow would have, since `since`; replaces its previous one.

    names, calls, pods, and hits: as in schema.Impact. recent: calls by the ten-second interval of the monotonic clock.
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
    """Since the start: attempts that could not be recorded, and decisions that are missing in the events."""

    attempts: int
    decisions: int = 0


Entry = Reset | Named | Cause | PodRecord | Forgotten | Event | Tally | Dropped
