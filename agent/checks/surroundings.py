"""What a check of the pod network needs of the agent that runs it: who it is, and how it gets at its pod's network."""

import socket
from collections.abc import Callable
from dataclasses import dataclass

from agent.checks.peer_answer import Board
from agent.checks.peer_list import Source
from agent.probe.targets import is_address

OpenSocket = Callable[[int, int], socket.socket]
"""(family, kind) -> a socket in the network of the pod. Raises NoPodNetwork, OSError."""


class NoPodNetwork(Exception):  # noqa: N818 - what is so, as the other words for it
    """This agent has no pod network to examine, now or ever; the text says why."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """node: the name of this one. namespace: of the agents. connect: opens the API server as a source of peers, by the
    name of their Service. open_socket: in the network of the pod. resolv_conf: the pod's file, "" where it is unknown.
    service: host and port of the API server's Service, None where they are unknown. is_asked: other agents ask this
    one, and not another in the pod whose network it enters."""

    node: str
    namespace: str
    board: Board
    connect: Callable[[str], Source]
    open_socket: OpenSocket
    resolv_conf: str = ""
    service: tuple[str, int] | None = None
    is_asked: bool = True


def dns_of(resolv_conf: str) -> tuple[str, str]:
    """The first server of a pod's resolv.conf, and the cluster's domain for Services in it, as `svc.cluster.local`; ""
    for what is not there. Without that domain the file is the host's, and its servers know no Service."""
    words = [line.split() for line in resolv_conf.splitlines()]
    servers = [line[1] for line in words if len(line) > 1 and line[0] == "nameserver" and is_address(line[1])]
    search = [name for line in words if line and line[0] == "search" for name in line[1:]]
    domain = next((name.rstrip(".") for name in search if name.startswith("svc.")), "")
    return (servers[0] if servers else ""), domain
