"""What a check of the pod network needs of the agent that runs it: who it is, and how it gets at its pod's network."""

import socket
from collections.abc import Callable
from dataclasses import dataclass

from agent.checks.peer_answer import Board
from agent.checks.peer_list import Source

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
