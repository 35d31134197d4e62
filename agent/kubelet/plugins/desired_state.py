"""What is to be done with plugins: what is registered beside what lies there, and when a try may be made again. Pure.

Mirrors pluginmanager/reconciler and util/goroutinemap of v1.36.3: one operation a socket at a time, and after an error
a pause that doubles from half a second to 122 s. It is kept by the socket's path: another plugin there waits as long.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from agent.kubelet.plugins.base import PluginInfo
from agent.kubelet.plugins.sockets import Version

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 122.0


@dataclass(frozen=True, slots=True)
class Registered:
    version: Version
    info: PluginInfo


@dataclass(frozen=True, slots=True)
class Failed:
    """The last try of a socket: when it ended (monotonic), and how long nothing is done then."""

    at: float
    pause_s: float

    def is_over(self, monotonic: float) -> bool:
        return monotonic - self.at > self.pause_s


def failed(before: Failed | None, monotonic: float) -> Failed:
    """After one more error. A success forgets all of them."""
    return Failed(monotonic, FIRST_PAUSE_S if before is None else min(2 * before.pause_s, LONGEST_PAUSE_S))


def to_deregister(
    wanted: Mapping[str, Version],
    registered: Mapping[str, Registered],
    pending: Collection[str],
    failures: Mapping[str, Failed],
    monotonic: float,
) -> list[str]:
    """Sockets whose plugin is gone, or is another one by now. This comes before what is to be registered."""
    return [
        socket
        for socket, one in registered.items()
        if wanted.get(socket) != one.version and _free(socket, pending, failures, monotonic)
    ]


def to_register(
    wanted: Mapping[str, Version],
    registered: Mapping[str, Registered],
    pending: Collection[str],
    failures: Mapping[str, Failed],
    monotonic: float,
) -> list[str]:
    return [
        socket
        for socket, version in wanted.items()
        if (socket not in registered or registered[socket].version != version)
        and _free(socket, pending, failures, monotonic)
    ]


def _free(socket: str, pending: Collection[str], failures: Mapping[str, Failed], monotonic: float) -> bool:
    return socket not in pending and (socket not in failures or failures[socket].is_over(monotonic))
