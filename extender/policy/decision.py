"""Pure: the decisions as all other rooms read them. Values only; `decide` makes them.

Everything is immutable. An unchanged Decision is the same object in the next snapshot.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

import msgspec

from extender.policy.reasons import OPEN

Severity = Literal["gate", "preferNot", "warn"]


class HeldBy(StrEnum):
    """What made a decision differ from the verdict; empty if nothing did."""

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
    """The decision on one node at one gate.

    reason: OPEN, or one of REASONS. pod, evidence: as in Verdict. since_monotonic: when the reason became this one.
    changes_at: monotonic seconds when time alone makes a new decision necessary; None if never. verdict: the reason
    before an order, storm, cap or grace changed it. held_by, note: what changed it, also in words. until: monotonic
    seconds when that ends by itself; None if it does not. new: closed beside the caps, because nothing shows that the
    node was ever in use.
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
        """Returns the evidence if it speaks against the node. An order may close a healthy node; its evidence is then
        no cause."""
        return self.evidence if self.verdict != OPEN else ""


class CapState(msgspec.Struct, frozen=True, gc=False):
    """The cap of a gate. limit: how many nodes the gate may close, None = any number. closed: those of them that count.
    held: nodes that stay open against their verdict, by this cap or one of the cluster, a zone or a pool."""

    limit: int | None = None
    closed: int = 0
    held: int = 0


@dataclass(frozen=True, slots=True)
class Storm:
    """Many nodes that turned bad at once for one cause, and are held open: the checks themselves may be broken.

    reason: one of REASONS. cause: the word of the condition that turned, "" if there is none. nodes: held open now.
    suspect: the most frequent evidence, for humans. began_monotonic: when the first of them turned. until: monotonic
    seconds when it ends if nothing new happens, None while it continues.
    """

    reason: str
    cause: str
    nodes: int
    suspect: str = ""
    began_monotonic: float = 0.0
    until: float | None = None


class GateState(msgspec.Struct, frozen=True):
    """The state of one gate.

    armed: after orders. A gate that is not armed refuses nothing, and is decided as if it did. closed: the nodes whose
    decision has a reason, with it.
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
