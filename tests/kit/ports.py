"""Free loopback ports for servers that must be told theirs beforehand; whether one is free now."""

import os
import random
import socket

# Below Linux's range for outgoing connections (net.ipv4.ip_local_port_range), so that none of those takes a port
# between the look and the server's own bind.
_FIRST, _LAST = 20000, 32000
_chooser = random.Random(os.urandom(8))
_given: set[int] = set()


def free_port(address: str = "127.0.0.1") -> int:
    """A port nobody listens on, never given twice by this process."""
    while True:
        port = _chooser.randint(_FIRST, _LAST)
        if port in _given:
            continue
        with socket.socket() as probe:
            try:
                probe.bind((address, port))
            except OSError:
                continue
        _given.add(port)
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
