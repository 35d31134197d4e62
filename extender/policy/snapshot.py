"""Pure: all decisions at a moment, looked up by requests.

A Snapshot is immutable; a new one replaces it as a whole. The Board holds the newest, and notes the nodes that requests
are refused, in the order of steps that loses no kick (`refusals`). A request takes no lock.

A request names the gates that apply to its pod by a mask: bit i is the i-th gate in the order of the configuration.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import filterfalse
from typing import NamedTuple, Optional, Self

import msgspec
from msgspec.structs import force_setattr

from extender.policy.decision import GateState
from extender.policy.encoded_names import Sorted, Spelled, respelled, sort_out_spelled, spelled_at, spelled_of
from extender.policy.reasons import CLOSED_NO_HEALTH_POD, OPEN
from extender.policy.refusals import NOTED, Refusals

ALL_GATES = -1
UNKNOWN_NODE = CLOSED_NO_HEALTH_POD  # the reason for a name that is in no snapshot: not seen yet, or no node
INHERITED_KICKS = 2  # kicks after which no pod still waits that another process refused
ANY_FEW = 8  # any open node will do; more than one, because nodes disappear
VIEWS_MAX = 32  # masks whose joined view is kept; with more masks each request joins its own
SCORE_OPEN, SCORE_AVOIDED = 10, 0  # kube-scheduler's MaxExtenderPriority, and the minimum
_NOTHING_CLOSED: Mapping[str, str] = {}

Note = tuple[str, Mapping[str, str], Collection[str]]  # a gate, its refusals, and those of them that are in no snapshot


class Snapshot(msgspec.Struct, frozen=True, eq=False):
    """All decisions at a moment. gates: by name, in the order of the configuration. nodes: all known nodes.

    cap: how many nodes all refusing gates together may close, None = any number. refusing, avoiding: masks of the armed
    gates of severity `gate` and `preferNot`; derived from the gates. spellings: results of spelled(), by mask.
    """

    gates: Mapping[str, GateState] = msgspec.field(default_factory=dict)
    nodes: frozenset[str] = frozenset()
    cap: int | None = None
    refusing: int = 0
    avoiding: int = 0
    _views: dict[int, Mapping[str, str]] = msgspec.field(default_factory=dict)
    _closed: dict[int, frozenset[str]] = msgspec.field(default_factory=dict)
    spellings: dict[int, Spelled] = msgspec.field(default_factory=dict)
    _parts: dict[int, list[Note]] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        refusing = avoiding = 0
        for i, state in enumerate(self.gates.values()):
            if state.armed:
                refusing |= (state.severity == "gate") << i
                avoiding |= (state.severity == "preferNot") << i
        force_setattr(self, "refusing", refusing)
        force_setattr(self, "avoiding", avoiding)

    def after(self, gates: Mapping[str, GateState], nodes: frozenset[str], cap: int | None = None) -> Self:
        """Returns the next snapshot, with the same views prepared that requests have used of this one."""
        snapshot = type(self)(gates, nodes, cap)
        for mask in list(self._views):
            snapshot.view(mask)
        if self.spellings:  # unchanged parts keep their encoded names
            known = respelled(next(iter(self.spellings.values())).nodes, self.nodes, nodes)
            for mask, spelled in list(self.spellings.items()):
                view = snapshot.view(mask)
                same = view is self.view(mask)
                snapshot.spellings[mask] = spelled.among(known) if same else spelled_at(known, view)
        return snapshot

    def closed_at(self, gate: str) -> Mapping[str, str]:
        """Returns the nodes that this gate refuses, with their reasons; none if it is not armed or does not exist."""
        state = self.gates.get(gate)
        return _NOTHING_CLOSED if state is None or not state.refuses else state.closed

    def view(self, mask: int) -> Mapping[str, str]:
        """Returns the nodes closed at any of these gates, each with the reason of the first of them."""
        found = self._views.get(mask)
        if found is None:
            found = _joined([state.closed for state in self._of(mask) if state.closed])
            if len(self._views) < VIEWS_MAX:
                self._views[mask] = found  # stored by whichever request comes; each would store the same
        return found

    def closed(self, mask: int) -> frozenset[str]:
        """Returns the names of view(mask): a set compares with another one by hashes without reading every name."""
        found = self._closed.get(mask)
        if found is None:
            found = frozenset(self.view(mask))
            if len(self._closed) < VIEWS_MAX:
                self._closed[mask] = found
        return found

    def spelled(self, mask: int) -> Spelled:
        """Returns all nodes, and those of view(mask), as JSON texts."""
        found = self.spellings.get(mask)
        if found is None:
            known = next(iter(self.spellings.values())).nodes if self.spellings else spelled_of(self.nodes)
            found = spelled_at(known, self.view(mask))
            if len(self.spellings) < VIEWS_MAX:
                self.spellings[mask] = found
        return found

    def parts(self, mask: int) -> list[Note]:
        """Returns for each of these gates the nodes that it closes and no earlier one: what is noted if all are
        refused."""
        found = self._parts.get(mask)
        if found is None:
            found, before = [], set[str]()
            for state in self._of(mask):
                closed = state.closed
                if before and not before.isdisjoint(closed):
                    closed = {name: reason for name, reason in closed.items() if name not in before}
                found.append((state.name, closed, ()))
                before.update(closed)
            if len(self._parts) < VIEWS_MAX:
                self._parts[mask] = found
        return found

    @property
    def reasons(self) -> dict[str, str]:
        """Returns the reason for each node in a request of all gates, OPEN if there is none. For humans: walks all
        nodes."""
        return {**dict.fromkeys(self.nodes, OPEN), **self.view(self.refusing)}

    def _of(self, mask: int) -> Iterator[GateState]:
        return (state for i, state in enumerate(self.gates.values()) if mask >> i & 1)


def _joined(closed: Sequence[Mapping[str, str]]) -> Mapping[str, str]:
    """Joins closed nodes; the first gate's reason counts."""
    if len(closed) <= 1:
        return closed[0] if closed else _NOTHING_CLOSED
    joined: dict[str, str] = {}
    for one in reversed(closed):
        joined.update(one)
    return joined


