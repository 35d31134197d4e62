"""The reflectors that fill the index, the inputs of placement, volumes, devices and starts of pods.

They list and watch the Nodes, each list of health pods (one list for all gates that use it) and the Leases; then
DaemonSets, orders, and what identifies volumes, devices and starts of pods. No verdict is given without the first two.
All others are optional: if they cannot be read, the last known state stays, and a start waits for them only as long as
for Leases.
"""

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

from component.lifecycle import Service
from extender.cluster import objects, observed
from extender.cluster.devices import CLAIM_TEMPLATES, DEVICE_CLASSES, RESOURCE_CLAIMS, Devices
from extender.cluster.heartbeats import Heartbeats
from extender.cluster.index import Index
from extender.cluster.lease_reader import LeaseReader
from extender.cluster.placement_inputs import ORDERS, PlacementInputs, daemon_sets_of
from extender.cluster.pod_starts import SELECTOR, STARTS, PodStarts, StartingPod
from extender.cluster.volumes import CLAIMS, STORAGE_CLASSES, VOLUMES, Volumes
from kube import contract, paths
from kube.client import Client
from kube.listing import HasMetadata
from kube.reflector import ListerWatcher, Reflector
from kube.server_health import ServerHealth
from kube.staleness import News

NODES, LEASES, AGENTS = "nodes", "leases", "agents"
AGENTS_LOOK_S = 1.0  # their ages count by readings that are at most 4 s apart
LEASES_REST_S = 0.25  # a large cluster has hundreds a second, and ages are checked once a second
# Waiting does not grant a missing right.
NOT_AWAITED = frozenset({"errors.Forbidden", "errors.NotFound", "errors.Unauthorized"})

T = TypeVar("T", bound=HasMetadata)


class Cache(Service, Protocol):
    """The part of a reflector that is used here."""

    @property
    def synced(self) -> bool: ...
    @property
    def counters(self) -> Mapping[str, int]: ...
    @property
    def lag_s(self) -> float | None: ...
    def age_s(self, monotonic: float, /) -> float: ...


class Nodes(Protocol):
    """Another receiver of the Nodes."""

    def replace(self, nodes: Sequence[observed.Node], /) -> None: ...
    def upsert(self, node: observed.Node, /) -> None: ...
    def remove(self, node: observed.Node, /) -> None: ...


class _Store(NamedTuple):
    """Three methods as the store of one reflector."""

    replace: Callable[[Sequence[Any]], None]
    upsert: Callable[[Any], None]
    remove: Callable[[Any], None]


