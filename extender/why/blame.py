"""Pure: one attempt to entries: which gate keeps the pod from which node.

kube-scheduler calls an extender only for nodes that have passed its own filters (schedule_one.go, findNodesThatFitPod),
so readygate alone keeps the pod from the refused ones. It makes one call an attempt for all these nodes, with two
exceptions. In a cluster of 100 or more nodes it stops filtering when it has found enough (numFeasibleNodesToFind). For
a nominated node it makes a call for this node alone, and then for all (evaluateNominatedNode). If no node passes its
own filters it makes no call.
"""

import re
from array import array
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice
from operator import is_

import msgspec
from msgspec.structs import replace

from extender.policy.decision import GateState
from extender.policy.snapshot import Snapshot
from extender.why.attempts import Attempt
from extender.why.entries import CAUSES_MAX, Cause, Entry, Named, PodRecord
from extender.why.history import History

SAMPLED_FROM = 100  # kube-scheduler's minFeasibleNodesToFind
UNKNOWN_SHOWN = 8
NAME_LIMIT = 253  # characters
MASKS_MAX = 32
LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z")
DNS_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?\Z")
UID = re.compile(r"[-0-9A-Za-z._]*\Z")


class Kept(msgspec.Struct, frozen=True, gc=False):
    """The nodes that were refused to a pod, as in PodRecord. Pods with equal refusals share it."""

    refused: int = 0
    nodes: bytes = b""
    codes: bytes = b""
    unknown: tuple[str, ...] = ()
    unknown_count: int = 0


