"""Pure: the decisions as all others see them, looked up by requests.

A Snapshot never changes; a new one takes the place of the old one as a whole. The Board holds the newest, and notes
what is refused to requests, in the order that loses no kick (`refusals`). A request takes no lock.

A request speaks of the gates that are for its pod by a mask: bit i is the i-th gate in the order of the configuration.
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
UNKNOWN_NODE = CLOSED_NO_HEALTH_POD  # the reason for a name in no snapshot: not seen yet, or no node at all
INHERITED_KICKS = 2  # kicks after which no pod waits any more that another process refused
ANY_FEW = 8  # any open node will do; more than one, because nodes go
VIEWS_MAX = 32  # masks whose gates are kept joined; with more than that each request joins its own
SCORE_OPEN, SCORE_AVOIDED = 10, 0  # kube-scheduler's MaxExtenderPriority and the least
_NOTHING_CLOSED: Mapping[str, str] = {}

Note = tuple[str, Mapping[str, str], Collection[str]]  # a gate, what it refused, which of that no snapshot holds


class Snapshot(msgspec.Struct, frozen=True, eq=False):
    """gates: by name, in the order of the configuration. nodes: all that there are.

    cap: how many nodes all gates that refuse may close together, None = as many as they like.
    refusing, avoiding: masks of the armed gates of severity `gate` and `preferNot`; follow from the gates.
    spellings: as spelled() has made them, by mask.
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
        """The next one. What requests have asked for of this one is made ready for them."""
        snapshot = type(self)(gates, nodes, cap)
        for mask in list(self._views):
            snapshot.view(mask)
        if self.spellings:  # what has not changed since is spelled already
            known = respelled(next(iter(self.spellings.values())).nodes, self.nodes, nodes)
            for mask, spelled in list(self.spellings.items()):
                view = snapshot.view(mask)
                same = view is self.view(mask)
                snapshot.spellings[mask] = spelled.among(known) if same else spelled_at(known, view)
        return snapshot

    def closed_at(self, gate: str) -> Mapping[str, str]:
        """The nodes that this gate refuses, with their reasons; none if it is not armed, or not there."""
        state = self.gates.get(gate)
        return _NOTHING_CLOSED if state is None or not state.refuses else state.closed

    def view(self, mask: int) -> Mapping[str, str]:
        """The nodes closed at any of these gates, each with the reason of the first of them."""
        found = self._views.get(mask)
        if found is None:
            found = _joined([state.closed for state in self._of(mask) if state.closed])
            if len(self._views) < VIEWS_MAX:
                self._views[mask] = found  # remembered by whoever asks; each would remember the same
        return found

    def closed(self, mask: int) -> frozenset[str]:
        """The names of view(mask): a set compares with another one by hashes, and need not look at every name."""
        found = self._closed.get(mask)
        if found is None:
            found = frozenset(self.view(mask))
            if len(self._closed) < VIEWS_MAX:
                self._closed[mask] = found
        return found

    def spelled(self, mask: int) -> Spelled:
        """All nodes, and those of view(mask), as requests spell them."""
        found = self.spellings.get(mask)
        if found is None:
            known = next(iter(self.spellings.values())).nodes if self.spellings else spelled_of(self.nodes)
            found = spelled_at(known, self.view(mask))
            if len(self.spellings) < VIEWS_MAX:
                self.spellings[mask] = found
        return found

    def parts(self, mask: int) -> list[Note]:
        """Of each of these gates the nodes that it closes and none before it: what is noted if all are refused."""
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
        """Of each node what a request of all gates is told, OPEN if nothing. For people: walks all nodes."""
        return {**dict.fromkeys(self.nodes, OPEN), **self.view(self.refusing)}

    def _of(self, mask: int) -> Iterator[GateState]:
        return (state for i, state in enumerate(self.gates.values()) if mask >> i & 1)


def _joined(closed: Sequence[Mapping[str, str]]) -> Mapping[str, str]:
    """Of several the first one's reason counts."""
    if len(closed) <= 1:
        return closed[0] if closed else _NOTHING_CLOSED
    joined: dict[str, str] = {}
    for one in reversed(closed):
        joined.update(one)
    return joined


class Answer(NamedTuple):
    """survivors: in the order asked, each once. refused: the other names, each with its reason. unknown: which of them
    no snapshot holds. snapshot: what it was made of."""

    survivors: list[str]
    refused: dict[str, str]
    unknown: Collection[str] = ()
    snapshot: Optional["Snapshot"] = None


