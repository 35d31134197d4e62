"""Pure: what was decided, as all others read it. Values only; whoever makes one is in `decide`.

All of it is immutable. A Decision that has not changed is the same object in the next snapshot.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

import msgspec

from extender.policy.reasons import OPEN

Severity = Literal["gate", "preferNot", "warn"]


class HeldBy(StrEnum):
    """Who made a decision differ from the verdict; the empty one is nobody."""

    NONE = ""
    CAP = "cap"
    STORM = "storm"
    DAMPING = "damping"
    GRACE = "grace"  # the health pod is missing or being replaced
    HOLD = "hold"
    PAUSE = "pause"
    EXEMPT = "exempt"
    NOT_GATED = "not-gated"


class Decision(msgspec.Struct, frozen=True, gc=False):
    """What holds for one node at one gate. reason: OPEN, or one of REASONS. pod, evidence: as in Verdict.

    since_monotonic: when the reason became this one. changes_at: monotonic seconds when it must be decided again
    although nothing happened; None if never. verdict: the reason before anything held it. held_by, note: who held it,
    and in words for people. until: monotonic seconds when that ends by itself; None if it does not. new: closed beside
    the caps, for nothing tells that the node was ever in use.
    """

    reason: str
    pod: str = ""
    evidence: str = ""
    since_monotonic: float = 0.0
    changes_at: float | None = None
    verdict: str = OPEN
    held_by: HeldBy = HeldBy.NONE
    until: float | None = None
    note: str = ""
    new: bool = False

    @property
    def against(self) -> str:
        """The evidence where it speaks against the node. Of one that is well it may be closed by an order all the same,
        and what is said beside is no cause."""
        return self.evidence if self.verdict != OPEN else ""


class CapState(msgspec.Struct, frozen=True, gc=False):
    """limit: how many nodes the gate may close, None = as many as it likes. closed: of those that count. held: open
    though their verdict closes them, by this cap or one of the cluster, a zone or a pool."""

    limit: int | None = None
    closed: int = 0
    held: int = 0


@dataclass(frozen=True, slots=True)
class Storm:
    """Many nodes closed at once for one cause, so held open: whoever looks at them may be what is broken.

    reason: one of REASONS. cause: the word of the condition that turned, "" if there is none. nodes: held open, now.
    suspect: what most of them say, for people. began_monotonic: when the first of them turned. until: monotonic
    seconds when it ends if it stays calm, None while it is not.
    """

    reason: str
    cause: str
    nodes: int
    suspect: str = ""
    began_monotonic: float = 0.0
    until: float | None = None


class GateState(msgspec.Struct, frozen=True):
    """What holds at one gate. armed: after orders; one that is not refuses nothing, and is decided as if it did.

    closed: the nodes whose decision has a reason, with it.
    """

    name: str
    decisions: Mapping[str, Decision] = msgspec.field(default_factory=dict)
    closed: Mapping[str, str] = msgspec.field(default_factory=dict)
    armed: bool = True
    severity: Severity = "gate"
    cap: CapState = CapState()
    storms: tuple[Storm, ...] = ()

    @property
    def refuses(self) -> bool:
        return self.armed and self.severity == "gate"
