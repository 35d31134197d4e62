"""Converts an operator's order to an entry of the ConfigMap: scope, expiry, id, value; and back to words. Pure."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import msgspec

from component.settings import SettingsError
from component.text import one_line
from extender.policy.orders import AUTHOR_LIMIT, ID_LIMIT, REASON_LIMIT, Kind, Order, Orders, parse_order
from kube.times import format_time

CONFIG_MAP = "readygate-orders"
LONGEST_S = 366 * 86400.0
OF_NODES = (Kind.HOLD, Kind.EXEMPT, Kind.PAUSE)  # at the same scope, the first takes precedence
_UNITS_S = (86400, 3600, 60, 1)
_DURATION = re.compile(r"(?:(\d{1,4})d)?(?:(\d{1,4})h)?(?:(\d{1,5})m)?(?:(\d{1,6})s)?\Z", re.ASCII)
DOES = {
    Kind.HOLD: "closed, whatever its health",
    Kind.EXEMPT: "open, whatever its health",
    Kind.PAUSE: "no more nodes close",
    Kind.ARM: "refuses nodes",
    Kind.DISARM: "refuses nothing, and counts what it would refuse",
}


@dataclass(frozen=True)
class Wanted:
    """An order as the operator gave it."""

    kind: Kind
    gate: str = ""
    pool: str = ""
    node: str = ""
    author: str = ""
    reason: str = ""
    expires: float | None = None  # seconds since the epoch, None for never


def duration_s(text: str) -> float:
    """Parses `90s`, `30m`, `2h`, `1h30m` or `3d`. Raises ValueError, one line."""
    found = _DURATION.match(text)
    if not text or found is None:
        raise ValueError(f'"{one_line(text, 32)}" is not a duration; write 30m, 2h, 1h30m or 3d')
    numbers = (int(number or 0) for number in found.groups())
    seconds = float(sum(number * unit_s for number, unit_s in zip(numbers, _UNITS_S, strict=True)))
    if not 0 < seconds <= LONGEST_S:
        raise ValueError(f'"{text}" is not between a second and a year')
    return seconds


def moment_s(text: str, wall: float) -> float:
    """Parses an RFC 3339 time, a local time as 2026-11-23T08:00, or 08:00 for the next time the clock shows it.

    Raises ValueError, one line.
    """
    try:
        if re.fullmatch(r"\d{1,2}:\d{2}", text):
            now = datetime.fromtimestamp(wall, UTC).astimezone()
            hour, minute = map(int, text.split(":"))
            # Without an offset, because daylight saving time may change it until then.
            then = now.replace(hour=hour, minute=minute, second=0, microsecond=0, tzinfo=None)
            today, tomorrow = then.astimezone(), (then + timedelta(days=1)).astimezone()
            seconds = (today if today > now else tomorrow).timestamp()
        else:
            seconds = datetime.fromisoformat(text).astimezone().timestamp()
    except (ValueError, OverflowError, OSError) as e:
        shown = one_line(text, 40)
        raise ValueError(f'"{shown}" is not a time; write 08:00, 2026-11-23T08:00 or 2026-11-23T08:00:00Z') from e
    if seconds <= wall:
        raise ValueError(f'"{one_line(text, 40)}" is in the past; name a later time')
    if seconds > wall + LONGEST_S:
        raise ValueError(f'"{one_line(text, 40)}" is more than a year away')
    return seconds


def value_of(wanted: Wanted, wall: float) -> str:
    """The value of the entry, as JSON."""
    scope = {"gate": wanted.gate, "pool": wanted.pool, "node": wanted.node}
    entry = {
        "order": wanted.kind.value,
        "scope": {key: name for key, name in scope.items() if name},
        "author": one_line(wanted.author, AUTHOR_LIMIT),
        "reason": one_line(wanted.reason, REASON_LIMIT),
        "created": format_time(wall),
        **({} if wanted.expires is None else {"expires": format_time(wanted.expires)}),
    }
    return msgspec.json.encode(entry).decode()


def id_of(wanted: Wanted, taken: Mapping[str, object]) -> str:
    """The id of the entry: kind and scope, with a number if that id is taken by another order.

    The same order of the same author gets the same id, so that it is renewed. taken: the existing entries. An entry of
    another author, or an invalid one, is never overwritten.
    """
    kind = "arming" if wanted.kind in (Kind.ARM, Kind.DISARM) else wanted.kind.value
    words = "-".join(filter(None, (kind, wanted.gate, wanted.pool, wanted.node))).lower()
    stem = re.sub(r"[^a-z0-9]+", "-", words)[: ID_LIMIT - 4].strip("-")
    for number in range(1, 1000):
        found = stem if number == 1 else f"{stem}-{number}"
        if found not in taken or _renews(wanted, found, taken[found]):
            return found
    raise ValueError(f"a thousand orders have ids that begin with {stem}; lift some")


def _renews(wanted: Wanted, id_: str, value: object) -> bool:
    order = order_of(id_, value)
    if order is None or order.author != one_line(wanted.author, AUTHOR_LIMIT):
        return False
    arming = {Kind.ARM, Kind.DISARM}
    same = order.kind is wanted.kind or {order.kind, wanted.kind} == arming
    return same and (order.gate, order.pool, order.node) == (wanted.gate, wanted.pool, wanted.node)


def order_of(id_: str, value: object) -> Order | None:
    """Parses an entry. None if the extenders would ignore it."""
    try:
        return parse_order(id_, value)
    except SettingsError:
        return None


def before(written: Order, orders: Orders, wall: float) -> list[Order]:
    """The orders in force that take precedence over the order for some of its nodes or gates.

    No order contradicts a pause, because it only stops further nodes from closing.
    """
    others = [one for one in orders.in_force(wall) if one.id != written.id and one.kind is not written.kind]
    if written.kind in (Kind.ARM, Kind.DISARM):
        gates = {one.gate for one in others if one.kind in (Kind.ARM, Kind.DISARM)}
        here = [gate for gate in sorted(gates) if written.gate in ("", gate)]
        found = [orders.arming(gate, wall) for gate in (*here, written.gate)]
        return list(dict.fromkeys(one for one in found if one in others))
    if written.kind is Kind.PAUSE:
        return []
    return [one for one in others if one.kind in OF_NODES and _meet(one, written) and _rank(one) > _rank(written)]


def _meet(one: Order, other: Order) -> bool:
    """Whether a node may be in both scopes. Which nodes are in a pool is unknown here."""
    pairs = ((one.gate, other.gate), (one.pool, other.pool), (one.node, other.node))
    return all(here == there or not (here and there) for here, there in pairs)


def _rank(one: Order) -> tuple[bool, bool, bool, int]:
    """The precedence: the narrower scope first, then the kind."""
    return bool(one.node), bool(one.pool), bool(one.gate), -OF_NODES.index(one.kind)


def until(expires: float, wall: float) -> str:
    """The end of an order in words, in the time zone of this machine."""
    if expires == float("inf"):
        return "until lifted"
    then = datetime.fromtimestamp(expires, UTC).astimezone()
    now = datetime.fromtimestamp(wall, UTC).astimezone()
    shown = then.strftime("%H:%M" if then.date() == now.date() else "%d %b %Y %H:%M")
    return f"until {shown}" if expires > wall else f"expired {shown}"


def some_of(names: Collection[str], most: int = 5) -> str:
    """A few of the names, for a message."""
    shown = ", ".join(sorted(names)[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")
