"""Writers of condition and Events, wired by the settings: one replica writes about Nodes, and the replica that answered
writes about Pods."""

import math
import time
from collections.abc import Callable, Mapping

from component.lifecycle import Service
from extender.config.outlets import Outlets
from extender.outlets.condition import Conditions
from extender.outlets.events import Events, Refused
from extender.outlets.leader import Leader
from extender.outlets.observed_conditions import ObservedConditions
from extender.policy.decision import GateState
from kube import contract
from kube.client import Client


class Writers:
    """All writers. services: their threads, none if all is disabled. marks: filled from the observed Nodes.

    gates(): of the newest snapshot, None while it must not be used. Each writer has its own connections, so that none
    waits for another.
    """

    def __init__(
        self,
        settings: Outlets,
        client: Client,
        *,
        gates: Callable[[], Mapping[str, GateState] | None],
        namespace: str = contract.NAMESPACE,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.marks = ObservedConditions()
        self.services: list[Service] = []
        self._leader: Leader | None = None
        self._conditions: Conditions | None = None
        self._events: Events | None = None
        wanted = settings.node_condition
        if not (wanted.enabled or settings.events.enabled):
            return
        self._leader = Leader(client.branch(), client.branch(), namespace=namespace, monotonic=monotonic)
        self.services.append(self._leader)
        if settings.events.enabled:
            per_second = settings.events.per_second
            self._events = Events(client.branch(), leads=self._leader.leads, per_second=per_second, monotonic=monotonic)
            self.services.append(self._events)
        self._conditions = Conditions(
            client.branch(),
            self.marks,
            gates=gates,
            leads=self._leader.leads,
            refresh_s=wanted.refresh_seconds or math.inf,
            per_second=wanted.per_second,
            write=wanted.enabled,
            on_change=(lambda *_: None) if self._events is None else self._events.node_changed,
            monotonic=monotonic,
        )
        self.services.append(self._conditions)

    def refused_everywhere(self, attempt: Refused) -> None:
        """A filter call was answered without a survivor. Never waits."""
        if self._events is not None:
            self._events.refused_everywhere(attempt)

    @property
    def leads(self) -> bool | None:
        """Whether this replica leads; None if nothing needs a leader."""
        return None if self._leader is None else self._leader.leads()

    def counts(self) -> dict[str, tuple[dict[str, int], int]]:
        """By name of the outlet: writes by result, and the number that wait."""
        found = {}
        if self._leader is not None:
            found["lease"] = dict(self._leader.counters), 0
        for name, outlet in (("nodeCondition", self._conditions), ("events", self._events)):
            if outlet is not None:
                found[name] = dict(outlet.counters), outlet.waiting
        return found