class Answer(NamedTuple):
    """An answer. survivors: in the order asked, each once. refused: the other names, each with its reason. unknown:
    those of them that are in no snapshot. snapshot: the one that was used."""

    survivors: list[str]
    refused: dict[str, str]
    unknown: Collection[str] = ()
    snapshot: Optional["Snapshot"] = None


class Noted(NamedTuple):
    """Notes of encoded names. names: nodes that this snapshot refused to requests of these gates, and that are noted.
    turned: how many pages were turned before."""

    turned: int
    snapshot: Snapshot
    mask: int
    names: set[bytes]


NOTHING = Snapshot()


class Board:
    """The newest snapshot, for any thread to read.

    on_late_release(nodes): called in the thread of a request which finds that nodes opened while it refused them; must
    not block. All other releases are returned by swap().
    """

    def __init__(self, on_late_release: Callable[[Sequence[str]], None]) -> None:
        self._on_late_release = on_late_release
        self._snapshot = NOTHING
        self.filled = False  # whether there was a first swap; no look-ups before
        self._refusals: dict[str, Refusals] = {}  # by gate; notes of a removed gate are kicked
        self._inherited_kicks = INHERITED_KICKS
        self._turned = 0  # written by the kick thread
        self._noted = Noted(0, NOTHING, 0, set())  # written by the serving thread

    @property
    def snapshot(self) -> Snapshot:
        return self._snapshot

    def look_up(self, names: Sequence[str], mask: int = ALL_GATES) -> Answer:
        """Returns which of these nodes may be used. Each name is looked up once, in one snapshot.

        If a name is empty, nothing is noted: the whole request is answered with an Error.
        """
        snapshot = self._snapshot
        answer = sort_out(names, snapshot, mask)
        if answer.refused and "" not in answer.refused:
            self._note(answer.refused, answer.unknown, snapshot, mask & snapshot.refusing)
        return answer

    def look_up_spelled(self, names: list[bytes], mask: int = ALL_GATES) -> tuple[Sorted, Snapshot] | None:
        """The same for names as JSON texts, with the snapshot used. Returns None and notes nothing if look_up() is
        needed: a name is unknown or repeated, or no gate refuses any."""
        snapshot = self._snapshot
        mask &= snapshot.refusing
        if not mask:
            return None
        spelled = snapshot.spellings.get(mask) or snapshot.spelled(mask)
        found = sort_out_spelled(names, spelled)
        if found is None:
            return None
        if found.closed:
            self._note_spelled(found, spelled, snapshot, mask)
        return found, snapshot

    def _note_spelled(self, found: Sorted, spelled: Spelled, snapshot: Snapshot, mask: int) -> None:
        """Notes the refusals. A closed node is refused again and again: a refusal that was noted for this snapshot
        stays in the newest pages as long as no page was turned and the snapshot is the newest. Only a swap removes
        names, after it has written its own snapshot. In that case nothing needs to be noted."""
        turned, noted = self._turned, self._noted
        if noted.snapshot is not snapshot or noted.mask != mask or noted.turned != turned:
            noted = Noted(turned, snapshot, mask, set())
        names = noted.names
        known = len(names) == len(spelled.closed) or found.closed <= names
        if known and self._snapshot is snapshot:
            return
        self._note(found.refused, (), snapshot, mask)
        names.update(found.closed)
        self._noted = noted

    def _note(self, refused: Collection[str], unknown: Collection[str], snapshot: Snapshot, mask: int) -> None:
        parts = snapshot.parts(mask)
        notes: list[Note]
        if not unknown and len(refused) == len(snapshot.view(mask)):  # every closed node was asked about
            notes = parts
        elif len(parts) == 1:
            notes = [(parts[0][0], dict.fromkeys(refused, NOTED), unknown)]
        else:
            notes = list(_noted_at(dict.fromkeys(refused, NOTED), unknown, parts))
        refusals = self._refusals
        for gate, here, strangers in notes:
            refusals[gate].note(here, strangers)
        newest = self._snapshot
        if newest is not snapshot:
            self._look_again(notes, newest)

    def _look_again(self, notes: Iterable[Note], newest: Snapshot) -> None:
        released: list[str] = []
        for gate, refused, _ in notes:
            released += self._refusals[gate].take_of(refused, newest.nodes, newest.closed_at(gate))
        if released:
            self._on_late_release(released)

    def score(self, names: Sequence[str], mask: int = ALL_GATES) -> dict[str, int]:
        """Returns the score by node: SCORE_AVOIDED if an armed gate of severity `preferNot` has closed it."""
        snapshot = self._snapshot
        avoided = snapshot.view(mask & snapshot.avoiding)
        return {name: SCORE_AVOIDED if name in avoided else SCORE_OPEN for name in names}

    def swap(self, snapshot: Snapshot) -> list[str]:
        """Replaces the snapshot. Returns the nodes to kick: refused nodes that are open in the new one.

        A node is released at a gate that had refused it and no longer does: because it has opened there, or because the
        gate refuses nothing any more. It may be closed at other gates; then they refuse the pod that wakes, and that is
        noted there.

        The refusals of an earlier process are unknown. So the first snapshot returns a few open nodes, and until a kick
        has succeeded, every node that opens counts as refused.
        """
        before = self._snapshot
        new = snapshot.gates.keys() - self._refusals.keys()
        if new:
            self._refusals = {**self._refusals, **{gate: Refusals() for gate in new}}
        self._snapshot = snapshot
        first, self.filled = not self.filled, True
        renewed = [gate for gate in self._refusals if snapshot.closed_at(gate) is not before.closed_at(gate)]
        if snapshot.nodes is not before.nodes:
            renewed = list(self._refusals)
        released: dict[str, None] = {}
        for gate in renewed:
            released.update(dict.fromkeys(self._refusals[gate].take(snapshot.nodes, snapshot.closed_at(gate))))
        if self._inherited_kicks and not released and (renewed or first):
            return _opened(before, snapshot)[:ANY_FEW]
        return list(released)

    def before_kick(self) -> None:
        """Called by the kick thread before it writes."""
        for refusals in self._refusals.values():
            refusals.turn()
        self._turned += 1  # last: from here on requests no longer rely on notes of earlier pages

    def after_kick(self) -> None:
        """Called by the kick thread after its write has succeeded: kube-scheduler asks again for every refused pod.

        After two kicks no refusal of an earlier process can be left: while that process ended, it may still have
        answered pods that the first kick woke.
        """
        for refusals in self._refusals.values():
            refusals.settle()
        self._inherited_kicks = max(0, self._inherited_kicks - 1)


