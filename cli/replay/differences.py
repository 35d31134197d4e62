"""Compares the decisions of two configurations on one recording. Pure."""

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

OPEN = ""


@dataclass(frozen=True)
class Transition:
    """A change of a decision."""

    at: float  # seconds since the epoch
    gate: str
    node: str
    reason: str  # "" for open
    held_by: str = ""  # the cap, storm, order or damping that holds the node
    note: str = ""


@dataclass(frozen=True)
class ReplayResult:
    """The decisions of one configuration on a recording."""

    began: float  # of the recording, seconds since the epoch
    ended: float
    transitions: tuple[Transition, ...]
    armed: Mapping[str, bool]  # by gate, at the end


@dataclass(frozen=True)
class Totals:
    """The totals of one configuration."""

    closures: int
    most_closed: int  # nodes at once
    closed_s: float  # of all nodes together
    held: Mapping[str, int]  # how many nodes were held open, by what held them


@dataclass(frozen=True)
class Difference:
    """A span of time in which the configurations decided differently for one node at one gate."""

    gate: str
    node: str
    at: float  # seconds since the epoch
    until: float | None  # None: to the end of the recording
    before: str | None  # the reason, "" for open; None if the configuration has no such gate
    after: str | None  # the same for the second configuration
    held_by: str = ""
    note: str = ""


def totals_of(played: ReplayResult) -> Totals:
    closed: dict[tuple[str, str], float] = {}
    gates_of: Counter[str] = Counter()  # by node: how many gates close it
    held: dict[str, set[str]] = {}
    closures, most, closed_s = 0, 0, 0.0
    for one in played.transitions:
        key = (one.gate, one.node)
        if one.held_by:
            held.setdefault(one.held_by, set()).add(one.node)
        if one.reason != OPEN and key not in closed:
            closed[key] = one.at
            gates_of[one.node] += 1
            closures += 1
        elif one.reason == OPEN and key in closed:
            closed_s += one.at - closed.pop(key)
            gates_of[one.node] -= 1
            if not gates_of[one.node]:
                del gates_of[one.node]
        most = max(most, len(gates_of))
    closed_s += sum(played.ended - since for since in closed.values())
    return Totals(closures, most, closed_s, {who: len(nodes) for who, nodes in sorted(held.items())})


def differences(before: ReplayResult, after: ReplayResult) -> list[Difference]:
    """Returns the differences in the order of their begin. Gates are compared by name."""
    found: list[Difference] = []
    gates = sorted({*before.armed, *after.armed, *(one.gate for one in (*before.transitions, *after.transitions))})
    for gate in gates:
        was, tried = _by_node(before, gate), _by_node(after, gate)
        for node in sorted({*was, *tried}):
            found += _of_node(
                gate, node, was.get(node, []), tried.get(node, []), known=(gate in before.armed, gate in after.armed)
            )
    return sorted(found, key=lambda one: (one.at, one.gate, one.node))


def _by_node(played: ReplayResult, gate: str) -> dict[str, list[Transition]]:
    found: dict[str, list[Transition]] = {}
    for one in played.transitions:
        if one.gate == gate:
            found.setdefault(one.node, []).append(one)
    return found


def _of_node(
    gate: str, node: str, was: list[Transition], tried: list[Transition], *, known: tuple[bool, bool]
) -> Iterator[Difference]:
    began: Difference | None = None
    for at, left, right in _merged(was, tried):
        reasons = [
            None if not is_known else OPEN if one is None else one.reason
            for one, is_known in zip((left, right), known, strict=True)
        ]
        if began is not None and (began.before, began.after) != tuple(reasons):
            if at > began.at:
                yield Difference(gate, node, began.at, at, began.before, began.after, began.held_by, began.note)
            began = None
        if began is None and (reasons[0] or OPEN) != (reasons[1] or OPEN):
            decision = right if right is not None and right.held_by else left
            began = Difference(
                gate,
                node,
                at,
                None,
                reasons[0],
                reasons[1],
                "" if decision is None else decision.held_by,
                "" if decision is None else decision.note,
            )
    if began is not None:
        yield began


def _merged(
    was: list[Transition], tried: list[Transition]
) -> Iterator[tuple[float, Transition | None, Transition | None]]:
    """Both decisions at each moment at which one of them changes."""
    left = right = None
    waiting_left, waiting_right = deque(was), deque(tried)
    for at in sorted({one.at for one in (*was, *tried)}):
        while waiting_left and waiting_left[0].at <= at:
            left = waiting_left.popleft()
        while waiting_right and waiting_right[0].at <= at:
            right = waiting_right.popleft()
        yield at, left, right
