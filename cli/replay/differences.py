"""What two configurations made of one tape, and where they differ. Pure."""

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

OPEN = ""


@dataclass(frozen=True)
class Turned:
    """A decision's reason, or who holds it, became another one.

    at: seconds since 1970. reason: "" for open. held_by, note: why so.
    """

    at: float
    gate: str
    node: str
    reason: str
    held_by: str = ""
    note: str = ""


@dataclass(frozen=True)
class Played:
    """began, ended: of the tape. armed: by gate, whether it is at the end."""

    began: float
    ended: float
    turned: tuple[Turned, ...]
    armed: Mapping[str, bool]


@dataclass(frozen=True)
class Sums:
    """Of one configuration: closures, the most nodes closed at once, seconds that nodes were closed, nodes held open
    (each once), by whom.
    """

    closures: int
    most_closed: int
    closed_s: float
    held: Mapping[str, int]


@dataclass(frozen=True)
class Difference:
    """Of one node at one gate, while both said something else. before, after: reasons, "" for open; None where the
    configuration has no such gate. until: None if it lasted to the end of the tape.
    """

    gate: str
    node: str
    at: float
    until: float | None
    before: str | None
    after: str | None
    held_by: str = ""
    note: str = ""


def sums(played: Played) -> Sums:
    closed: dict[tuple[str, str], float] = {}
    gates_of: Counter[str] = Counter()  # by node: how many gates close it
    held: dict[str, set[str]] = {}
    closures, most, closed_s = 0, 0, 0.0
    for one in played.turned:
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
    return Sums(closures, most, closed_s, {who: len(nodes) for who, nodes in sorted(held.items())})


def differences(before: Played, after: Played) -> list[Difference]:
    """In the order in which they began. Gates are compared by their names."""
    found: list[Difference] = []
    gates = sorted({*before.armed, *after.armed, *(one.gate for one in (*before.turned, *after.turned))})
    for gate in gates:
        was, tried = _by_node(before, gate), _by_node(after, gate)
        for node in sorted({*was, *tried}):
            found += _of_node(
                gate, node, was.get(node, []), tried.get(node, []), known=(gate in before.armed, gate in after.armed)
            )
    return sorted(found, key=lambda one: (one.at, one.gate, one.node))


def _by_node(played: Played, gate: str) -> dict[str, list[Turned]]:
    found: dict[str, list[Turned]] = {}
    for one in played.turned:
        if one.gate == gate:
            found.setdefault(one.node, []).append(one)
    return found


def _of_node(
    gate: str, node: str, was: list[Turned], tried: list[Turned], *, known: tuple[bool, bool]
) -> Iterator[Difference]:
    began: Difference | None = None
    for at, left, right in _together(was, tried):
        reasons = [
            None if not is_known else OPEN if one is None else one.reason
            for one, is_known in zip((left, right), known, strict=True)
        ]
        if began is not None and (began.before, began.after) != tuple(reasons):
            if at > began.at:
                yield Difference(gate, node, began.at, at, began.before, began.after, began.held_by, began.note)
            began = None
        if began is None and (reasons[0] or OPEN) != (reasons[1] or OPEN):
            told = right if right is not None and right.held_by else left
            began = Difference(
                gate,
                node,
                at,
                None,
                reasons[0],
                reasons[1],
                "" if told is None else told.held_by,
                "" if told is None else told.note,
            )
    if began is not None:
        yield began


def _together(was: list[Turned], tried: list[Turned]) -> Iterator[tuple[float, Turned | None, Turned | None]]:
    """Both at each moment at which one of them changes."""
    left = right = None
    waiting_left, waiting_right = deque(was), deque(tried)
    for at in sorted({one.at for one in (*was, *tried)}):
        while waiting_left and waiting_left[0].at <= at:
            left = waiting_left.popleft()
        while waiting_right and waiting_right[0].at <= at:
            right = waiting_right.popleft()
        yield at, left, right
