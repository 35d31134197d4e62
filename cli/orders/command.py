"""`readygate hold|pause|exempt|arm|disarm`, `readygate lift ID` and `readygate orders`: write, lift and list orders."""

import argparse
import time
from dataclasses import replace

import msgspec

from cli.orders import checks, entries, page
from cli.orders.entries import CONFIG_MAP, Wanted
from cli.orders.store import Entries, Store
from cli.shared import terminal
from cli.shared.arguments import Commands, add_output, add_servers, command
from cli.shared.errors import CommandError
from cli.shared.extender_client import api_client
from cli.shared.layout import line
from component.command import EXIT_USAGE
from component.settings import SettingsError
from extender.policy.orders import Kind, Order, parse_order, parse_orders
from kube.times import format_time

POOL_LABEL = "readygate.dev/pool"
SUMMARIES = {
    Kind.HOLD: "keep nodes closed, whatever their health",
    Kind.EXEMPT: "keep nodes open, whatever their health",
    Kind.PAUSE: "let no more nodes close; closed nodes stay closed until they are healthy",
    Kind.ARM: "make gates refuse nodes, whatever is configured",
    Kind.DISARM: "make gates refuse nothing, and count what they would refuse",
}
WRITTEN = """\
  0    the order is written; the extenders apply it within a second
  1    it could not be written, or needs --yes
  3    no kubeconfig can be used
"""
LIFTED = """\
  0    the orders are lifted
  1    there is no such order, or the ConfigMap could not be written
  3    no kubeconfig can be used
"""
LISTED = """\
  0    all orders are valid
  1    an order is invalid and ignored
  3    unknown: the orders cannot be read
"""


