"""What the gate (`--gate`) plays of the comparison: as few histories as find nearly every planted error. Pure.

Measured with SEED: of 363 planted errors two of http show first after 27,000 histories, one of eviction after 9,000,
which only the whole proof plays. An error that needs more than the numbers below raises them, or is left to the whole
proof.
"""

from collections.abc import Iterable, Sequence

from tools.differential.planted_error import Planted

SEED = 29
HISTORIES = 1_200
MORE = {"http": 3_200, "node": 1_800, "plugins": 3_200, "status": 1_600}
MORE |= dict.fromkeys(("generate-1.16", "loops-1.16", "node-1.16", "pleg-1.16", "prober-1.16", "sources-1.16"), 800)
"""For targets whose errors are rarer, or more frequent."""
PARTS = 2
"""Each part of a target starts a driver: the gate has fewer of them."""


def histories(targets: Iterable[str]) -> dict[str, int]:
    """How many histories the gate plays of each target."""
    return {name: MORE.get(name, HISTORIES) for name in targets}


def one_for_each(errors: Sequence[Planted]) -> list[Planted]:
    """The first error of each target: it shows that a difference of this target is found at all."""
    first: dict[str, Planted] = {}
    for error in errors:
        first.setdefault(error.target, error)
    return list(first.values())
