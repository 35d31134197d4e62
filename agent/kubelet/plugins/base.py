"""What a plugin says of itself, and how asking it fails. Pure: loads no gRPC."""

from dataclasses import dataclass
from typing import Protocol

from agent.cri.base import Trouble
from agent.processes.command import go_duration
from component.text import one_line

CSI_PLUGIN, DEVICE_PLUGIN, DRA_PLUGIN = "CSIPlugin", "DevicePlugin", "DRAPlugin"
_SAYS = {
    Trouble.NO_PACKAGES: "the package for it is not installed: install readygate[grpc]",
    Trouble.NO_SOCKET: "the socket is gone",
    Trouble.NO_RIGHTS: "no rights to open the socket",
    Trouble.NOBODY_LISTENS: "nobody listens",
    Trouble.HANGS: "no answer within {within}",
    Trouble.GARBAGE: "the answer is not of a plugin",
    Trouble.WENT_AWAY: "it went away before it answered",
    Trouble.NOT_OFFERED: "it does not offer registration",
    Trouble.NOT_FOUND: "not found",
    Trouble.REFUSED: "it answered with an error",
}


@dataclass(frozen=True, slots=True)
class PluginInfo:
    """`endpoint`: where it is to be called; empty: at the socket it registers by."""

    type: str
    name: str
    endpoint: str = ""
    versions: tuple[str, ...] = ()


class PluginError(Exception):
    """A call that has no answer, or a plugin that is not taken. str() is one line."""

    def __init__(self, trouble: Trouble, said: object = "", *, within_s: float = 0.0) -> None:
        self.trouble = trouble
        words = one_line(said)
        says = _SAYS[trouble].format(within=go_duration(within_s))
        super().__init__(f"{says} ({words})" if words else says)


class Plugin(Protocol):
    """One connection. Each call raises PluginError; any thread may close it, which ends the call that waits."""

    def connect(self, within_s: float) -> None: ...
    def info(self, within_s: float) -> PluginInfo: ...
    def notify(self, error: str, within_s: float) -> None:
        """Tells what became of it; "": it is registered."""
        ...

    def close(self) -> None: ...
