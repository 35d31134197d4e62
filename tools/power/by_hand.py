"""What a row of the faults written by hand is."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ByHand:
    """`old`, which the file holds exactly once, becomes `new`. what: the mistake that somebody has made.

    tests: files or folders that could catch it. regenerate: what is made of the chart is made again (`make manifests`),
    as the contributor who changed the chart would do.
    """

    part: str
    file: str
    old: str
    new: str
    what: str
    tests: tuple[str, ...]
    regenerate: bool = False
