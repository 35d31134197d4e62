"""Pure: orders of operators. A ConfigMap's `data` in, orders out; every replica reads the same.

    id: {order: hold, scope: {node: n-007}, author: anna, reason: swapping its disk, expires: "2026-11-23T08:00:00Z"}

    hold     closed, whatever is observed   exempt   open, whatever is observed
    pause    no new closures                arm, disarm   of a gate: it refuses, or only counts what it would refuse

A value is a YAML or JSON mapping of few known keys. An unusable value is reported in one line and ignored; the others
keep their effect. Of several orders for a node the one with the narrowest scope applies. A later disarm of all gates
also disarms a gate that was armed by name, because it is the emergency exit.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from component import settings
from component.settings import Section, SettingsError
from component.text import one_line

ENTRIES_MAX = 1000
VALUE_LIMIT = 2048  # characters of one entry
ID_LIMIT = 63
FAULTS_MAX = 20  # lines; further faults are counted
AUTHOR_LIMIT = 64
REASON_LIMIT = 200
_NEVER = 253_370_764_800.0  # the year 9999
_LABEL = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z"
_ID = re.compile(_LABEL)


class Kind(StrEnum):
    """The kind of an order. Of those for nodes, the earlier one wins at equal scope."""

    HOLD = "hold"
    EXEMPT = "exempt"
    PAUSE = "pause"
    DISARM = "disarm"
    ARM = "arm"


_OF_NODES = (Kind.HOLD, Kind.EXEMPT, Kind.PAUSE)

GateName = Annotated[str, Meta(pattern=_LABEL, description="the name of a gate")]
NodeName = Annotated[str, Meta(pattern=r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\Z", description="the name of a node")]
PoolName = Annotated[
    str,
    Meta(pattern=r"^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?\Z", description="the value of a pool's label"),
]
Free = Annotated[str, Meta(max_length=VALUE_LIMIT, description="text")]
Time = Annotated[datetime, Meta(tz=True, description='an RFC 3339 time, as "2026-11-23T08:00:00Z"')]


class Scope(Section, frozen=True):
    """What an order is for: all given keys must match; without any it is the cluster. A gate may be given with a node
    or pool."""

    gate: GateName | None = None
    pool: PoolName | None = None
    node: NodeName | None = None

    def __post_init__(self) -> None:
        if self.pool is not None and self.node is not None:
            raise ValueError("pool: is given with a node, allowed: one of the two")


class Entry(Section, frozen=True):
    """One value of the ConfigMap. expires: null = never."""

    order: Literal["hold", "exempt", "pause", "disarm", "arm"]
    scope: Scope = Scope()
    author: Free = ""
    reason: Free = ""
    created: Time | None = None
    expires: Time | None = None

    def __post_init__(self) -> None:
        if Kind(self.order) not in _OF_NODES and (self.scope.pool is not None or self.scope.node is not None):
            raise ValueError(f"scope: names nodes, allowed with {self.order}: a gate, or {{}} for all gates")


@dataclass(frozen=True, slots=True)
class Order:
    """An order. gate, pool, node: "" = any. author, reason: one line each. created, expires: wall seconds; infinite =
    never."""

    id: str
    kind: Kind
    gate: str = ""
    pool: str = ""
    node: str = ""
    author: str = ""
    reason: str = ""
    created: float = -math.inf
    expires: float = math.inf

    def in_force(self, wall: float) -> bool:
        return wall < self.expires

    @property
    def scope(self) -> str:
        """Returns the scope in words, as `gate health on node n-007`."""
        where = f"node {self.node}" if self.node else f"pool {self.pool}" if self.pool else ""
        gate = f"gate {self.gate}" if self.gate else ""
        return " on ".join(filter(None, (gate, where))) or "the cluster"


_Place = tuple[str, str, str]  # gate, pool, node of an order


@dataclass(frozen=True, slots=True)
class Orders:
    """All orders. entries: by id. faults: one line for each ignored entry. Objects are equal if both are."""

    entries: tuple[Order, ...] = ()
    faults: tuple[str, ...] = ()
    _of_nodes: Mapping[_Place, tuple[Order, ...]] = field(init=False, compare=False, repr=False)
    _arming: Mapping[_Place, tuple[Order, ...]] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        of_nodes = _by_place(order for order in self.entries if order.kind in _OF_NODES)
        arming = _by_place(order for order in self.entries if order.kind not in _OF_NODES)
        object.__setattr__(self, "_of_nodes", of_nodes)
        object.__setattr__(self, "_arming", arming)

    def in_force(self, wall: float) -> tuple[Order, ...]:
        return tuple(order for order in self.entries if order.in_force(wall))

    def expired(self, wall: float) -> tuple[Order, ...]:
        return tuple(order for order in self.entries if not order.in_force(wall))

    def next_expiry(self, wall: float) -> float:
        """Returns the wall seconds when the next order ends, infinite if none does."""
        return min((order.expires for order in self.entries if order.in_force(wall)), default=math.inf)

    def for_node(self, gate: str, node: str, pool: str, wall: float) -> Order | None:
        """Returns the hold, exempt or pause that applies to a node at a gate. pool: "" = in none.

        The narrowest scope wins: node, pool, gate, cluster; with a named gate before without. Then hold, exempt, pause;
        then the one that lasts longest.
        """
        if not self._of_nodes:
            return None
        places = [(gate, "", node), ("", "", node)]
        if pool:
            places += [(gate, pool, ""), ("", pool, "")]
        return _first(self._of_nodes, (*places, (gate, "", ""), _CLUSTER), wall)

    def arming(self, gate: str, wall: float) -> Order | None:
        """Returns the arm or disarm that applies to a gate, None = as configured. An order for the gate wins over one
        for all gates, unless it is an arm that is older than the disarm. Then the newest wins; then disarm."""
        if not self._arming:
            return None
        own, every = (_first(self._arming, (place,), wall) for place in ((gate, "", ""), _CLUSTER))
        if own is None or every is None:
            return own or every
        undone = own.kind is Kind.ARM and every.kind is Kind.DISARM
        return every if undone and (every.created >= own.created or math.isinf(every.created)) else own


_CLUSTER = ("", "", "")


def _by_place(orders: Iterable[Order]) -> dict[_Place, tuple[Order, ...]]:
    """Sorts the orders of each place so that the winner is the first."""
    found: dict[_Place, list[Order]] = {}
    for order in orders:
        found.setdefault((order.gate, order.pool, order.node), []).append(order)
    return {place: tuple(sorted(there, key=_rank)) for place, there in found.items()}


def _rank(order: Order) -> tuple[float, int, float, str]:
    newest = 0.0 if order.kind in _OF_NODES else -order.created
    return newest, list(Kind).index(order.kind), -order.expires, order.id


def _first(places: Mapping[_Place, tuple[Order, ...]], where: Iterable[_Place], wall: float) -> Order | None:
    for place in where:
        for order in places.get(place, ()):
            if order.in_force(wall):
                return order
    return None


def parse_orders(data: Mapping[str, object] | None) -> Orders:
    """Reads the ConfigMap's `data`; never raises. Of more than ENTRIES_MAX entries the first by id count."""
    entries: list[Order] = []
    faults: list[str] = []
    ids = sorted(data or ())
    for id_ in ids[:ENTRIES_MAX]:
        try:
            entries.append(parse_order(id_, (data or {})[id_]))
        except SettingsError as e:
            faults.append(str(e))
    if len(ids) > ENTRIES_MAX:
        faults.insert(
            0, f"{len(ids)} orders, allowed: {ENTRIES_MAX}; ignored from {one_line(ids[ENTRIES_MAX], ID_LIMIT)} on"
        )
    more = len(faults) - FAULTS_MAX
    if more > 0:
        faults[FAULTS_MAX:] = [f"and {more} more that cannot be used"]
    return Orders(tuple(entries), tuple(faults))