class Blame:
    """Which gate refuses which node, for the gates of one mask. codes: by refused node. shadow: for each gate in
    shadow, by node that it would refuse. closed: the input of both. snapshot: the newest for which it holds.

    whole: the result for a pod that was asked about every closed node, which is usual in a cluster of fewer than a
    hundred nodes; made when it is first needed.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        closed: Sequence[Mapping[str, str]],
        codes: Mapping[str, int],
        shadow: Sequence[Mapping[str, int]],
    ) -> None:
        self.snapshot = snapshot
        self.closed = closed
        self.codes = codes
        self.shadow = shadow
        self.whole: Kept | None = None


class AttemptRecorder:
    """Turns attempts into entries. write: applies an entry to the history. Called a few hundred times a second, in a
    thread next to the serving one."""

    def __init__(self, memory: History, write: Callable[[Entry], None]) -> None:
        self._memory = memory
        self._write = write
        self._codes: dict[tuple[str, str, bool], int] = {}
        self._blames: dict[int, Blame] = {}

    def forget_numbers(self) -> None:
        """Drops cached numbers: the history has new ones."""
        self._blames.clear()

    def remember(self, attempt: Attempt) -> PodRecord | None:
        """Records an attempt. Returns the pod's new record; None, and nothing is recorded, for a pod that no API server
        would accept."""
        before, first = self._memory.pods.get(f"{attempt.namespace}/{attempt.name}"), attempt.monotonic
        if before is not None and before.uid == attempt.uid:
            first = before.first
        elif LABEL.match(attempt.namespace) and DNS_NAME.match(attempt.name) and UID.match(attempt.uid):
            before = NOT_ASKED
        else:
            return None
        record = unanswered(attempt, before, first) if attempt.unanswered else self._answered(attempt, before, first)
        self._write(record)
        return record

    def _answered(self, attempt: Attempt, before: PodRecord, first: float) -> PodRecord:
        refused, snapshot, asked = attempt.refused, attempt.snapshot, attempt.asked
        kept = self._kept(attempt) if refused or attempt.names else NOTHING_KEPT
        sampled = asked >= SAMPLED_FROM and snapshot is not None and asked < len(snapshot.nodes)
        alone = attempt.nominated and bool(refused)
        another = not before.nominated  # else it continues the attempt that began with the nominated node alone
        return PodRecord(
            attempt.namespace,
            attempt.name,
            attempt.uid,
            first,
            attempt.monotonic,
            before.answered + another,
            before.unanswered,
            before.unanswered_why,
            before.refused_times + (another and bool(refused)),
            attempt.monotonic,
            asked,
            attempt.survivors,
            not (sampled or alone) and kept.unknown_count == len(kept.unknown),
            attempt.exempt,
            alone,
            kept.refused,
            kept.nodes,
            kept.codes,
            kept.unknown,
            kept.unknown_count,
        )

    def _kept(self, attempt: Attempt) -> Kept:
        snapshot, refused = attempt.snapshot, attempt.refused
        if snapshot is None:
            return Kept(unknown=_shown(refused), unknown_count=len(refused))
        blame = self._blame(snapshot, attempt.mask)
        if len(refused) == len(blame.codes) and not attempt.unknown and not attempt.names:
            if blame.whole is None:
                blame.whole = self._kept_of(blame, refused, ())
            return blame.whole
        return self._kept_of(blame, refused, attempt.names)

    def _kept_of(self, blame: Blame, refused: Collection[str], names: Sequence[str]) -> Kept:
        known = list(refused)
        unknown: Sequence[str] = ()
        try:
            codes = bytes(map(blame.codes.__getitem__, known))
        except KeyError:  # a name that no snapshot has
            unknown = [name for name in refused if name not in blame.codes]
            known = [name for name in refused if name in blame.codes]
            codes = bytes(map(blame.codes.__getitem__, known))
        nodes = self._numbers(known)
        for of_gate in blame.shadow if names else ():
            would = of_gate.keys() & names
            codes += bytes(map(of_gate.__getitem__, would))
            nodes += self._numbers(would)
        return Kept(len(known), nodes, codes, _shown(unknown), len(unknown))

    def _numbers(self, names: Collection[str]) -> bytes:
        by_name = self._memory.numbers.by_name
        try:
            return array("I", map(by_name.__getitem__, names)).tobytes()
        except KeyError:
            new = [name for name in names if name not in by_name]
            self._write(Named(len(by_name), new))
            return self._numbers(names)

    def _blame(self, snapshot: Snapshot, mask: int) -> Blame:
        blame = self._blames.get(mask)
        if blame is not None and blame.snapshot is snapshot:
            return blame
        states = [
            state for i, state in enumerate(snapshot.gates.values()) if mask >> i & 1 and state.severity == "gate"
        ]
        closed = [state.closed for state in states]
        if blame is not None and len(blame.closed) == len(closed) and all(map(is_, blame.closed, closed)):
            blame.snapshot = snapshot
            return blame
        if len(self._blames) >= MASKS_MAX:
            self._blames.clear()
        codes: dict[str, int] = {}
        for state in reversed(states):  # of several gates the first one's reason was answered
            if state.armed:
                codes.update(self._codes_of(state))
        shadow = [self._codes_of(state) for state in states if not state.armed]
        blame = self._blames[mask] = Blame(snapshot, closed, codes, shadow)
        return blame

    def _codes_of(self, state: GateState) -> dict[str, int]:
        code_of = {reason: self._code(state.name, reason, not state.armed) for reason in set(state.closed.values())}
        return {name: code_of[reason] for name, reason in state.closed.items()}

    def _code(self, gate: str, reason: str, shadow: bool) -> int:
        code = self._codes.get((gate, reason, shadow))
        if code is None:
            code = min(len(self._memory.causes), CAUSES_MAX - 1)
            last = code == CAUSES_MAX - 1  # too many to distinguish: gates have come and gone
            self._write(Cause(code, "" if last else gate, reason, shadow))
            self._codes[gate, reason, shadow] = code
        return code


def unanswered(attempt: Attempt, before: PodRecord, first: float) -> PodRecord:
    """Returns the record of an attempt without a verdict; the last answer stays."""
    return replace(
        before,
        namespace=attempt.namespace,
        name=attempt.name,
        uid=attempt.uid,
        first=first,
        last=attempt.monotonic,
        unanswered=before.unanswered + 1,
        unanswered_why=attempt.unanswered,
    )


NOT_ASKED = PodRecord("", "", "", 0.0, 0.0)  # of a pod without an earlier call
NOTHING_KEPT = Kept()


def _shown(names: Iterable[str]) -> tuple[str, ...]:
    fit = (name for name in names if len(name) <= NAME_LIMIT and DNS_NAME.match(name))
    return tuple(islice(fit, UNKNOWN_SHOWN))
