"""What a check takes beyond a container as any other: data, so that charts and playbooks grant just that. Pure."""

from collections.abc import Callable
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Rights:
    """`reads`, `writes`: folders, files and sockets of the host; one that does not begin with / is the key of the
    check's settings that names them. `host_network`: the host's network namespace. `host_pid`: its processes. `clock`:
    asks the kernel how well the clock is kept, by calls that could set it with the capability for that. `devices`:
    files in /dev. `capabilities`: as CAP_SYSLOG. `root`: what it reads is often root's alone. `pod_network`: the
    network of a pod; a service on the host enters that of its health pod, with CAP_SYS_ADMIN. `lists_peers`:
    EndpointSlices and NetworkPolicies of the agents' namespace, read of the API server.
    """

    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    host_network: bool = False
    host_pid: bool = False
    clock: bool = False
    devices: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    root: bool = False
    pod_network: bool = False
    lists_peers: bool = False

    def resolved(self, value_of: Callable[[str], object]) -> "Rights":
        """With paths in the place of keys. `value_of`: the value of a key; one path, several, or None."""
        return replace(self, reads=_paths(self.reads, value_of), writes=_paths(self.writes, value_of))

    @property
    def lines(self) -> list[str]:
        """In words, a line each; empty where nothing is needed."""
        words = [
            f"reads of the host: {', '.join(self.reads)}" if self.reads else "",
            f"writes on the host: {', '.join(self.writes)}" if self.writes else "",
            f"devices: {', '.join(self.devices)}" if self.devices else "",
            "the host's network" if self.host_network else "",
            "the host's processes" if self.host_pid else "",
            "the call adjtimex, without CAP_SYS_TIME" if self.clock else "",
            f"capabilities: {', '.join(self.capabilities)}" if self.capabilities else "",
            "root" if self.root else "",
            "the network of a pod: its own, or as a service on the host that of its health pod, by CAP_SYS_ADMIN and "
            "/run/netns"
            if self.pod_network
            else "",
            "get and list of endpointslices and networkpolicies in the agents' namespace" if self.lists_peers else "",
        ]
        return [line for line in words if line]


NO_RIGHTS = Rights()


def _paths(entries: tuple[str, ...], value_of: Callable[[str], object]) -> tuple[str, ...]:
    found: list[str] = []
    for entry in entries:
        value = entry if entry.startswith("/") else value_of(entry)
        found += [value] if isinstance(value, str) else value if isinstance(value, tuple) else []
    return tuple(dict.fromkeys(found))
