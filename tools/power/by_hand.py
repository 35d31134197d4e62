"""A fault that was written by hand: one row of the `by_hand_*` tables."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ByHand:
    """`old`, which the file holds exactly once, becomes `new`. what: the mistake, as its effect.

    tests: files or folders that could catch it. regenerate: `make manifests` runs after the change.
    """

    part: str
    file: str
    old: str
    new: str
    what: str
    tests: tuple[str, ...]
    regenerate: bool = False
