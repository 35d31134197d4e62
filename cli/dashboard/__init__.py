"""`readygate dashboard`: forwards a local port to the status API of one extender.

    command   listens on loopback, and relays each connection through a port-forward of its own

Guarantees: the port listens on loopback only. If the extender is replaced, new connections go to another extender. An
error page never names hosts, because a web page may read it.

Imported by `cli.__main__`.
"""