class Watches:
    """All reflectors. Starts nothing.

    caches: by name. required: without their answers no verdict is given. leases: the reflector of kubelets' Leases,
    after heartbeats(); agents: that of agents' Leases; starts: that of pods that start.
    """

    def __init__(self, client: Client, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.caches: dict[str, Cache] = {}
        self.required: tuple[str, ...] = ()
        self.leases: Reflector[observed.Lease] | None = None
        self.lease_reader: LeaseReader | None = None
        self.agents: Reflector[observed.Lease] | None = None
        self.agent_reader: LeaseReader | None = None
        self.starts: Reflector[StartingPod] | None = None
        self._client = client
        self._peers = ServerHealth()
        self._monotonic = monotonic

    def nodes(self, index: Index, also: Nodes | None = None) -> None:
        """Adds the Nodes and their health pods. also: receives the Nodes before the index, so that it knows every
        decided node."""
        for name, pods in index.lists.items():
            store = _Store(
                partial(index.replace_pods, pods), partial(index.upsert_pod, pods), partial(index.remove_pod, pods)
            )
            lister = self._lister(paths.pods(pods.namespace), observed.Pod, label_selector=pods.label_selector)
            self._keep(name, lister, store, stated=News(_uid, observed.pod_written))
        store = _Store(index.replace_nodes, index.upsert_node, index.remove_node)
        if also is not None:
            store = _Store(
                _both(also.replace, store.replace), _both(also.upsert, store.upsert), _both(also.remove, store.remove)
            )
        lister_of_nodes = self._lister(paths.nodes(), observed.Node)
        self._keep(NODES, lister_of_nodes, store, stated=News(_uid, observed.node_written))
        self.required = tuple(self.caches)

    def heartbeats(self, kubelets: Heartbeats) -> None:
        leases = paths.leases(contract.NAMESPACE_NODE_LEASE)
        self.lease_reader = LeaseReader(self._lister(leases, observed.Lease), kubelets, monotonic=self._monotonic)
        self.leases = self._keep(
            LEASES,
            self._lister(leases, observed.Lease),
            _Store(kubelets.replace, kubelets.upsert, kubelets.remove),
            rest_s=LEASES_REST_S,
            stated=lambda lease: lease.spec.renew_time,
        )

    def heartbeats_of_agents(self, agents: Heartbeats, namespace: str) -> None:
        """Adds the Leases of the agents, in the namespace of their health pods."""
        leases = paths.leases(namespace)
        self.agent_reader = LeaseReader(
            self._lister(leases, observed.Lease), agents, look_every_s=AGENTS_LOOK_S, monotonic=self._monotonic
        )
        store = _Store(agents.replace, agents.upsert, agents.remove)
        self.agents = self._keep(AGENTS, self._lister(leases, observed.Lease), store, rest_s=LEASES_REST_S)

    def placement_inputs(self, inputs: PlacementInputs, namespace: str = contract.NAMESPACE) -> None:
        """Adds DaemonSets, and the orders in readygate's namespace."""
        for where in inputs.namespaces:
            store = _Store(
                partial(inputs.replace_daemon_sets, where),
                inputs.upsert_daemon_set,
                inputs.remove_daemon_set,
            )
            lister = self._lister(paths.daemon_sets(where), objects.DaemonSet)
            self._keep(daemon_sets_of(where), lister, store)
        if inputs.config_map is not None:
            store = _Store(inputs.replace_orders, inputs.upsert_orders, inputs.remove_orders)
            selector = f"metadata.name={inputs.config_map}"
            path = paths.config_maps(namespace)
            self._keep(ORDERS, self._lister(path, objects.ConfigMap, field_selector=selector), store)

    def volumes(self, volumes: Volumes) -> None:
        store = _Store(volumes.replace_claims, volumes.upsert_claim, volumes.remove_claim)
        self._keep(CLAIMS, self._lister(paths.persistent_volume_claims(), objects.Claim), store)
        store = _Store(volumes.replace_volumes, volumes.upsert_volume, volumes.remove_volume)
        self._keep(VOLUMES, self._lister(paths.persistent_volumes(), objects.Volume), store)
        store = _Store(volumes.replace_classes, volumes.upsert_class, volumes.remove_class)
        self._keep(STORAGE_CLASSES, self._lister(paths.storage_classes(), objects.StorageClass), store)

    def devices(self, devices: Devices) -> None:
        store = _Store(devices.replace_claims, devices.upsert_claim, devices.remove_claim)
        self._keep(RESOURCE_CLAIMS, self._lister(paths.resource_claims(), objects.ResourceClaim), store)
        store = _Store(devices.replace_templates, devices.upsert_template, devices.remove_template)
        lister = self._lister(paths.resource_claim_templates(), objects.ResourceClaimTemplate)
        self._keep(CLAIM_TEMPLATES, lister, store)
        store = _Store(devices.replace_classes, devices.upsert_class, devices.remove_class)
        self._keep(DEVICE_CLASSES, self._lister(paths.device_classes(), objects.DeviceClass), store)

    def pod_starts(self, starts: PodStarts) -> None:
        """Adds pods that start, of all namespaces."""
        store = _Store(starts.replace, starts.upsert, starts.remove)
        lister = self._lister(paths.pods(), StartingPod, field_selector=SELECTOR)
        self.starts = self._keep(STARTS, lister, store)

    def starts_ahead_s(self) -> float | None:
        """As Reflector.list_ahead_s, of the pods that start."""
        return None if self.starts is None else self.starts.list_ahead_s

    def answered_at(self) -> float:
        """Returns the monotonic time of the last answer to one of the frequent watches."""
        words = (one.last_word for one in (self.starts, self.leases) if one is not None)
        return max((word for word in words if word is not None), default=-math.inf)

    def awaited(self, missing: Collection[str]) -> bool:
        """Returns whether the first list of one of these may come soon."""
        return any(NOT_AWAITED.isdisjoint(self.caches[name].counters) for name in missing)

    def _lister(
        self, path: str, item: type[T], *, label_selector: str = "", field_selector: str = ""
    ) -> ListerWatcher[T]:
        return ListerWatcher(self._client, path, item, label_selector=label_selector, field_selector=field_selector)

    def _keep(
        self,
        name: str,
        lister: ListerWatcher[T],
        store: _Store,
        *,
        rest_s: float = 0.01,
        stated: Callable[[T], str | None] | None = None,
    ) -> Reflector[T]:
        reflector = Reflector(lister, store, name=name, peers=self._peers, rest_s=rest_s, stated=stated)
        self.caches[name] = reflector
        return reflector


def _uid(item: observed.Pod | observed.Node) -> str:
    return item.metadata.uid


def _both(first: Callable[[Any], None], second: Callable[[Any], None]) -> Callable[[Any], None]:
    def call(value: Any) -> None:  # noqa: ANN401 - of any kind
        first(value)
        second(value)

    return call
