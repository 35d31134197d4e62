"""Free loopback ports for servers that must be told theirs beforehand; whether one is free now."""

import os
import random
import socket

# Below Linux's range for outgoing connections (net.ipv4.ip_local_port_range), so that none of those takes a port
# between the look and the server's own bind.
_FIRST, _LAST = 20000, 32000
_chooser = random.Random(os.urandom(8))
# By port. A name that the kernel gives to one process alone of all that share the loopback, until that process ends.
_given: dict[int, socket.socket] = {}


def free_port(address: str = "127.0.0.1") -> int:
    """A port nobody listens on, never given twice by this process, nor by another one while this one lives: the server
    that it is for may begin much later, be gone for a while, or never come."""
    while True:
        port = _chooser.randint(_FIRST, _LAST)
        if port in _given:
            continue
        name = socket.socket(socket.AF_UNIX)
        try:
            name.bind(f"\0readygate-test-port-{port}")
            with socket.socket() as probe:
                probe.bind((address, port))
        except OSError:
            name.close()
            continue
        _given[port] = name
        return port


def may_listen(port: int, address: str = "127.0.0.1") -> bool:
    """Whether a server could listen there now, as servers do."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
            probe.listen()
        except OSError:
            return False
    return True