def _noted_at(refused: Mapping[str, str], unknown: Collection[str], parts: Iterable[Note]) -> Iterator[Note]:
    """Returns gates with what is noted there. Each name is noted once, at the gate whose reason it got; an unknown one
    at the first gate. Before that gate opens it, no pod of these gates can use it. In C speed, as sort_out()."""
    for gate, closed, _ in parts:
        here = dict.fromkeys(closed.keys() & refused.keys(), NOTED)
        if unknown:
            here.update(dict.fromkeys(unknown, NOTED))
        if here:
            yield gate, here, unknown
        unknown = ()


def _opened(before: Snapshot, after: Snapshot) -> list[str]:
    """Returns the nodes that are open at some gate, and were not."""
    came = after.nodes - before.nodes
    opened: set[str] = set()
    for gate in after.gates:
        was_closed = after.nodes.intersection(before.closed_at(gate))
        opened |= (was_closed | came).difference(after.closed_at(gate))
    return sorted(opened)


def sort_out(names: Sequence[str], snapshot: Snapshot, mask: int = ALL_GATES) -> Answer:
    """Divides names into survivors and refused. In C speed, because a scheduling attempt waits for it."""
    mask &= snapshot.refusing
    asked = set(names)
    if len(asked) != len(names):
        names = each_once(names)
    if not mask:
        return Answer(list(names), {}, (), snapshot)
    refused = asked & snapshot.closed(mask)
    unknown: Collection[str] = () if asked <= snapshot.nodes else asked - snapshot.nodes
    if not refused and not unknown:
        return Answer(list(names), {}, (), snapshot)
    reasons = dict(zip(refused, map(snapshot.view(mask).__getitem__, refused)))  # noqa: B905 - of one length
    if unknown:
        reasons.update(dict.fromkeys(unknown, UNKNOWN_NODE))
    survivors = [] if len(reasons) == len(asked) else list(filterfalse(reasons.__contains__, names))
    return Answer(survivors, reasons, unknown, snapshot)


def each_once(names: Sequence[str]) -> list[str]:
    """Returns each name once, in the order asked."""
    return list(dict.fromkeys(names))
