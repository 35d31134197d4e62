"""Which lists are kept: the reflectors that fill the index, what is around the nodes, and the volumes.

The Nodes, each list of health pods (one however many gates read it), the Leases; then DaemonSets, orders, and what
tells of volumes, of devices, and of how pods start. Without the word of the first two kinds no verdict is given. All
others are not required: where they cannot be had, what was last known stays, and at a start they are waited for only as
long as Leases are.
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
LEASES_REST_S = 0.25  # hundreds a second in a large cluster, and ages are looked at once a second
# A right that is missing does not come by waiting for it.
NOT_AWAITED = frozenset({"errors.Forbidden", "errors.NotFound", "errors.Unauthorized"})

T = TypeVar("T", bound=HasMetadata)


class Cache(Service, Protocol):
    """What is asked of a reflector here."""

    @property
    def synced(self) -> bool: ...
    @property
    def counters(self) -> Mapping[str, int]: ...
    @property
    def lag_s(self) -> float | None: ...
    def age_s(self, monotonic: float, /) -> float: ...


class Nodes(Protocol):
    """Who else is told of the Nodes."""

    def replace(self, nodes: Sequence[observed.Node], /) -> None: ...
    def upsert(self, node: observed.Node, /) -> None: ...
    def remove(self, node: observed.Node, /) -> None: ...


class _Store(NamedTuple):
    """Three methods as the store of one reflector."""

    replace: Callable[[Sequence[Any]], None]
    upsert: Callable[[Any], None]
    remove: Callable[[Any], None]


class Watches:
    """caches: by name. required: those without whose word no verdict is given. leases: the reflector of Leases, once
    heartbeats() was called; agents: that of the agents' ones, alike; starts: that of pods that start. Starts nothing.
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
        """And their health pods. also: is told of the Nodes before the index is, so that it knows all that is decided
        on."""
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
        """The Leases of the agents on the nodes, in the namespace of their health pods."""
        leases = paths.leases(namespace)
        self.agent_reader = LeaseReader(
            self._lister(leases, observed.Lease), agents, look_every_s=AGENTS_LOOK_S, monotonic=self._monotonic
        )
        store = _Store(agents.replace, agents.upsert, agents.remove)
        self.agents = self._keep(AGENTS, self._lister(leases, observed.Lease), store, rest_s=LEASES_REST_S)

    def around(self, around: PlacementInputs, namespace: str = contract.NAMESPACE) -> None:
        """DaemonSets, and the orders in our own namespace."""
        for where in around.namespaces:
            store = _Store(
                partial(around.replace_daemon_sets, where), around.upsert_daemon_set, around.remove_daemon_set
            )
            lister = self._lister(paths.daemon_sets(where), objects.DaemonSet)
            self._keep(daemon_sets_of(where), lister, store)
        if around.config_map is not None:
            store = _Store(around.replace_orders, around.upsert_orders, around.remove_orders)
            selector = f"metadata.name={around.config_map}"
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
        """In all namespaces."""
        store = _Store(starts.replace, starts.upsert, starts.remove)
        lister = self._lister(paths.pods(), StartingPod, field_selector=SELECTOR)
        self.starts = self._keep(STARTS, lister, store)

    def starts_ahead_s(self) -> float | None:
        """As Reflector.list_ahead_s, of the pods that start."""
        return None if self.starts is None else self.starts.list_ahead_s

    def heard_at(self) -> float:
        """When one of them was last told how things are, among those that often are; monotonic seconds."""
        words = (one.last_word for one in (self.starts, self.leases) if one is not None)
        return max((word for word in words if word is not None), default=-math.inf)

    def awaited(self, missing: Collection[str]) -> bool:
        """Whether one of these, whose first list has not come, may come soon."""
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
