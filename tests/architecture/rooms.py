"""Counts the rooms of each part, the arrows between rooms, and the floors: `python -m tests.architecture.rooms`.

A room is a folder with modules, with the folders in it. A module directly in the part's folder is a room of its own; an
`__init__` is none.
An arrow leads from one room to another that it imports. Floors are counted along the longest way down; rooms that
import each other, directly or in a circle, share a floor.
"""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.architecture.source import ROOT, imports_of_ours, module_of

PARTS = ("component", "kube", "agent", "extender", "cli")
Arrows = Mapping[str, set[str]]  # room -> the rooms that it imports


def room_of(module: str) -> str:
    """`cli.why.blame` is in the room `cli.why`; `cli.__main__` is a room."""
    return ".".join(module.split(".")[:2])


def arrows_of(part: str, root: Path = ROOT) -> Arrows:
    """Every room of a part, with the other rooms of the same part that it imports."""
    modules = {module_of(path, root): path for path in (root / part).rglob("*.py") if path.name != "__init__.py"}
    arrows: dict[str, set[str]] = {room_of(module): set() for module in modules}
    for module, path in modules.items():
        arrows[room_of(module)] |= {room_of(name) for name in imports_of_ours(path) & modules.keys()}
    return {room: targets - {room} for room, targets in arrows.items()}


def reached_from(room: str, arrows: Arrows) -> set[str]:
    """All rooms that lie on some way out of a room."""
    seen: set[str] = set()
    ahead = set(arrows[room])
    while ahead:
        seen |= ahead
        ahead = {target for one in ahead for target in arrows[one]} - seen
    return seen


def mutual(arrows: Arrows) -> list[tuple[str, str]]:
    """Pairs of rooms that import each other directly."""
    return sorted((one, two) for one, targets in arrows.items() for two in targets if one < two and one in arrows[two])


def floors(arrows: Arrows) -> int:
    """How many floors the longest way down has."""
    reach = {room: reached_from(room, arrows) for room in arrows}
    below = {room: {one for one in found if room not in reach[one]} for room, found in reach.items()}
    depth: dict[str, int] = {}
    for room in sorted(arrows, key=lambda one: len(below[one])):
        depth[room] = 1 + max((depth[one] for one in below[room]), default=0)
    return max(depth.values(), default=0)


def lines(parts: Iterable[str], root: Path = ROOT) -> list[str]:
    """One line for each part, then one for each pair of rooms that import each other."""
    report = []
    for part in parts:
        arrows = arrows_of(part, root)
        total = sum(len(targets) for targets in arrows.values())
        report.append(f"{part:10} {len(arrows):3} rooms {floors(arrows):3} floors {total:4} arrows")
        report += [f"{part:10} {one} and {two} import each other" for one, two in mutual(arrows)]
    return report


if __name__ == "__main__":
    print("\n".join(lines(sys.argv[1:] or PARTS)))