class OrderReport(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """An order in the document of `-o json`, with the keys of its entry in the ConfigMap."""

    id: str
    order: str
    scope: dict[str, str]
    author: str = ""
    reason: str = ""
    expires: str = ""
    in_force: bool | None = None
    overruled_by: tuple[str, ...] = ()  # ids of orders that take precedence
    in_shadow: tuple[str, ...] = ()  # gates that refuse nothing in spite of the order


class Written(msgspec.Struct, frozen=True, rename="camel"):
    written: tuple[OrderReport, ...] = ()
    lifted: tuple[str, ...] = ()


class Listed(msgspec.Struct, frozen=True, rename="camel"):
    orders: tuple[OrderReport, ...]
    faults: tuple[str, ...]


def register(commands: Commands) -> None:
    for kind in (Kind.HOLD, Kind.EXEMPT, Kind.PAUSE, Kind.ARM, Kind.DISARM):
        _register_order(commands, kind)
    lifted = command(commands, "lift", "lift orders", LIFTED)
    lifted.add_argument("ids", nargs="*", metavar="ID", help="id of an order, as `readygate orders` shows it")
    lifted.add_argument("--expired", action="store_true", help="all expired orders")
    _add_where(lifted)
    add_output(lifted, watch=False)
    lifted.set_defaults(run=lift)
    listed = command(commands, "orders", "list the orders of operators", LISTED)
    _add_where(listed)
    add_output(listed, watch=False)
    listed.set_defaults(run=show)


def _register_order(commands: Commands, kind: Kind) -> None:
    parser = command(commands, kind.value, SUMMARIES[kind], WRITTEN)
    parser.add_argument("--gate", default="", metavar="GATE", help="only at this gate; default: all gates")
    if kind not in (Kind.ARM, Kind.DISARM):
        nodes = parser.add_mutually_exclusive_group()
        nodes.add_argument("--node", default="", metavar="NODE", help="only this node")
        nodes.add_argument("--pool", default="", metavar="POOL", help="only the nodes of this pool")
        parser.add_argument("--pool-label", default=POOL_LABEL, metavar="LABEL", help="default: %(default)s")
    ends = parser.add_mutually_exclusive_group()
    ends.add_argument("--for", dest="lasts", metavar="TIME", help="as 30m, 2h, 3d; default: until lifted")
    ends.add_argument("--until", metavar="TIME", help="as 08:00, 2026-11-23T08:00 or 2026-11-23T08:00:00Z")
    parser.add_argument("--reason", default="", metavar="TEXT", help="shown to others with the order")
    parser.add_argument("--author", default="", metavar="NAME", help="default: your user name at the API server")
    parser.add_argument(
        "-y", "--yes", action="store_true", help="go on although many nodes are covered, or a name is unknown"
    )
    _add_where(parser)
    add_output(parser, watch=False)
    parser.set_defaults(run=lambda arguments: order(arguments, kind), node="", pool="", pool_label=POOL_LABEL)


def _add_where(parser: argparse.ArgumentParser) -> None:
    add_servers(parser)
    parser.add_argument("--config-map", default=CONFIG_MAP, metavar="NAME", help="default: %(default)s")


def order(arguments: argparse.Namespace, kind: Kind) -> int:
    """Writes one order. Raises CommandError."""
    wall = time.time()
    expires = _expires(arguments, wall)  # wrong usage is reported before any request
    client = api_client(arguments)
    store = Store(client, arguments.readygate_namespace, arguments.config_map)
    scope = {"gate": arguments.gate, "pool": arguments.pool, "node": arguments.node}
    wanted = Wanted(kind, **scope, reason=arguments.reason, expires=expires)
    _check_valid("new", wanted, wall)
    if not arguments.yes:
        if wanted.gate:
            checks.known_gate(arguments, wanted.gate)
        if wanted.node:
            checks.known_node(client, wanted.node)
        elif kind is Kind.HOLD or wanted.pool:
            _check_count(wanted, checks.nodes_covered(client, wanted, arguments.pool_label), arguments.pool_label)
    now = checks.now(client)
    wanted = replace(wanted, author=arguments.author or now.author, expires=_expires(arguments, now.wall))
    after: dict[str, str | None] = {}

    def put(there: Entries) -> Entries:
        try:
            written = {entries.id_of(wanted, there): entries.value_of(wanted, now.wall)}
        except ValueError as e:
            raise CommandError(str(e)) from e
        after.clear()
        after.update({**there, **written})
        return written

    ((id_, value),) = store.change(put).items()
    written = parse_order(id_, value)
    first = entries.before(written, parse_orders(after), now.wall)
    shadow = checks.in_shadow(arguments, written.gate) if kind is Kind.HOLD else []
    if arguments.output == "json":
        overruled_by = tuple(one.id for one in first)
        report = msgspec.structs.replace(_report(written), overruled_by=overruled_by, in_shadow=tuple(shadow))
        terminal.show_json(Written(written=(report,)))
        return 0
    terminal.show(page.written(written, now.wall, arguments.program, terminal.width(), first, shadow))
    return 0


def _expires(arguments: argparse.Namespace, wall: float) -> float | None:
    try:
        if arguments.lasts is not None:
            return wall + entries.duration_s(arguments.lasts)
        return None if arguments.until is None else entries.moment_s(arguments.until, wall)
    except ValueError as e:
        raise CommandError(str(e), code=EXIT_USAGE) from e


def _check_valid(id_: str, wanted: Wanted, wall: float) -> None:
    """Raises CommandError for an order that the extenders would ignore, as one with a blank in a node's name."""
    try:
        parse_order(id_, entries.value_of(wanted, wall))
    except SettingsError as e:
        raise CommandError(str(e).partition(": ")[2], code=EXIT_USAGE) from e


def _check_count(wanted: Wanted, nodes: int | None, pool_label: str) -> None:
    """Raises CommandError for a hold of many nodes, because no cap limits it."""
    if nodes == 0 and wanted.pool:
        raise CommandError(f"no node has the label {pool_label}={wanted.pool}; check --pool-label, {checks.ANYWAY}")
    if wanted.kind is not Kind.HOLD or nodes == 1:
        return
    many = "an unknown number of nodes (you may not list nodes)" if nodes is None else f"{nodes:,} nodes"
    at = f" at gate {wanted.gate}" if wanted.gate else ""
    raise CommandError(f"that would keep {many} closed{at}, above any cap; name one with --node, {checks.ANYWAY}")


def lift(arguments: argparse.Namespace) -> int:
    """Lifts orders. Raises CommandError."""
    if not arguments.ids and not arguments.expired:
        raise CommandError("name orders by their id (readygate orders shows them), or add --expired", code=EXIT_USAGE)
    client = api_client(arguments)
    store = Store(client, arguments.readygate_namespace, arguments.config_map)
    wall = checks.now(client).wall if arguments.expired else 0.0

    def remove(there: Entries) -> Entries:
        unknown = [id_ for id_ in arguments.ids if id_ not in there]
        if unknown:
            has = f"it has {entries.some_of(there.keys())}" if there else "it has none"
            raise CommandError(f"{store.where} has no order {entries.some_of(unknown)}: {has}")
        expired = [id_ for id_, value in there.items() if arguments.expired and _is_expired(id_, value, wall)]
        return dict.fromkeys([*arguments.ids, *expired])

    lifted = tuple(store.change(remove))
    if arguments.output == "json":
        terminal.show_json(Written(lifted=lifted))
    else:
        terminal.show([line(f"lifted {id_}") for id_ in lifted] or [line("no order has expired")])
    return 0


def _is_expired(id_: str, value: object, wall: float) -> bool:
    found = entries.order_of(id_, value)
    return found is not None and not found.in_force(wall)


def show(arguments: argparse.Namespace) -> int:
    """Lists the orders. Raises CommandError."""
    client = api_client(arguments)
    found = parse_orders(Store(client, arguments.readygate_namespace, arguments.config_map).read())
    wall = checks.now(client).wall
    if arguments.output == "json":
        reports = tuple(_report(one, in_force=one.in_force(wall)) for one in found.entries)
        terminal.show_json(Listed(reports, found.faults))
    else:
        terminal.show(page.listed(found.entries, found.faults, wall, terminal.width()))
    return 1 if found.faults else 0


def _report(one: Order, *, in_force: bool | None = None) -> OrderReport:
    scope = {key: name for key in ("gate", "pool", "node") if (name := getattr(one, key))}
    expires = "" if one.expires == float("inf") else format_time(one.expires)
    return OrderReport(one.id, one.kind.value, scope, one.author, one.reason, expires, in_force)