class Noted(NamedTuple):
    """names: nodes as requests spell them, each noted where a request of these gates was refused it by this snapshot.
    turned: how many pages were turned before."""

    turned: int
    snapshot: Snapshot
    mask: int
    names: set[bytes]


NOTHING = Snapshot()


class Board:
    """The newest snapshot, for any thread to read.

    on_late_release(nodes): called in the thread of a request that found out that nodes opened while it was refusing
    them; must not block. All other releases are what swap() gives back.
    """

    def __init__(self, on_late_release: Callable[[Sequence[str]], None]) -> None:
        self._on_late_release = on_late_release
        self._snapshot = NOTHING
        self.filled = False  # whether there was a first swap; names are not to be looked up before
        self._refusals: dict[str, Refusals] = {}  # by gate; what is noted of a gate that goes is kicked
        self._inherited_kicks = INHERITED_KICKS
        self._turned = 0  # written by the thread that kicks
        self._noted = Noted(0, NOTHING, 0, set())  # written by the thread that answers

    @property
    def snapshot(self) -> Snapshot:
        return self._snapshot

    def look_up(self, names: Sequence[str], mask: int = ALL_GATES) -> Answer:
        """Which of these nodes may be used. Each name is looked up once, in one snapshot.

        With an empty name among them nothing is noted: the whole request is answered with an Error.
        """
        snapshot = self._snapshot
        answer = sort_out(names, snapshot, mask)
        if answer.refused and "" not in answer.refused:
            self._note(answer.refused, answer.unknown, snapshot, mask & snapshot.refusing)
        return answer

    def look_up_spelled(self, names: list[bytes], mask: int = ALL_GATES) -> tuple[Sorted, Snapshot] | None:
        """The same for names as JSON spells them, and what it was made of; None, and nothing is noted, where look_up()
        is to be asked: not each is another node that we know, or no gate refuses any."""
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
        """While a node is closed it is refused again and again. What was noted of this snapshot stands in the newest
        pages as long as none was turned and the snapshot is the newest: only a swap takes names out, after it has
        written its own. Then nothing is to be noted.
        """
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
        """By node: SCORE_AVOIDED if an armed gate of severity `preferNot` would rather have no pod there."""
        snapshot = self._snapshot
        avoided = snapshot.view(mask & snapshot.avoiding)
        return {name: SCORE_AVOIDED if name in avoided else SCORE_OPEN for name in names}

    def swap(self, snapshot: Snapshot) -> list[str]:
        """Puts the snapshot in the place of the last one; refused nodes that are open in it, to be kicked.

        A node is released at a gate that had refused it and does so no more: because it has opened there, or because
        the gate refuses nothing any more. It may be closed at others; then the pod that is woken is refused there, and
        that is noted there.

        What the process before us refused nobody knows. So the first snapshot gives a few open nodes, and as long as
        no kick was taken, every node that opens counts as refused.
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
        """Called by the thread that kicks, before it writes."""
        for refusals in self._refusals.values():
            refusals.turn()
        self._turned += 1  # last: what a request remembers of the pages before holds no more

    def after_kick(self) -> None:
        """Called by the thread that kicks, when its write was taken: every refused pod is asked for again.

        Two of them, and none can be left that was refused by the process before us: while that one is about to end, it
        may still have answered what the first kick woke.
        """
        for refusals in self._refusals.values():
            refusals.settle()
        self._inherited_kicks = max(0, self._inherited_kicks - 1)


def _noted_at(refused: Mapping[str, str], unknown: Collection[str], parts: Iterable[Note]) -> Iterator[Note]:
    """Gate, and what is noted there: each name once, at the gate whose reason it was given; an unknown one at the
    first. Before that gate opens it, no pod of these gates can use it. In C speed, as sort_out()."""
    for gate, closed, _ in parts:
        here = dict.fromkeys(closed.keys() & refused.keys(), NOTED)
        if unknown:
            here.update(dict.fromkeys(unknown, NOTED))
        if here:
            yield gate, here, unknown
        unknown = ()


def _opened(before: Snapshot, after: Snapshot) -> list[str]:
    """The nodes that are open at some gate, and were not."""
    came = after.nodes - before.nodes
    opened: set[str] = set()
    for gate in after.gates:
        was_closed = after.nodes.intersection(before.closed_at(gate))
        opened |= (was_closed | came).difference(after.closed_at(gate))
    return sorted(opened)


def sort_out(names: Sequence[str], snapshot: Snapshot, mask: int = ALL_GATES) -> Answer:
    """In C speed: this is what a scheduling attempt waits for."""
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
    """In the order asked."""
    return list(dict.fromkeys(names))
