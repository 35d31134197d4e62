"""Replays a recording: decides as an extender with another configuration would, by the recording's clock."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from cli.replay import recording
from cli.replay.differences import ReplayResult, Transition
from cli.replay.recording import Head, Line, RecordingError
from extender.cluster import objects, observed
from extender.cluster.health_pods import PodList
from extender.cluster.heartbeats import AGENTS, KUBELETS, Heartbeats, Kind
from extender.cluster.index import Index
from extender.cluster.placement_inputs import PlacementInputs
from extender.config.settings import Heartbeat, Settings
from extender.policy.decide import Rules, decide
from extender.policy.decision import Decision
from extender.policy.gates import caps_of, gates_of, storm_of
from extender.policy.memory import DecisionMemory
from extender.process.services import daemon_sets_of, speakers_of, wanted_of

APART_S = 0.02  # events within this time are decided together, as in the extender's decider


@dataclass
class _LeaseWatch:
    """Replaces the reflector of Leases of one kind."""

    last_word: float | None = None
    list_began: float | None = None
    list_ahead_s: float | None = None  # a recording has no response times
    counters: Mapping[str, int] = field(default_factory=dict)


class Player:
    """Replays one recording with one configuration."""

    def __init__(self, settings: Settings, head: Head) -> None:
        self._now = head.at
        self._due_at = math.inf
        gates = gates_of(settings)
        self._rules = Rules(gates, caps_of(settings), storm_of(settings))
        self._watches = {recording.LEASES: _LeaseWatch(), recording.AGENTS: _LeaseWatch()}
        self._beats = self._heartbeats(settings.heartbeat)
        self._index = Index(
            speakers=speakers_of(settings),
            wanted=wanted_of(gates),
            on_change=self._changed,
            kubelets=self._beats.get(recording.LEASES),
            agents=self._beats.get(recording.AGENTS),
            monotonic=lambda: self._now,
            wall=lambda: self._now,
        )
        self._around = PlacementInputs(
            daemon_sets=daemon_sets_of(settings), config_map=settings.orders.config_map, on_change=self._changed
        )
        self._memory = DecisionMemory()
        self._transitions: list[Transition] = []
        self._decisions: dict[tuple[str, str], tuple[str, str]] = {}
        self._missing = {recording.of_pods(*one.pods) for one in speakers_of(settings)}
        self._stores = self._all_stores()

    def play(self, lines: Iterable[Line]) -> ReplayResult:
        """Replays the lines. Raises RecordingError."""
        began = self._now
        for line in lines:
            self._wait_until(line.at)
            if line.do != "end":
                self._take(line)
        self._wait_until(self._now + APART_S)
        if self._missing:
            pods = ", ".join(sorted(self._missing))
            raise RecordingError(f"it has no {pods}; record again with the --config that selects them")
        return ReplayResult(began, self._now, tuple(self._transitions), self._armed())

    def _armed(self) -> Mapping[str, bool]:
        return {name: gate.armed for name, gate in self._memory.snapshot.gates.items()}

    def _heartbeats(self, heartbeat: Heartbeat) -> Mapping[str, Heartbeats]:
        """The heartbeats that this configuration uses, by the name of their list."""
        wanted: list[tuple[str, float, Kind]] = []
        if heartbeat.limit_s < math.inf:
            wanted.append((recording.LEASES, heartbeat.limit_s, KUBELETS))
        if heartbeat.agents is not None:
            wanted.append((recording.AGENTS, float(heartbeat.agents.limit_seconds), AGENTS))
        return {
            of: Heartbeats(
                limit_s,
                kind,
                on_change=self._changed,
                watch=lambda of=of: self._watches[of],  # type: ignore[misc]
                monotonic=lambda: self._now,
            )
            for of, limit_s, kind in wanted
        }

    def _changed(self) -> None:
        self._due_at = min(self._due_at, self._now + APART_S)

    def _wait_until(self, at: float) -> None:
        """Advances the clock, and decides whenever a decision is due."""
        while self._due_at <= at:
            self._now = max(self._now, self._due_at)
            self._decide()
        self._now = max(self._now, at)

    def _decide(self) -> None:
        self._due_at = math.inf
        names, around = self._memory.due(self._now), self._around.surroundings
        batch = self._index.take(names, everything=self._memory.needs_all(around, self._now))
        if batch is None:
            return
        decided = decide(self._rules, self._memory, batch.evidence, around, monotonic=self._now, wall=self._now)
        self._memory.keep(decided)
        for gate, nodes in decided.changed.items():
            decisions = decided.snapshot.gates[gate].decisions
            for node in nodes:
                self._note(gate, node, decisions.get(node))
        next_at = min(batch.due_at, self._memory.due_at(self._now, self._now))
        self._due_at = min(self._due_at, max(next_at, self._now + APART_S))

    def _note(self, gate: str, node: str, decision: Decision | None) -> None:
        """Notes a transition. decision: None for a deleted node, which counts as open."""
        noted = ("", "") if decision is None else (decision.reason, decision.held_by.value)
        if self._decisions.get((gate, node)) != noted:
            self._decisions[gate, node] = noted
            self._transitions.append(
                Transition(self._now, gate, node, *noted, "" if decision is None else decision.note)
            )

    # ---- a line

    def _take(self, line: Line) -> None:
        found = self._stores.get(line.of)
        if found is None:
            return  # this configuration does not use the list
        kind, replace, upsert, remove = found
        for watch in self._watches.values():
            watch.last_word = self._now
        try:
            items = [msgspec.json.decode(one, type=kind) for one in line.objects]
        except msgspec.DecodeError as e:
            raise RecordingError(f"an object of {line.of} cannot be read ({e}); record again") from e
        if line.do == "replace":
            self._missing.discard(line.of)
            if line.of in self._watches:
                self._watches[line.of].list_began = self._now
            replace(items)
        else:
            for item in items:
                (upsert if line.do == "upsert" else remove)(item)

    def _all_stores(self) -> dict[str, tuple[Any, Callable[..., None], Callable[..., None], Callable[..., None]]]:
        index, around = self._index, self._around
        stores: dict[str, tuple[Any, Callable[..., None], Callable[..., None], Callable[..., None]]] = {
            recording.NODES: (observed.Node, index.replace_nodes, index.upsert_node, index.remove_node),
            recording.ORDERS: (objects.ConfigMap, around.replace_orders, around.upsert_orders, around.remove_orders),
        }
        for of, beats in self._beats.items():
            stores[of] = (observed.Lease, beats.replace, beats.upsert, beats.remove)
        for pods in index.lists.values():
            stores[recording.of_pods(*pods)] = (observed.Pod, *_of(index, pods))
        for namespace in around.namespaces:
            stores[recording.of_daemon_sets(namespace)] = (
                objects.DaemonSet,
                lambda items, where=namespace: around.replace_daemon_sets(where, items),
                around.upsert_daemon_set,
                around.remove_daemon_set,
            )
        return stores


def _of(index: Index, pods: PodList) -> tuple[Callable[..., None], Callable[..., None], Callable[..., None]]:
    return (
        lambda items: index.replace_pods(pods, items),
        lambda item: index.upsert_pod(pods, item),
        lambda item: index.remove_pod(pods, item),
    )
