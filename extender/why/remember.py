"""Pure: one attempt to what is remembered of it: which gate keeps the pod off which node.

kube-scheduler asks an extender only about nodes that have passed its own filters (schedule_one.go,
findNodesThatFitPod), so those refused are the ones that readygate alone keeps the pod off. It asks once an attempt, of
all these nodes; but where there are 100 or more it stops looking when it has found enough (numFeasibleNodesToFind), and
of a nominated node it asks alone before it asks of all (evaluateNominatedNode). When no node passes its own filters it
does not ask at all.
"""

import re
from array import array
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice
from operator import is_
from typing import NamedTuple

from msgspec.structs import replace

from extender.policy.decision import GateState
from extender.policy.snapshot import Snapshot
from extender.why.attempts import NAME_LIMIT, Attempt
from extender.why.entries import CAUSES_MAX, Cause, Entry, Named, PodRecord
from extender.why.memory import Memory

SAMPLED_FROM = 100  # kube-scheduler's minFeasibleNodesToFind
UNKNOWN_SHOWN = 8
MASKS_MAX = 32
DNS_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?\Z")
UID = re.compile(r"[-0-9A-Za-z._]*\Z")


class Blame(NamedTuple):
    """Who refuses, by one snapshot and for the gates of one mask. closed: what it was made of, to see whether it still
    holds. codes: of the nodes that are refused. shadow: for each gate in shadow, of the nodes that it would refuse."""

    closed: tuple[Mapping[str, str], ...]
    codes: Mapping[str, int]
    shadow: Sequence[Mapping[str, int]]


class Kept(NamedTuple):
    """The nodes that were kept from one pod, as in PodRecord."""

    refused: int = 0
    nodes: bytes = b""
    codes: bytes = b""
    unknown: tuple[str, ...] = ()
    unknown_count: int = 0


class Rememberer:
    """write: applies an entry to the memory."""

    def __init__(self, memory: Memory, write: Callable[[Entry], None]) -> None:
        self._memory = memory
        self._write = write
        self._codes: dict[tuple[str, str, bool], int] = {}
        self._blames: dict[int, Blame] = {}

    def remember(self, attempt: Attempt) -> PodRecord | None:
        """What is remembered of the pod from now on. None, and nothing is, for one that no API server would have."""
        if not (DNS_NAME.match(attempt.namespace) and DNS_NAME.match(attempt.name) and UID.match(attempt.uid)):
            return None
        before = self._memory.pods.get(f"{attempt.namespace}/{attempt.name}")
        if before is None or before.uid != attempt.uid:
            before = PodRecord(attempt.namespace, attempt.name, attempt.uid, attempt.monotonic, attempt.monotonic)
        record = unanswered(attempt, before) if attempt.unanswered else self._answered(attempt, before)
        self._write(record)
        return record

    def _answered(self, attempt: Attempt, before: PodRecord) -> PodRecord:
        kept = self._kept(attempt)
        sampled = SAMPLED_FROM <= attempt.asked < len(attempt.snapshot.nodes if attempt.snapshot else ())
        alone = attempt.nominated and bool(attempt.refused)
        same_attempt = before.nominated  # the one that began with the nominated node alone
        return PodRecord(
            attempt.namespace,
            attempt.name,
            attempt.uid,
            first=before.first,
            last=attempt.monotonic,
            answered=before.answered + (not same_attempt),
            unanswered=before.unanswered,
            unanswered_why=before.unanswered_why,
            refused_times=before.refused_times + (bool(attempt.refused) and not same_attempt),
            at=attempt.monotonic,
            asked=attempt.asked,
            passed=attempt.survivors,
            complete=not (sampled or alone) and kept.unknown_count == len(kept.unknown),
            exempt=attempt.exempt,
            nominated=alone,
            refused=kept.refused,
            nodes=kept.nodes,
            codes=kept.codes,
            unknown=kept.unknown,
            unknown_count=kept.unknown_count,
        )

    def _kept(self, attempt: Attempt) -> Kept:
        snapshot, refused = attempt.snapshot, attempt.refused
        if snapshot is None or not (refused or attempt.names):
            return Kept(unknown=_shown(refused), unknown_count=len(refused))
        blame = self._blame(snapshot, attempt.mask)
        known: Collection[str] = refused
        unknown: Sequence[str] = ()
        try:
            codes = bytes(map(blame.codes.__getitem__, refused))
        except KeyError:  # a name that no snapshot holds
            unknown = [name for name in refused if name not in blame.codes]
            known = [name for name in refused if name in blame.codes]
            codes = bytes(map(blame.codes.__getitem__, known))
        nodes = self._numbers(known)
        for of_gate in blame.shadow if attempt.names else ():
            would = of_gate.keys() & attempt.names
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
        states = [
            state for i, state in enumerate(snapshot.gates.values()) if mask >> i & 1 and state.severity == "gate"
        ]
        closed = tuple(state.closed for state in states)
        blame = self._blames.get(mask)
        if blame is None or len(blame.closed) != len(closed) or not all(map(is_, blame.closed, closed)):
            if len(self._blames) >= MASKS_MAX:
                self._blames.clear()
            codes: dict[str, int] = {}
            for state in reversed(states):  # of several gates the first one's reason is what was told
                if state.armed:
                    codes.update(self._codes_of(state))
            blame = Blame(closed, codes, [self._codes_of(state) for state in states if not state.armed])
            self._blames[mask] = blame
        return blame

    def _codes_of(self, state: GateState) -> dict[str, int]:
        code_of = {reason: self._code(state.name, reason, not state.armed) for reason in set(state.closed.values())}
        return {name: code_of[reason] for name, reason in state.closed.items()}

    def _code(self, gate: str, reason: str, shadow: bool) -> int:
        code = self._codes.get((gate, reason, shadow))
        if code is None:
            code = min(len(self._memory.causes), CAUSES_MAX - 1)
            last = code == CAUSES_MAX - 1  # there are too many to be told apart: gates have come and gone
            self._write(Cause(code, "" if last else gate, reason, shadow))
            self._codes[gate, reason, shadow] = code
        return code


def unanswered(attempt: Attempt, before: PodRecord) -> PodRecord:
    """The last answer stays what it was."""
    return replace(before, last=attempt.monotonic, unanswered=before.unanswered + 1, unanswered_why=attempt.unanswered)


def _shown(names: Iterable[str]) -> tuple[str, ...]:
    fit = (name for name in names if len(name) <= NAME_LIMIT and DNS_NAME.match(name))
    return tuple(islice(fit, UNKNOWN_SHOWN))
