"""What of the node's capacity pods may not have: reserved for the system and the agent, and hard eviction thresholds.

Pure. Mirrors GetNodeAllocatableReservation and validateNodeAllocatable of pkg/kubelet/cm, v1.36.3.
"""

from collections.abc import Iterable, Mapping
from fractions import Fraction

from agent.kubelet.node.facts import HUGE_PAGES, amount
from agent.kubelet.node.machine import quantity
from agent.kubelet.node.pressure import MEMORY, NODEFS, Threshold

RESERVABLE = ("cpu", "memory", "ephemeral-storage")
_OF_SIGNAL = {MEMORY: "memory", NODEFS: "ephemeral-storage"}


def reservation(
    capacity: Mapping[str, str], reserved: Iterable[Mapping[str, str]], thresholds: Iterable[Threshold]
) -> dict[str, Fraction]:
    """By resource. `reserved`: for the system, and for the agent. `thresholds`: of them the hard ones count. Raises
    ValueError for more than there is, in the kubelet's words."""
    of_machine = {name: amount(value) for name, value in capacity.items() if _is_of_machine(name)}
    known = {name: value for name, value in of_machine.items() if isinstance(value, Fraction)}
    kept = dict.fromkeys(known, Fraction())
    for given in reserved:
        for name in given.keys() & known.keys():
            value = amount(given[name])
            kept[name] += value if isinstance(value, Fraction) else 0
    for threshold in thresholds:
        name = "" if threshold.grace_s else _OF_SIGNAL.get(threshold.signal, "")
        if name in known:
            kept[name] += threshold.value.of(int(known[name]))
    too_much = [
        f'Resource "{name}" has a reservation of {quantity(kept[name])} but capacity of {capacity[name]}. '
        "Expected capacity >= reservation."
        for name in sorted(kept)
        if kept[name] > known[name]
    ]
    if too_much:
        raise ValueError(f"invalid Node Allocatable configuration. {' '.join(too_much)}")
    return {name: value for name, value in kept.items() if value}


def _is_of_machine(name: str) -> bool:
    return name in RESERVABLE or name.startswith(HUGE_PAGES)
