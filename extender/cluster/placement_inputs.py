"""Inputs of decisions that are not of a node: where DaemonSets can run, and the orders of operators.

These are at most three lists of small objects. While the API server is away the last known ones stay. None is required:
a missing right must not keep an extender from answering; see `missing`.
"""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence

from extender.cluster import objects
from extender.policy.evidence import Surroundings
from extender.policy.orders import Orders, parse_orders
from extender.policy.placement import Placement

log = logging.getLogger(__name__)

ORDERS = "orders"  # the name of its cache


class PlacementInputs:
    """The current inputs. surroundings: the newest. missing: lists that have not come yet, by the names of their
    caches.

    daemon_sets: by gate, namespace and name of its DaemonSet. config_map: name of the orders' ConfigMap, None = no
    orders. on_change(): as of Index.
    """

    def __init__(
        self,
        *,
        daemon_sets: Mapping[str, tuple[str, str]],
        config_map: str | None,
        on_change: Callable[[], None],
    ) -> None:
        self._daemon_sets = daemon_sets
        self.config_map = config_map
        self._on_change = on_change
        self._lock = threading.Lock()
        self._placements: dict[tuple[str, str], Placement] = {}
        self._orders = Orders()
        # Read without the lock: a change makes another object.
        self.surroundings = self._made()
        self.missing: frozenset[str] = frozenset(
            {*(daemon_sets_of(namespace) for namespace in self.namespaces), *([ORDERS] if config_map else ())}
        )

    @property
    def namespaces(self) -> Sequence[str]:
        """Returns the namespaces in which DaemonSets are listed."""
        return tuple(dict.fromkeys(namespace for namespace, _ in self._daemon_sets.values()))

    # Stores of the reflectors.

    def replace_daemon_sets(self, namespace: str, daemon_sets: Sequence[objects.DaemonSet]) -> None:
        with self._lock:
            others = {key: placement for key, placement in self._placements.items() if key[0] != namespace}
            self._placements = others | dict(map(_placed, filter(self._named, daemon_sets)))
            changed = self._listed(daemon_sets_of(namespace))
        self._tell(changed)

    def upsert_daemon_set(self, daemon_set: objects.DaemonSet) -> None:
        if not self._named(daemon_set):
            return
        key, placement = _placed(daemon_set)
        with self._lock:
            self._placements[key] = placement
            changed = self._remade()
        self._tell(changed)

    def remove_daemon_set(self, daemon_set: objects.DaemonSet) -> None:
        with self._lock:
            self._placements.pop(_key(daemon_set), None)
            changed = self._remade()
        self._tell(changed)

    def replace_orders(self, config_maps: Sequence[objects.ConfigMap]) -> None:
        """Takes the ConfigMaps. An empty list counts as read: there are no orders."""
        data = next((one.entries for one in config_maps if one.metadata.name == self.config_map), None)
        orders = parse_orders(data)
        with self._lock:
            self._orders, before = orders, self._orders
            changed = self._listed(ORDERS)
        self._report(before, orders)
        self._tell(changed)

    def upsert_orders(self, config_map: objects.ConfigMap) -> None:
        self._order(config_map, config_map.entries)

    def remove_orders(self, config_map: objects.ConfigMap) -> None:
        self._order(config_map, None)

    # Inside.

    def _order(self, config_map: objects.ConfigMap, data: Mapping[str, object] | None) -> None:
        if config_map.metadata.name != self.config_map:
            return
        orders = parse_orders(data)
        with self._lock:
            self._orders, before = orders, self._orders
            changed = self._remade()
        self._report(before, orders)
        self._tell(changed)

    def _named(self, daemon_set: objects.DaemonSet) -> bool:
        return _key(daemon_set) in self._daemon_sets.values()

    def _listed(self, what: str) -> bool:
        first = what in self.missing
        self.missing -= {what}
        return self._remade() or first

    def _remade(self) -> bool:
        """Makes the surroundings again. Returns whether they differ."""
        before, made = self.surroundings, self._made()
        if made == before:
            return False
        self.surroundings = made
        return True

    def _made(self) -> Surroundings:
        return Surroundings({gate: self._placements.get(key) for gate, key in self._daemon_sets.items()}, self._orders)

    def _report(self, before: Orders, after: Orders) -> None:
        for fault in after.faults:
            if fault not in before.faults:
                log.warning("order ignored", extra={"configmap": self.config_map, "error": fault})

    def _tell(self, changed: bool) -> None:
        if changed:
            self._on_change()


def daemon_sets_of(namespace: str) -> str:
    """Returns the name of this list, which is its cache's."""
    return f"daemonsets/{namespace}"


def _key(daemon_set: objects.DaemonSet) -> tuple[str, str]:
    return daemon_set.metadata.namespace, daemon_set.metadata.name


def _placed(daemon_set: objects.DaemonSet) -> tuple[tuple[str, str], Placement]:
    return _key(daemon_set), objects.placement(daemon_set)
