"""The pages of the order commands: the order that was written, and the list of all orders. Pure."""

from collections.abc import Sequence

from cli.orders import entries
from cli.orders.entries import DOES
from cli.shared.layout import EMPTY, Column, Page, line, span, table, wrapped
from extender.policy.orders import Order

FIRST_SHOWN = 5


def listed(orders: tuple[Order, ...], faults: tuple[str, ...], wall: float, width: int) -> Page:
    """The list of orders. faults: invalid entries."""
    page: Page = []
    if orders:
        columns = ("ID", "ORDER", "FOR", "UNTIL", "BY")
        rows = [
            [
                *(span(text) for text in (one.id, one.kind.value, one.scope)),
                span(entries.until(one.expires, wall).removeprefix("until ")),
                *(span(text) for text in (one.author, one.reason)),
            ]
            for one in orders
        ]
        page += table([*map(Column, columns), Column("REASON", flexible=True, label="reason")], rows, width)
    elif not faults:
        page += [line("There are no orders.")]
    if faults:
        page += [EMPTY] if orders else []
        for fault in faults:
            page += wrapped(line("ignored by the extenders: ", span(fault, limit=400)), width, hang=2)
    return page


def written(
    order: Order, wall: float, program: str, width: int, first: Sequence[Order] = (), shadow: Sequence[str] = ()
) -> Page:
    """The order that was written. first: orders that take precedence. shadow: gates that refuse nothing anyway."""
    what = f"{order.scope}: {DOES[order.kind]}, {entries.until(order.expires, wall)}"
    page = wrapped(line(what), width, hang=2)
    for one in first[:FIRST_SHOWN]:
        by = f" by {one.author}" if one.author else ""
        page += wrapped(line(f"but {one.id} takes precedence: {one.kind} of {one.scope}{by}"), width, indent=2, hang=4)
    if len(first) > FIRST_SHOWN:
        page += wrapped(line(f"and {len(first) - FIRST_SHOWN} more: {program} orders"), width, indent=2)
    if shadow:
        gates = f"gate {shadow[0]} is" if len(shadow) == 1 else f"gates {entries.some_of(shadow)} are"
        page += wrapped(line(f"but {gates} in shadow: nothing is refused until it is armed"), width, indent=2, hang=4)
    return [*page, line(f"  lift it: {program} lift {order.id}")]
