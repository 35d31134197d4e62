"""Sections of the configuration file on writes to the API server: the nodes' condition, and Events. Pure."""

from typing import Annotated

from msgspec import Meta

from component.settings import Section

Rate = Annotated[float, Meta(ge=0.1, le=500, description="writes a second, 0.1 to 500")]
REFRESH_MIN_S = 30.0


class NodeCondition(Section, frozen=True):
    """The condition readygate.dev/NodeHealthy of each node. refresh_seconds: it is written again so long after the last
    write, changed or not; 0 = only when it has changed. per_second: writes of all nodes together."""

    enabled: bool = True
    refresh_seconds: Annotated[float, Meta(ge=0, le=86400, description="seconds, 0 to 86400")] = 300
    per_second: Rate = 20

    def __post_init__(self) -> None:
        if 0 < self.refresh_seconds < REFRESH_MIN_S:
            allowed = f"0 (on change only) or {REFRESH_MIN_S:g} and more"
            raise ValueError(f"refreshSeconds: is {self.refresh_seconds:g}, allowed: {allowed}")


class Events(Section, frozen=True):
    """Events on nodes that close and open, and on pods that were refused all nodes."""

    enabled: bool = True
    per_second: Rate = 5


class Outlets(Section, frozen=True):
    """What the extender writes to the API server for humans to read. The kick is not among it."""

    node_condition: NodeCondition = NodeCondition()
    events: Events = Events()
