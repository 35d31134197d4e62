"""Pure: one node at one gate: its verdict, the order for it, and its history.

Effects of all nodes of a gate together are in `limits`.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from extender.policy.caps import Caps, Place
from extender.policy.decision import HeldBy
from extender.policy.evidence import HealthPod, NodeEvidence, ObservedNode
from extender.policy.gates import Gate, not_gated
from extender.policy.orders import Kind, Order, Orders
from extender.policy.placement import Placement
from extender.policy.reasons import CLOSED_HELD, CLOSED_NO_HEALTH_POD, OPEN
from extender.policy.verdict import Memory, Verdict, never_good, only_good, verdict_of
from kube.times import format_time, parse_time


class RowInputs(msgspec.Struct, frozen=True):
    """The input that all nodes of a gate share in a turn. placement: None = unknown. braked: whether a cap or a storm
    may hold nodes open. places: the places met so far, one object for equal ones."""

    caps: Caps
    orders: Orders
    placement: Placement | None
    braked: bool
    monotonic: float
    wall: float
    places: dict[tuple[str, str], Place]


class Row(msgspec.Struct, frozen=True, gc=False):
    """One node at one gate.

    node, pods, lost, agent_silent, swallows: its evidence; swallows is None if the gate does not use it. gated: whether
    the gate applies to this node. wants: the reason to close it if nothing held it, OPEN if none. lingers: it may stay
    closed with that reason, but must not be closed for it. counted: whether it is on both sides of the caps' fractions.
    closures: when the verdict closed it, monotonic, for damping. healthy_since: when the verdict opened it. turned_at:
    when the verdict closed it, monotonic, -inf if unknown. since: the same from the objects, or the wall clock when it
    was observed; RFC 3339. new: nothing shows that the node was ever in use.
    """

    node: ObservedNode
    pods: tuple[HealthPod, ...]
    lost: bool
    memory: Memory
    verdict: Verdict
    place: Place
    gated: bool = True
    counted: bool = True
    wants: str = OPEN
    held_by: HeldBy = HeldBy.NONE
    note: str = ""
    until: float | None = None
    lingers: bool = False
    closures: tuple[float, ...] = ()
    healthy_since: float = -math.inf
    turned_at: float = -math.inf
    since: str = ""
    changes_at: float | None = None
    new: bool = False
    agent_silent: bool = False
    swallows: str | None = None

    @property
    def competes(self) -> bool:
        """Returns whether caps limit how many of such nodes may be closed."""
        return self.counted and self.wants != OPEN

    @property
    def rank(self) -> tuple[bool, str]:
        """Returns the sort key: a smaller one was bad first, and stays closed before others. Nodes on which no health
        pod ever ran come last: the DaemonSet may not be meant for them, and they would displace failing nodes for ever.
        """
        never = self.verdict.reason == CLOSED_NO_HEALTH_POD and not self.memory.ever_good
        return never, self.since

    @property
    def uncounted(self) -> bool:
        """Returns whether it is closed regardless of caps: by a hold, out of service, or new and never in use."""
        return not self.counted and self.wants != OPEN

    def stays(self, seen: NodeEvidence, gate: str, monotonic: float) -> bool:
        """Returns whether none of its inputs has changed, time included."""
        return (
            (self.changes_at is None or monotonic < self.changes_at)
            and (self.node is seen.node or self.node == seen.node)
            and (self.lost, self.agent_silent) == (seen.heartbeat_lost, seen.agent_silent)
            and self.pods == seen.pods.get(gate, ())
            and self.swallows in (None, seen.swallows)
        )


_NO_MEMORY = Memory()
_NO_VERDICT = Verdict(OPEN)


def row_of(gate: Gate, seen: NodeEvidence, before: Row | None, was_closed: bool, inputs: RowInputs) -> Row:
    """Decides one node at one gate. was_closed: whether it was closed until now, for any reason."""
    node, pods = seen.node, seen.pods.get(gate.name, ())
    place = before.place if before is not None and before.node is node else _place(node.labels, inputs)
    outside = "" if gate.nodes is None and inputs.placement is None else not_gated(gate, inputs.placement, node)
    if outside:
        return Row(
            *(node, pods, seen.heartbeat_lost, _NO_MEMORY, _NO_VERDICT, place),
            gated=False,
            counted=False,
            held_by=HeldBy.NOT_GATED,
            note=outside,
            agent_silent=seen.agent_silent,
        )
    if before is not None and (not before.gated or before.memory.node_uid != node.uid):
        before = None
    is_lost = seen.heartbeat_lost or seen.agent_silent
    if not (was_closed or is_lost or gate.conditions is not None or gate.by_starts or inputs.orders.entries):
        pod = only_good(pods, node)
        if pod is not None:
            return _healthy(node, pods, pod, place, before, inputs.monotonic)
    verdict, memory = verdict_of(
        seen,
        gate.name,
        _NO_MEMORY if before is None else before.memory,
        monotonic=inputs.monotonic,
        missing_grace_s=gate.missing_grace_s,
        replace_grace_s=gate.replace_grace_s,
        conditions=gate.conditions,
        wall=inputs.wall,
        by_starts=gate.by_starts,
    )
    past = _past(gate, verdict, before, inputs)
    used_from = -math.inf
    if verdict.reason != OPEN and inputs.braked and never_good(memory, pods, node):
        used_from = node.born_at + inputs.caps.new_node_s
    new = inputs.monotonic < used_from
    counts = node.in_service and not new
    order = inputs.orders.for_node(gate.name, node.name, place.pool, inputs.wall)
    stays = was_closed and (order is None or order.kind is not Kind.EXEMPT)  # otherwise the next decision would differ
    stand = _damped(gate, verdict, past, before, stays, inputs.monotonic)
    if order is not None:
        stand = _ordered(order, stand, verdict, past, was_closed, counts, inputs)
    return Row(
        node=node,
        pods=pods,
        lost=seen.heartbeat_lost,
        agent_silent=seen.agent_silent,
        swallows=seen.swallows if gate.by_starts else None,
        memory=memory,
        verdict=verdict,
        place=place,
        counted=counts and stand.held_by is not HeldBy.HOLD,
        wants=stand.wants,
        held_by=stand.held_by,
        note=stand.note,
        until=stand.until,
        lingers=stand.lingers,
        closures=past.closures,
        healthy_since=past.healthy_since,
        turned_at=past.turned_at,
        since=past.since,
        changes_at=_soonest(_soonest(verdict.changes_at, stand.until), used_from if new else None),
        new=new,
    )


def _healthy(
    node: ObservedNode,
    pods: tuple[HealthPod, ...],
    pod: HealthPod,
    place: Place,
    before: Row | None,
    monotonic: float,
) -> Row:
    """The same for a node that is open and stays so: nearly all rows of a decision on all nodes."""
    if before is None:
        memory = Memory(node.uid, True, OPEN, None, pod.uid)
        return Row(node, pods, False, memory, Verdict(OPEN, pod.name, pod.message), place, True, node.in_service)
    memory, verdict = before.memory, before.verdict
    if memory.good_uid != pod.uid or memory.missing_since is not None:
        memory = Memory(node.uid, True, OPEN, None, pod.uid)
    was_healthy = verdict.reason == OPEN
    if (verdict.pod, verdict.evidence) != (pod.name, pod.message) or verdict.bare != OPEN or not was_healthy:
        verdict = Verdict(OPEN, pod.name, pod.message)
    row = Row(
        node,
        pods,
        False,
        memory,
        verdict,
        place,
        counted=node.in_service,
        closures=before.closures,
        healthy_since=before.healthy_since if was_healthy else monotonic,
        turned_at=before.turned_at,
        since=before.since,
    )
    return before if row == before else row


class _Past(NamedTuple):
    """As in Row."""

    closures: tuple[float, ...] = ()
    healthy_since: float = -math.inf
    turned_at: float = -math.inf
    since: str = ""


class _Stand(NamedTuple):
    """As in Row."""

    wants: str
    held_by: HeldBy = HeldBy.NONE
    note: str = ""
    until: float | None = None
    lingers: bool = False


_HEALTHY, _ALWAYS_HEALTHY = _Stand(OPEN), _Past()


def _past(gate: Gate, verdict: Verdict, before: Row | None, inputs: RowInputs) -> _Past:
    """Returns the history of the node, including this verdict."""
    if before is None:
        if verdict.reason == OPEN:
            return _ALWAYS_HEALTHY
        turned_at = inputs.monotonic - max(0.0, inputs.wall - _seconds(verdict.since, math.inf))
        return _Past(turned_at=turned_at, since=verdict.since or format_time(inputs.wall))
    was_healthy = before.verdict.reason == OPEN
    if verdict.reason == OPEN:
        since = before.healthy_since if was_healthy else inputs.monotonic
        return _Past(before.closures, since, before.turned_at, before.since)
    if not was_healthy:
        return _Past(before.closures, before.healthy_since, before.turned_at, verdict.since or before.since)
    closures = () if gate.damping is None else gate.damping.closed(before.closures, inputs.monotonic)
    return _Past(closures, before.healthy_since, inputs.monotonic, verdict.since or format_time(inputs.wall))


def _damped(
    gate: Gate, verdict: Verdict, past: _Past, before: Row | None, was_closed: bool, monotonic: float
) -> _Stand:
    """Decides without an order: by the verdict, but a node that keeps failing stays closed for a while."""
    if verdict.reason != OPEN:
        return _graced(_Stand(verdict.reason), verdict)
    if was_closed and gate.damping is not None and before is not None and before.wants not in (OPEN, CLOSED_HELD):
        until = past.healthy_since + gate.damping.healthy_s(past.closures, past.healthy_since)
        if monotonic < until:
            return _Stand(before.wants, HeldBy.DAMPING, "has failed again and again", until, lingers=True)
    return _HEALTHY if verdict.bare == OPEN else _graced(_HEALTHY, verdict)


def _graced(stand: _Stand, verdict: Verdict) -> _Stand:
    if verdict.bare == verdict.reason:
        return stand
    return stand._replace(held_by=HeldBy.GRACE, note=verdict.evidence, until=verdict.changes_at)


def _ordered(
    order: Order, stand: _Stand, verdict: Verdict, past: _Past, was_closed: bool, counts: bool, inputs: RowInputs
) -> _Stand:
    """Decides with an order of an operator for this node at this gate. stand: the decision without it."""
    until = inputs.monotonic + max(0.0, order.expires - inputs.wall) if order.expires < math.inf else None
    said = f"{order.kind} of {order.scope}" + (f" by {order.author}" if order.author else "")
    note = f"{said}: {order.reason}" if order.reason else said
    if order.kind is Kind.HOLD:
        return _Stand(CLOSED_HELD, HeldBy.HOLD, note, until)
    if stand.wants == OPEN:
        return stand
    if order.kind is Kind.EXEMPT:
        return _Stand(OPEN, HeldBy.EXEMPT, note, until)
    if verdict.reason == OPEN or _seconds(past.since, math.inf) <= order.created:
        return stand  # it was closed before
    if counts:
        return _Stand(stand.wants, HeldBy.PAUSE, note, until, lingers=True)
    return stand if was_closed else _Stand(OPEN, HeldBy.PAUSE, note, until)


def _place(labels: Mapping[str, str], inputs: RowInputs) -> Place:
    key = labels.get(inputs.caps.pool_label, ""), labels.get(inputs.caps.zone_label, "")
    found = inputs.places.get(key)
    if found is None:
        found = inputs.places[key] = Place(*key)
    return found


def _soonest(one: float | None, other: float | None) -> float | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)


def _seconds(text: str, otherwise: float) -> float:
    try:
        seconds = parse_time(text or None)
    except (msgspec.ValidationError, OverflowError):
        return otherwise
    return otherwise if seconds is None else seconds