def parse_order(id_: str, value: object) -> Order:
    """Reads one entry. Raises SettingsError: one line that begins with the id."""
    try:
        if not _ID.match(id_):
            raise SettingsError(f"is no id, allowed: a-z, 0-9 and -, at most {ID_LIMIT}")
        if not isinstance(value, str) or len(value) > VALUE_LIMIT:
            raise SettingsError(f"is no text of at most {VALUE_LIMIT} characters")
        found = _order(id_, value)
        if isinstance(found, str):
            raise SettingsError(found)
        return found
    except SettingsError as e:
        raise SettingsError(f"{one_line(id_, ID_LIMIT)}: {one_line(e)}") from e


@lru_cache(ENTRIES_MAX)  # a change of one entry does not cause all others to be parsed again, invalid ones included
def _order(id_: str, value: str) -> Order | str:
    """Returns the order, or what is wrong with it."""
    try:
        entry = settings.convert(_mapping(value), Entry)
    except SettingsError as e:
        return str(e)
    scope = entry.scope
    return Order(
        id_,
        Kind(entry.order),
        gate=scope.gate or "",
        pool=scope.pool or "",
        node=scope.node or "",
        author=one_line(entry.author, AUTHOR_LIMIT),
        reason=one_line(entry.reason, REASON_LIMIT),
        created=-math.inf if entry.created is None else entry.created.timestamp(),
        expires=math.inf if entry.expires is None else _ending(entry.expires.timestamp()),
    )


def _ending(expires: float) -> float:
    """Returns the end of an order. Years near 9999 mean never, and years before computers mean ended: datetime cannot
    convert either between time zones."""
    return math.inf if expires >= _NEVER else max(0.0, expires)


def _mapping(value: str) -> object:
    """Reads a mapping. JSON, as readygate's own command writes it, is read fast. The YAML reader reads everything else,
    also duplicate keys and lone surrogates, and reports the position of a fault."""
    try:
        found = json.loads(value, object_pairs_hook=_each_key_once)
        msgspec.json.encode(found)  # a lone surrogate passes as text until here
    except (ValueError, OverflowError, RecursionError):
        return settings.document(value)
    return found


def _each_key_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("duplicate key")
    return found
