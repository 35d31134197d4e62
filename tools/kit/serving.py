"""A server of `socketserver` that serves in a thread while a block runs."""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def serving(server: socketserver.BaseServer) -> Iterator[None]:
    """Ends the thread before the socket is closed, also where the block raises.

    Else the thread would go on polling the number of the closed socket. Whichever file gets that number next would
    stay open after its own close.
    """
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), name="serving", daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()
