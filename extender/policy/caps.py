"""Pure: how many nodes may be closed, and which ones: those that have been bad for longest.

A cap limits the damage of a wrong check or a bad image. It never delays a release: a healed node makes room for the
next. All replicas compute the same, because the objects show which node was bad first.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Limit:
    """A share in percent, or a number of nodes; exactly one of them is given."""

    percent: int | None = None
    absolute: int | None = None

    def of(self, count: int) -> int:
        """Returns how many of `count` nodes may be closed. A share is rounded down, but one of two nodes may be
        closed."""
        if self.percent is not None:
            return max(1, count * self.percent // 100) if count >= 2 else 0
        return min(count, self.absolute or 0)

    def __str__(self) -> str:
        return f"{self.absolute}" if self.percent is None else f"{self.percent}%"


@dataclass(frozen=True, slots=True)
class Caps:
    """Limits of all that armed gates close together; None = none.

    leave_in_pool: nodes that stay open in each pool. pool_label, zone_label: labels of nodes; nodes without the label
    are one pool, and one zone. new_node_s: a younger node that was never good is not in use yet, so it counts on
    neither side.
    """

    cluster: Limit | None = None
    zone: Limit | None = None
    pool: Limit | None = None
    leave_in_pool: int = 0
    pool_label: str = "readygate.dev/pool"
    zone_label: str = "topology.kubernetes.io/zone"
    new_node_s: float = 600.0

    @property
    def off(self) -> bool:
        return self.cluster is None and self.zone is None and self.pool is None and not self.leave_in_pool


@dataclass(frozen=True, slots=True)
class Place:
    """The values of pool and zone label of a node, "" = without."""

    pool: str = ""
    zone: str = ""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many nodes count: in all, by pool, by zone."""

    total: int = 0
    pools: Mapping[str, int] = field(default_factory=dict)
    zones: Mapping[str, int] = field(default_factory=dict)

    def changed(self, left: Iterable[Place], came: Iterable[Place]) -> "Sizes":
        """Returns the sizes after these nodes have left and come."""
        total, pools, zones = self.total, dict(self.pools), dict(self.zones)
        for places, one in ((left, -1), (came, 1)):
            for place in places:
                total += one
                pools[place.pool] = pools.get(place.pool, 0) + one
                zones[place.zone] = zones.get(place.zone, 0) + one
        return Sizes(total, {k: n for k, n in pools.items() if n}, {k: n for k, n in zones.items() if n})


def beyond(limit: Limit | None, size: int, oldest_first: Iterable[str]) -> list[str]:
    """Returns the nodes that may not be closed."""
    names = list(oldest_first)
    return [] if limit is None else names[limit.of(size) :]


def beyond_caps(caps: Caps, sizes: Sizes, oldest_first: Iterable[tuple[str, Place]]) -> dict[str, str]:
    """Returns the nodes that may not be closed, each with the cap in words. A node beyond the cap of its pool takes no
    place in the cap of the cluster."""
    if caps.off:
        return {}
    held: dict[str, str] = {}
    cluster = math.inf if caps.cluster is None else caps.cluster.of(sizes.total)
    total, pools, zones = 0, dict[str, int](), dict[str, int]()
    for name, place in oldest_first:
        in_pool, in_zone = pools.get(place.pool, 0), zones.get(place.zone, 0)
        pool_size = sizes.pools.get(place.pool, 0)
        if total >= cluster:
            held[name] = f"cap of the cluster: {caps.cluster}"
        elif in_pool >= pool_size - caps.leave_in_pool:
            held[name] = f"{caps.leave_in_pool} left open in {_pool(place)}"
        elif caps.pool is not None and in_pool >= caps.pool.of(pool_size):
            held[name] = f"cap of {_pool(place)}: {caps.pool}"
        elif caps.zone is not None and in_zone >= caps.zone.of(sizes.zones.get(place.zone, 0)):
            held[name] = f"cap of zone {place.zone or 'none'}: {caps.zone}"
        else:
            total, pools[place.pool], zones[place.zone] = total + 1, in_pool + 1, in_zone + 1
    return held


def room_for(caps: Caps, sizes: Sizes, closing: Collection[Place]) -> bool:
    """Returns whether all of these may be closed, with the same result as beyond_caps()."""
    if caps.off or not closing:
        return True
    if caps.cluster is not None and len(closing) > caps.cluster.of(sizes.total):
        return False
    pools: dict[str, int] = {}
    zones: dict[str, int] = {}
    for place in closing:
        pools[place.pool] = pools.get(place.pool, 0) + 1
        zones[place.zone] = zones.get(place.zone, 0) + 1
    for pool, count in pools.items():
        size = sizes.pools.get(pool, 0)
        if count > size - caps.leave_in_pool or (caps.pool is not None and count > caps.pool.of(size)):
            return False
    return caps.zone is None or all(count <= caps.zone.of(sizes.zones.get(zone, 0)) for zone, count in zones.items())


def _pool(place: Place) -> str:
    return f"pool {place.pool}" if place.pool else "the nodes without a pool"
