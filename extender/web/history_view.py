"""Pure: pods, history and impact of the recorded history, as the status API shows them. Must be called while nothing
changes the history."""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice

from extender.policy.reasons import CLOSED_NO_HEALTH_POD
from extender.policy.snapshot import Snapshot
from extender.web.decisions_view import ago, page
from extender.web.schema import Attempt, Change, Impact, RefusedNode, RefusedPod
from extender.why.entries import Event, PodRecord
from extender.why.history import History
from extender.why.pods import numbers_of
from kube.times import format_time

REFUSED_PODS_MAX = 20
TRANSITIONS_MAX = 50
NO_GATE = ""


def change_told(event: Event, monotonic: float, wall: float) -> Change:
    ago_s = ago(event.at, monotonic)
    return Change(
        ago_seconds=ago_s,
        wall=format_time(wall - ago_s),
        kind=event.kind,
        gate=event.gate,
        node=event.node,
        reason=event.reason,
        evidence=event.evidence,
        held_by=event.held_by,
        note=event.note,
    )


def events(memory: History, keep: Callable[[Event], bool], before: int | None = None) -> Iterator[Event]:
    """Yields events, the newest first, older than that serial."""
    return (event for event in reversed(memory.events) if (before is None or event.serial < before) and keep(event))


def last_changes(memory: History) -> Mapping[str, Event]:
    """Returns the newest transition of a node, by gate."""
    found: dict[str, Event] = {}
    for event in memory.events:
        if event.node and event.kind in ("closed", "opened"):
            found[event.gate] = event
    return found


def refused_pods(memory: History, node: str, monotonic: float) -> list[RefusedPod]:
    """Yields pods that were refused the node in their last answered attempt, the latest first; not all of them."""
    number = memory.numbers.by_name.get(node)
    if number is None:
        return []
    found = []
    for record in islice(memory.pods.refused_on(number), REFUSED_PODS_MAX):
        code = record.codes[numbers_of(record.nodes).index(number)]
        last_s = ago(record.last if record.at is None else record.at, monotonic)
        found.append(RefusedPod(record.namespace, record.name, _gate(memory, code), record.refused_times, last_s))
    return found


def attempt_told(
    memory: History, record: PodRecord, snapshot: Snapshot, monotonic: float, *, after: str, limit: int | None
) -> tuple[Attempt | None, str]:
    """Returns the last answered attempt with one page of its nodes, and where the next page begins."""
    if record.at is None:
        return None, ""
    numbers = numbers_of(record.nodes)
    names = memory.numbers.names
    rows = [
        (names[number] if number < len(names) else "", code)
        for number, code in zip(numbers, record.codes, strict=False)
    ]
    refused, shadow = dict(rows[: record.refused]), rows[record.refused :]
    unknown = dict.fromkeys(record.unknown)
    shown, more = page(sorted({*refused, *unknown, *(name for name, _ in shadow)}), after, limit)
    there = set(shown)
    told = Attempt(
        ago_seconds=ago(record.at, monotonic),
        asked=record.asked,
        passed=record.passed,
        refused=tuple(
            _refused_node(memory, name, refused.get(name), snapshot, monotonic)
            for name in shown
            if name in refused or name in unknown
        ),
        shadow=tuple(
            _refused_node(memory, name, code, snapshot, monotonic) for name, code in sorted(shadow) if name in there
        ),
        complete=record.complete,
        exempt=record.exempt,
        refused_count=record.refused + record.unknown_count,
        shadow_count=len(shadow),
        nominated=record.nominated,
        open_count=sum(_is_open(name, snapshot) for name in {*refused, *unknown}),
    )
    return told, more


def _refused_node(memory: History, node: str, code: int | None, snapshot: Snapshot, monotonic: float) -> RefusedNode:
    """code: None for a name that was in no snapshot at that time."""
    gate, reason = NO_GATE, CLOSED_NO_HEALTH_POD
    if code is not None and code < len(memory.causes):
        gate, reason = memory.causes[code].gate, memory.causes[code].reason
    state = snapshot.gates.get(gate)
    decision = None if state is None else state.decisions.get(node)
    closed = decision is not None and bool(decision.reason)
    return RefusedNode(
        node=node,
        gate=gate,
        reason=reason,
        since_seconds=ago(decision.since_monotonic, monotonic) if decision is not None and closed else None,
        node_open=_is_open(node, snapshot),
    )


def _is_open(node: str, snapshot: Snapshot) -> bool:
    return node in snapshot.nodes and node not in snapshot.view(snapshot.refusing)


def _gate(memory: History, code: int) -> str:
    return memory.causes[code].gate if code < len(memory.causes) else NO_GATE


def impact_told(memory: History, snapshot: Snapshot, monotonic: float) -> Iterator[Impact]:
    for name, state in snapshot.gates.items():
        tally = memory.tallies.get(name)
        if tally is None or tally.armed is not state.armed:  # its first tally has not come yet
            yield Impact(gate=name, armed=state.armed, would_close=len(state.closed))
            continue
        yield Impact(
            gate=name,
            armed=tally.armed,
            since_seconds=ago(tally.since, monotonic),
            would_close=len(state.closed),
            would_close_most=max(tally.most_closed, len(state.closed)),
            would_refuse=tally.names,
            would_refuse_calls=tally.calls,
            pods=tally.pods,
            pods_at_least=tally.pods_at_least,
            cap_hits=tally.cap_hits,
            storm_hits=tally.storm_hits,
        )
