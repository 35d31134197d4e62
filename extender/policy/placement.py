"""Pure: where the pods of a DaemonSet can run, as its pod template says it of nodes."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Placement:
    """node_selector: labels that a node must have."""

    node_selector: Mapping[str, str] = field(default_factory=dict)
